/**
 * Feature gates of a KubeletConfiguration, and what each gate needs, of a server's as well. What upstream's kubelet refuses is refused; what it takes is taken: obeyed where it can be told apart here, or told to change nothing.
 *
 * Source: kubernetes v1.36 component-base/featuregate/feature_gate.go (unsafeSetFromMap), pkg/features/kube_features.go (defaultKubernetesFeatureGateDependencies)
 */
import { featureGates } from "../core/server/feature-gates.ts";

type Gates = Readonly<Record<string, boolean>>;

/** Those that change something here. */
const OBEYED: readonly string[] = [
  "CBORServingAndStorage", "CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions", "CSIVolumeHealth", "ContainerStopSignals", "CustomCPUCFSQuotaPeriod", "DisableCPUQuotaWithExclusiveCPUs", "GracefulNodeShutdown", "GracefulNodeShutdownBasedOnPodPriority", "ImageVolumeWithDigest",
  "KubeletCrashLoopBackOffMax", "KubeletEnsureSecretPulledImages", "KubeletPodResourcesListUseActivePods", "PodLogsQuerySplitStreams", "ReduceDefaultCrashLoopBackOffDecay", "UserNamespacesHostNetworkSupport",
];

/** Those that are the server's to switch on: where it lets pods ask, a node gives. */
const FOLLOWED: readonly string[] = ["ClusterTrustBundle", "ClusterTrustBundleProjection", "PodCertificateRequest", "TaintTolerationComparisonOperators"];

/** What each needs, of those that a kubelet may be told to do without. */
const NEEDS: Readonly<Record<string, readonly string[]>> = {
  ClusterTrustBundleProjection: ["ClusterTrustBundle"], DRADeviceBindingConditions: ["DRAResourceClaimDeviceStatus"], DRADeviceTaintRules: ["DRADeviceTaints"],
  DRAWorkloadResourceClaims: ["GenericWorkload"], ExtendWebSocketsToKubelet: ["NodeDeclaredFeatures"],
  GangScheduling: ["GenericWorkload"], GracefulNodeShutdownBasedOnPodPriority: ["GracefulNodeShutdown"],
  InPlacePodLevelResourcesVerticalScaling: ["PodLevelResources", "NodeDeclaredFeatures"], InPlacePodVerticalScalingInitContainers: ["NodeDeclaredFeatures"],
  MatchLabelKeysInPodTopologySpreadSelectorMerge: ["MatchLabelKeysInPodTopologySpread"], PodLevelResourceManagers: ["PodLevelResources"], ResourceHealthStatusMessage: ["ResourceHealthStatus"],
  RestartAllContainersOnContainerExits: ["ContainerRestartRules", "NodeDeclaredFeatures"],
  StaleControllerConsistencyDaemonSet: ["AtomicFIFO"], StaleControllerConsistencyJob: ["AtomicFIFO"], StaleControllerConsistencyReplicaSet: ["AtomicFIFO"], StaleControllerConsistencyStatefulSet: ["AtomicFIFO"],
  TopologyAwareWorkloadScheduling: ["GenericWorkload"],
  UnknownVersionInteroperabilityProxy: ["APIServerIdentity"], UserNamespacesHostNetworkSupport: ["NodeDeclaredFeatures"],
  WindowsGracefulNodeShutdown: ["GracefulNodeShutdown"], WorkloadAwarePreemption: ["GangScheduling"], WorkloadWithJob: ["GenericWorkload"],
};

/** What is wrong with them, in upstream's words. */
export function gateProblems(gates: Gates): string[] {
  const known = new Map(featureGates().map((gate) => [gate.name, gate]));
  const problems = Object.entries(gates).flatMap(([name, on]) => {
    const gate = known.get(name);
    if (!gate) return [`unrecognized feature gate: ${name}`];
    return gate.locked && gate.enabled !== on ? [`cannot set feature gate ${name} to ${on}, feature is locked to ${gate.enabled}`] : [];
  });
  if (problems.length > 0) return problems;
  return unmetNeeds((name) => gates[name] ?? known.get(name)?.enabled ?? false);
}

/** Of those that are on, what each lacks. */
export function unmetNeeds(isOn: (gate: string) => boolean): string[] {
  return Object.entries(NEEDS).flatMap(([name, needs]) => {
    const missing = isOn(name) ? needs.filter((one) => !isOn(one)) : [];
    return missing.length > 0 ? [`${name} is enabled, but depends on features that are disabled: [${missing.join(" ")}]`] : [];
  });
}

export interface GateWarning { readonly featureGate: string; readonly value: boolean; readonly message: string }

/** What is to be told of them. */
export function gateWarnings(gates: Gates): GateWarning[] {
  const known = new Map(featureGates().map((gate) => [gate.name, gate]));
  return Object.entries(gates).flatMap(([featureGate, value]) => {
    const gate = known.get(featureGate);
    const messages = [
      ...(gate?.stage === "GA" || gate?.stage === "Deprecated" ? [`setting ${gate.stage === "GA" ? "GA" : "deprecated"} feature gate. It will be removed in a future release.`] : []),
      ...(gate && gate.enabled !== value && !OBEYED.includes(featureGate) && !FOLLOWED.includes(featureGate) ? ["a feature gate has no effect: this kubelet behaves as upstream's does with its default"] : []),
    ];
    return messages.map((message) => ({ featureGate, value, message }));
  });
}
