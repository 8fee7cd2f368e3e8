/**
 * What happens in a cluster that can make a pod fit which did not fit before. Filters judge a change by `mayHelp`.
 *
 * Source: kubernetes v1.36 pkg/scheduler/eventhandlers.go, framework/events.go
 */
import type { Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod } from "../api/gen/core.v1.ts";
import type { DeviceClass, ResourceClaim, ResourceSlice } from "../api/gen/resource.v1.ts";
import type { CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment } from "../api/gen/storage.v1.ts";

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
  | ({ readonly of: "device class" } & Changed<DeviceClass>);

/** Upstream's word for it, as metrics name it: "NodeAdd", "AssignedPodDelete". */
export function nameOf({ of, old, deleted }: ClusterChange): string {
  return `${RESOURCES[of]}${deleted ? "Delete" : old ? "Update" : "Add"}`;
}

const RESOURCES: Readonly<Record<ClusterChange["of"], string>> = {
  "node": "Node", "placed pod": "AssignedPod", "pod": "UnscheduledPod", "namespace": "Namespace", "claim": "PersistentVolumeClaim", "volume": "PersistentVolume",
  "storage class": "StorageClass", "CSI node": "CSINode", "CSI driver": "CSIDriver", "storage capacity": "CSIStorageCapacity", "attachment": "VolumeAttachment",
  "resource claim": "ResourceClaim", "resource slice": "ResourceSlice", "device class": "DeviceClass",
};

/** A node is new, or what `part` picks of it has changed. */
export function nodeChanged(change: ClusterChange, part: (node: Readonly<Node>) => unknown): boolean {
  return change.of === "node" && !change.deleted && (change.old === undefined || !Bun.deepEquals(part(change.object), part(change.old)));
}

export const isPlacedPodGone = (change: ClusterChange): boolean => change.of === "placed pod" && change.deleted;
