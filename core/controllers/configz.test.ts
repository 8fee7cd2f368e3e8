import { expect, test } from "vitest";
import { fakeApi } from "../../test/fake-api.ts";
import { silentEvents } from "../client/events.ts";
import { informerFactory } from "../client/informer-factory.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { allControllers, type RunningControllers } from "./all.ts";
import { CONCURRENT, controllersConfigz } from "./configz.ts";

const common = { listening: { address: "127.0.0.1", port: 10257 }, clusterCidr: "10.42.0.0/16", serviceCidr: "10.43.0.0/16,fd00::/112", isShared: false, profiling: false };

test("controllers show the settings they run with: upstream's defaults, what was given, and how many keys each works on at once", () => {
  expect(controllersConfigz({ ...common, nodeLifecycle: { graceMs: 90_000 }, terminatedPodsMax: 7 }, { workers: new Map([["deployment", 5], ["cronjob", 9], ["ours", 1]]) })).toMatchObject({
    kind: "KubeControllerManagerConfiguration", apiVersion: "kubecontrollermanager.config.k8s.io/v1alpha1",
    Generic: { Port: 10257, Address: "127.0.0.1", LeaderElection: { leaderElect: false, leaseDuration: "15s" } },
    DeploymentController: { ConcurrentDeploymentSyncs: 5 }, CronJobController: { ConcurrentCronJobSyncs: 9 },
    CSRSigningController: { ClusterSigningDuration: "8760h0m0s" }, EndpointSliceController: { MaxEndpointsPerSlice: 100 },
    HPAController: { HorizontalPodAutoscalerSyncPeriod: "15s", HorizontalPodAutoscalerDownscaleStabilizationWindow: "5m0s", HorizontalPodAutoscalerTolerance: 0.1 },
    NodeIPAMController: { ServiceCIDR: "10.43.0.0/16", SecondaryServiceCIDR: "fd00::/112" }, NodeLifecycleController: { NodeMonitorGracePeriod: "1m30s", NodeStartupGracePeriod: "1m0s", UnhealthyZoneThreshold: 0.55 },
    PodGCController: { TerminatedPodGCThreshold: 7 }, ResourceQuotaController: { ResourceQuotaSyncPeriod: "5m0s" },
  });
});

test("every controller whose workers are shown is one of those that run", async () => {
  const { client } = fakeApi();
  const base = { client, clock: systemClock, random: systemRandom, log: silentLog };
  const told: RunningControllers[] = [];
  const parts = allControllers({ ...base, informers: informerFactory(base), events: silentEvents, nodeName: "n1", rootCa: () => "", tokenFor: () => "", localStorage: false, tellRunning: (running) => void told.push(running) });
  const stop = new AbortController();
  const life = parts.find(({ name }) => name === "controllers are counted")!.run(stop.signal, () => stop.abort());
  await life;
  expect(Object.keys(CONCURRENT).filter((name) => !told[0]!.workers.has(name))).toEqual([]);
});
