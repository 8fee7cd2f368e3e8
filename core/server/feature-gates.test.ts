import { expect, test } from "vitest";
import { metricsRegistry } from "../observe/metrics.ts";
import { featureGateProblem, featureGates, featureGateWarning, featureMetrics, switchedOn } from "./feature-gates.ts";

test.each<[string, string | undefined]>([
  ["WatchList=true", undefined], ["CBORServingAndStorage=false", undefined], ["AllAlpha=false", undefined], ["NodeSwap = True", undefined], ["kube:WatchList=true", undefined],
  ["CBORServingAndStorage=true", undefined], ["OpenAPIEnums=false", "cannot set feature gate OpenAPIEnums to false: Coracle behaves as v1.36 does with it on"],
  ["ContainerStopSignals=true", undefined], ["DRAListTypeAttributes=true", undefined], ["ImageVolumeWithDigest=true", undefined], ["UserNamespacesHostNetworkSupport=true", undefined], ["PodLogsQuerySplitStreams=true", undefined],
  ["StorageVersionMigrator=true", undefined], ["CoordinatedLeaderElection=true", undefined], ["StorageVersionAPI=true", undefined], ["GenericWorkload=true", undefined], ["GangScheduling=true", undefined], ["WorkloadWithJob=true", undefined], ["WorkloadAwarePreemption=true", undefined], ["TopologyAwareWorkloadScheduling=true", undefined], ["StorageVersionMigrator=false", undefined],
  ["NodeSwap=false", "cannot set feature gate NodeSwap to false, feature is locked to true"],
  ["WatchListClient=true", undefined], ["InformerResourceVersion=false", undefined], ["ContextualLogging=true", undefined], ["LoggingAlphaOptions=false", undefined], ["NativeHistograms=false", undefined],
  ["WatchListClient=false", "cannot set feature gate WatchListClient to false: Coracle behaves as v1.36 does with it on"], ["InOrderInformers=false", "cannot set feature gate InOrderInformers to false, feature is locked to true"],
  ["CronJobTimeZone=true", "unrecognized feature gate: CronJobTimeZone"],
  ["WatchList", "missing bool value for WatchList"],
  ["MutatingAdmissionPolicy=false", undefined], ["WatchList=tRue", 'invalid value of WatchList=tRue, err: strconv.ParseBool: parsing "tRue": invalid syntax'],
  ["WatchList=true=x", 'invalid value of WatchList=true=x, err: strconv.ParseBool: parsing "true=x": invalid syntax'],
  ["WatchList=maybe", 'invalid value of WatchList=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'],
])("%s: %s", (text, problem) => expect(featureGateProblem(text)).toBe(problem));

test("of a gate that is settled it is told that it will go, and whether it is on", () => {
  expect(["MutatingAdmissionPolicy=false", "NodeSwap=1", "WatchList=true", "AllBeta=false"].map(featureGateWarning)).toEqual([{ featureGate: "MutatingAdmissionPolicy", value: false, enabled: true }, { featureGate: "NodeSwap", value: true, enabled: true }, undefined, undefined]);
});

test("each feature is shown with its stage, and whether it is on", () => {
  const metrics = metricsRegistry();
  featureMetrics(metrics, switchedOn(["StorageVersionMigrator=false", "kube:StorageVersionMigrator=true", "WatchList=true"]));
  const lines = metrics.render().split("\n");
  for (const line of ['kubernetes_feature_enabled{name="AllAlpha",stage="ALPHA"} 0', 'kubernetes_feature_enabled{name="WatchList",stage="BETA"} 1', 'kubernetes_feature_enabled{name="NodeSwap",stage=""} 1', 'kubernetes_feature_enabled{name="StorageVersionMigrator",stage="BETA"} 1'])
    expect(lines).toContain(line);
  expect(featureGates().length).toBeGreaterThan(200);
});
