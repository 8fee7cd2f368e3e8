/**
 * Whether something that happened may bring a pod back: asked of the filters that rejected it, one after the other until one says so. How long those thought about it that upstream
 * would have asked is told, as its metric of queueing hints has it; ours look at every change.
 *
 * Source: kubernetes v1.36 pkg/scheduler/scheduler.go buildQueueingHintMap, framework/plugins (EventsToRegister)
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { type ClusterChange, NODE_ADD, NODE_TAINT } from "./changes.ts";
import type { Cluster } from "./cluster.ts";
import type { Filter } from "./plugin.ts";

export type Hint = "Queue" | "QueueSkip";

export interface HintTimes {
  nowMs(): number;
  hinted(plugin: string, event: string, hint: Hint, ms: number): void;
}

interface Question {
  readonly pod: Readonly<Pod>;
  /** Filters, by name. */
  readonly rejectedBy: ReadonlySet<string>;
  readonly change: ClusterChange;
  /** Upstream's word for the change, or for one side of it. */
  readonly event: string;
  readonly cluster: Cluster;
}

export function mayBringBack(filters: readonly Filter[], question: Question, times: HintTimes): boolean {
  const { rejectedBy, event } = question;
  return filters.some((filter) => {
    if (!rejectedBy.has(filter.name)) return false;
    if (!EVENTS[filter.name]?.has(event)) return mayHelp(filter, question);
    const startMs = times.nowMs();
    const helps = mayHelp(filter, question);
    times.hinted(filter.name, event, helps ? "Queue" : "QueueSkip", times.nowMs() - startMs);
    return helps;
  });
}

function mayHelp(filter: Filter, { pod, change, event, cluster }: Question): boolean {
  return (event === NODE_TAINT && !filter.judgesTaints) || filter.mayHelp(pod, change, cluster);
}

const NODE_LABEL = "NodeUpdateNodeLabel";
const ALLOCATABLE = "NodeUpdateNodeAllocatable";
const DEVICE_CLASSES = ["resource.k8s.io/DeviceClassAdd", "resource.k8s.io/DeviceClassUpdate"];
const CLAIM_ADD = "PersistentVolumeClaimAdd";
const CLAIMS = [CLAIM_ADD, "PersistentVolumeClaimUpdate"];
const VOLUMES = ["PersistentVolumeAdd", "PersistentVolumeUpdate"];
const CLASS_ADD = "storage.k8s.io/StorageClassAdd";
const CSI_NODES = ["storage.k8s.io/CSINodeAdd", "storage.k8s.io/CSINodeUpdate"];

/** What upstream asks each filter about. Who hears of a new node hears of taints, too. */
const EVENTS: Readonly<Record<string, ReadonlySet<string>>> = {
  NodeName: nodes(),
  NodeUnschedulable: nodes(...ofPods("UpdatePodToleration")),
  TaintToleration: nodes(...ofPods("UpdatePodToleration")),
  NodeAffinity: nodes(NODE_LABEL),
  NodePorts: nodes(...ofPods("Delete")),
  NodeResourcesFit: nodes(ALLOCATABLE, ...ofPods("Delete", "UpdatePodScaleDown"), ...DEVICE_CLASSES),
  NodeDeclaredFeatures: nodes("NodeUpdateNodeDeclaredFeature", ...ofPods("Update", "UpdatePodLabel", "UpdatePodScaleDown", "UpdatePodSchedulingGatesEliminated", "UpdatePodToleration", "UpdatePodGeneratedResourceClaim")),
  PodTopologySpread: nodes("NodeDelete", NODE_LABEL, ...ofPods("Add", "Delete", "UpdatePodLabel", "UpdatePodToleration")),
  InterPodAffinity: nodes(NODE_LABEL, ...ofPods("Add", "Delete", "UpdatePodLabel")),
  VolumeRestrictions: nodes(CLAIM_ADD, ...ofPods("Delete")),
  NodeVolumeLimits: new Set([...CSI_NODES, CLAIM_ADD, "storage.k8s.io/VolumeAttachmentDelete", ...ofPods("Delete")]),
  VolumeZone: nodes(NODE_LABEL, CLASS_ADD, ...CLAIMS, ...VOLUMES),
  VolumeBinding: nodes(NODE_LABEL, CLASS_ADD, "storage.k8s.io/StorageClassUpdate", ...CLAIMS, ...VOLUMES, ...CSI_NODES, "storage.k8s.io/CSIDriverUpdate", "storage.k8s.io/CSIStorageCapacityAdd", "storage.k8s.io/CSIStorageCapacityUpdate"),
  DynamicResources: nodes(
    NODE_LABEL, ALLOCATABLE, ...ofPods("UpdatePodGeneratedResourceClaim"), ...DEVICE_CLASSES, "resource.k8s.io/ResourceClaimAdd", "resource.k8s.io/ResourceClaimUpdate",
    "resource.k8s.io/ResourceSliceAdd", "resource.k8s.io/ResourceSliceUpdate",
  ),
};

function nodes(...more: readonly string[]): ReadonlySet<string> { return new Set([NODE_ADD, NODE_TAINT, ...more]); }

/** Of pods that have a node, and of the waiting one itself. */
function ofPods(...what: readonly string[]): string[] { return what.flatMap((one) => [`AssignedPod${one}`, `UnschedulablePod${one}`]); }
