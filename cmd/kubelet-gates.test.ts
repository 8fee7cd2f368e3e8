import { expect, test } from "vitest";
import { gateProblems, gateWarnings, unmetNeeds } from "./kubelet-gates.ts";

test("a gate that goes, and one that changes nothing here, are told of; others are not", () => {
  const told = (gates: Readonly<Record<string, boolean>>) => gateWarnings(gates).map(({ featureGate, value, message }) => `${featureGate}=${value}: ${message}`);
  expect(told({ MemoryQoS: false, CBORServingAndStorage: true, CPUManagerPolicyAlphaOptions: true, PodLevelResources: true, PodCertificateRequest: true, ContainerStopSignals: true, ImageVolumeWithDigest: true, PodLogsQuerySplitStreams: true, ReduceDefaultCrashLoopBackOffDecay: true, UserNamespacesHostNetworkSupport: true })).toEqual([]);
  expect(told({ CustomCPUCFSQuotaPeriod: false, DisableCPUQuotaWithExclusiveCPUs: false, MemoryQoS: true, ChangeContainerStatusOnKubeletRestart: true })).toEqual([
    "CustomCPUCFSQuotaPeriod=false: setting GA feature gate. It will be removed in a future release.",
    "DisableCPUQuotaWithExclusiveCPUs=false: setting deprecated feature gate. It will be removed in a future release.",
    "MemoryQoS=true: a feature gate has no effect: this kubelet behaves as upstream's does with its default",
    "ChangeContainerStatusOnKubeletRestart=true: setting deprecated feature gate. It will be removed in a future release.",
    "ChangeContainerStatusOnKubeletRestart=true: a feature gate has no effect: this kubelet behaves as upstream's does with its default",
  ]);
});

test("a gate that is on lacks those it needs where they are off", () => {
  const on = (...names: string[]) => unmetNeeds((name) => names.includes(name));
  expect([on("ClusterTrustBundleProjection"), on("ClusterTrustBundle", "ClusterTrustBundleProjection")]).toEqual([["ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]"], []]);
});

test("gates of logging and of clients are known here as well", () => {
  expect(gateProblems({ ContextualLogging: true, LoggingAlphaOptions: true, LoggingBetaOptions: true, WatchListClient: false, NativeHistograms: true })).toEqual([]);
  expect(gateProblems({ AtomicFIFO: false, StaleControllerConsistencyDaemonSet: false, StaleControllerConsistencyJob: false, StaleControllerConsistencyReplicaSet: false }))
    .toEqual(["StaleControllerConsistencyStatefulSet is enabled, but depends on features that are disabled: [AtomicFIFO]"]);
});
