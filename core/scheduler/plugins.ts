/**
 * Profiles: which filters and scores decide for the pods of a scheduler name. Order as upstream's.
 *
 * Source: kubernetes v1.36 pkg/scheduler/apis/config/v1/default_plugins.go
 */
import { dynamicResources, dynamicResourcesScore } from "./devices/dynamic-resources.ts";
import { interPodAffinity } from "./filters/inter-pod-affinity.ts";
import { nodeDeclaredFeatures } from "./filters/node-declared-features.ts";
import { nodeAffinity, nodeName, nodeUnschedulable, taintToleration } from "./filters/node.ts";
import { podTopologySpread } from "./filters/pod-topology-spread.ts";
import { nodePorts, nodeResourcesFit } from "./filters/resources.ts";
import { nodeVolumeLimits, volumeBinding, volumeRestrictions, volumeZone } from "./filters/volumes.ts";
import type { Filter, Score } from "./plugin.ts";
import type { PlacementRules } from "./pod-group-placements.ts";
import { imageLocality, nodeAffinityScore, taintTolerationScore } from "./scores/node.ts";
import { interPodAffinityScore, podTopologySpreadScore } from "./scores/pods.ts";
import { balancedAllocation, nodeResourcesFitScore } from "./scores/resources.ts";

export interface Profile {
  /** Pods with this spec.schedulerName are its business. */
  readonly schedulerName: string;
  readonly filters: readonly Filter[];
  readonly scores: readonly Score[];
  /** Of large clusters, look for enough nodes that will do, not for all: percent. 0: fewer the larger the cluster is. */
  readonly percentageOfNodesToScore: number;
  /** How many nodes preemption thinks through, of those where it may help: at least so many, or so many percent. Absent: nobody is evicted. */
  readonly preemption?: { readonly candidatesMin: number; readonly candidatesPercent: number } | undefined;
  /** Whether claims are bound and provisioned where a pod goes, and how long that may take. */
  readonly bindsVolumes: boolean;
  readonly bindTimeoutMs: number;
  /** Whether devices are allocated to claims where a pod goes. */
  readonly bindsDevices: boolean;
  /** Whether claims that keep a pod off all nodes lose their devices, if nobody needs them. */
  readonly freesDevices: boolean;
  /** How long devices may take until they are ready. */
  readonly deviceBindingTimeoutMs: number;
  /** Whether a pod waits for its scheduling gates to be opened. */
  readonly honorsGates: boolean;
  /** Whether a pod is not tried before its claims exist. */
  readonly awaitsClaims: boolean;
  /** Whether pods of a gang are not tried before there are enough of them, and not bound before enough have a place. Absent: neither. */
  readonly gangs?: { readonly awaited: boolean; readonly permitted: boolean } | undefined;
  /** What is made of the topology a group asks for. Absent: nothing. */
  readonly placements?: PlacementRules | undefined;
  /** Whether it is a group as a whole that others go for, not each of its pods. */
  readonly preemptsForGroups?: boolean | undefined;
  /** Whether what was thought of a pod may be used for the next like it, and whether pods of other labels are like it. Not where pods are spread by default. */
  readonly batching?: { readonly byLabels: boolean } | undefined;
}

export const DEFAULT_SCHEDULER = "default-scheduler";

export const DEFAULT_PROFILE: Profile = {
  schedulerName: DEFAULT_SCHEDULER,
  percentageOfNodesToScore: 0,
  preemption: { candidatesMin: 100, candidatesPercent: 10 },
  bindsVolumes: true,
  bindTimeoutMs: 600_000,
  bindsDevices: true,
  freesDevices: true,
  deviceBindingTimeoutMs: 600_000,
  honorsGates: true,
  awaitsClaims: true,
  filters: [
    nodeUnschedulable, nodeName, taintToleration, nodeAffinity(), nodePorts, nodeResourcesFit(), volumeRestrictions, nodeVolumeLimits, volumeBinding, volumeZone,
    podTopologySpread(), interPodAffinity, dynamicResources(), nodeDeclaredFeatures,
  ],
  scores: [taintTolerationScore, nodeAffinityScore(), nodeResourcesFitScore(), podTopologySpreadScore(), interPodAffinityScore(), dynamicResourcesScore, balancedAllocation(), imageLocality],
};

/** Without a configuration. `gates`: features that were switched on. */
export function defaultProfile(gates: ReadonlySet<string>): Profile {
  return {
    ...DEFAULT_PROFILE, ...(gates.has("GangScheduling") && { gangs: { awaited: true, permitted: true } }),
    ...(gates.has("TopologyAwareWorkloadScheduling") && { placements: { byTopology: true, podsWeight: 1, fitWeight: 1, resources: { cpu: 1, memory: 1 } } }),
    ...(gates.has("WorkloadAwarePreemption") && { preemptsForGroups: true }),
  };
}
