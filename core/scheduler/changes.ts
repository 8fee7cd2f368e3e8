/**
 * What happens in a cluster that can make a pod fit which did not fit before. Filters judge a change by `mayHelp`.
 *
 * Source: kubernetes v1.36 pkg/scheduler/eventhandlers.go, framework/events.go
 */
import type { Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod } from "../api/gen/core.v1.ts";
import type { DeviceClass, ResourceClaim, ResourceSlice } from "../api/gen/resource.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import type { CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment } from "../api/gen/storage.v1.ts";
import { annotationsOf, labelsOf } from "../api/meta/object-meta.ts";
import { podRequests, type Requests } from "./pod-requests.ts";

interface Changed<T> {
  readonly object: Readonly<T>;
  /** Absent: it is new (or, with `deleted`, gone). */
  readonly old?: Readonly<T> | undefined;
  readonly deleted: boolean;
}

export type ClusterChange =
  | ({ readonly of: "node" } & Changed<Node>)
  /** A pod that has a node. Ended counts as deleted. */
  | ({ readonly of: "placed pod" } & Changed<Pod>)
  /** The waiting pod itself. */
  | ({ readonly of: "pod" } & Changed<Pod>)
  | ({ readonly of: "namespace" } & Changed<Namespace>)
  | ({ readonly of: "claim" } & Changed<PersistentVolumeClaim>)
  | ({ readonly of: "volume" } & Changed<PersistentVolume>)
  | ({ readonly of: "storage class" } & Changed<StorageClass>)
  | ({ readonly of: "CSI node" } & Changed<CSINode>)
  | ({ readonly of: "CSI driver" } & Changed<CSIDriver>)
  | ({ readonly of: "storage capacity" } & Changed<CSIStorageCapacity>)
  | ({ readonly of: "attachment" } & Changed<VolumeAttachment>)
  | ({ readonly of: "resource claim" } & Changed<ResourceClaim>)
  | ({ readonly of: "resource slice" } & Changed<ResourceSlice>)
  | ({ readonly of: "device class" } & Changed<DeviceClass>)
  | ({ readonly of: "pod group" } & Changed<PodGroup>);

/**
 * Upstream's words for it, as metrics name it: "NodeAdd", "AssignedPodDelete". A node or a pod that has changed may have done so in several ways; a node, in none that matter.
 *
 * Source: framework/events.go NodeSchedulingPropertiesChange, PodSchedulingPropertiesChange
 */
export function eventsOf(change: ClusterChange): readonly string[] {
  const { of, old, deleted } = change;
  const resource = RESOURCES[of];
  if (deleted) return [`${resource}Delete`];
  if (!old) return [`${resource}Add`];
  if (change.of === "node") return NODE_UPDATES.flatMap(([event, has]) => (has(change.object, change.old!) ? [`NodeUpdate${event}`] : []));
  if (change.of !== "pod" && change.of !== "placed pod") return [`${resource}Update`];
  const ways = POD_UPDATES.flatMap(([event, has]) => (has(change.object, change.old!) ? [`${resource}Update${event}`] : []));
  return ways.length > 0 ? ways : [`${resource}Update`];
}

export const NODE_ADD = "NodeAdd";
/** A node's taints are others, or it takes pods again. */
export const NODE_TAINT = "NodeUpdateNodeTaint";

const NODE_UPDATES: readonly (readonly [event: string, has: (node: Readonly<Node>, old: Readonly<Node>) => boolean])[] = [
  ["NodeAllocatable", (node, old) => !Bun.deepEquals(node.status?.allocatable, old.status?.allocatable)],
  ["NodeLabel", (node, old) => !Bun.deepEquals(labelsOf(node), labelsOf(old))],
  ["NodeTaint", (node, old) => (old.spec.unschedulable === true && !node.spec.unschedulable) || !Bun.deepEquals(node.spec.taints ?? [], old.spec.taints ?? [])],
  ["NodeCondition", (node, old) => !Bun.deepEquals(conditions(node), conditions(old))],
  ["NodeAnnotation", (node, old) => !Bun.deepEquals(annotationsOf(node), annotationsOf(old))],
  ["NodeDeclaredFeature", (node, old) => !Bun.deepEquals(node.status?.declaredFeatures ?? [], old.status?.declaredFeatures ?? [])],
];

function conditions({ status }: Readonly<Node>): Record<string, string> {
  return Object.fromEntries((status?.conditions ?? []).map((condition) => [condition.type, condition.status]));
}

const POD_UPDATES: readonly (readonly [event: string, has: (pod: Readonly<Pod>, old: Readonly<Pod>) => boolean])[] = [
  ["PodLabel", (pod, old) => !Bun.deepEquals(labelsOf(pod), labelsOf(old))],
  ["PodScaleDown", (pod, old) => (pod.spec !== old.spec || pod.status !== old.status) && asksForLess(podRequests(old), podRequests(pod))],
  ["PodSchedulingGatesEliminated", (pod, old) => (pod.spec.schedulingGates ?? []).length === 0 && (old.spec.schedulingGates ?? []).length > 0],
  ["PodToleration", (pod, old) => (pod.spec.tolerations ?? []).length !== (old.spec.tolerations ?? []).length],
  ["PodGeneratedResourceClaim", (pod, old) => !Bun.deepEquals(pod.status?.resourceClaimStatuses, old.status?.resourceClaimStatuses) || !Bun.deepEquals(pod.status?.extendedResourceClaimStatus, old.status?.extendedResourceClaimStatus)],
];

/** Of anything, or of what `matters`. */
export function asksForLess(before: Requests, after: Requests, matters?: Requests): boolean {
  return Object.entries(before).some(([name, amount]) => (after[name] ?? 0) < amount && (!matters || (matters[name] ?? 0) > 0));
}

const RESOURCES: Readonly<Record<ClusterChange["of"], string>> = {
  "node": "Node", "placed pod": "AssignedPod", "pod": "UnschedulablePod", "namespace": "Namespace", "claim": "PersistentVolumeClaim", "volume": "PersistentVolume",
  "storage class": "storage.k8s.io/StorageClass", "CSI node": "storage.k8s.io/CSINode", "CSI driver": "storage.k8s.io/CSIDriver", "storage capacity": "storage.k8s.io/CSIStorageCapacity", "attachment": "storage.k8s.io/VolumeAttachment",
  "resource claim": "resource.k8s.io/ResourceClaim", "resource slice": "resource.k8s.io/ResourceSlice", "device class": "resource.k8s.io/DeviceClass", "pod group": "scheduling.k8s.io/PodGroup",
};

/** A node is new, or what `part` picks of it has changed. */
export function nodeChanged(change: ClusterChange, part: (node: Readonly<Node>) => unknown): boolean {
  return change.of === "node" && !change.deleted && (change.old === undefined || !Bun.deepEquals(part(change.object), part(change.old)));
}

export const isPlacedPodGone = (change: ClusterChange): boolean => change.of === "placed pod" && change.deleted;
