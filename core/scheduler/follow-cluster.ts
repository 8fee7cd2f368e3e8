/** What happens in the cluster, told to the snapshot and to the queue: nodes, pods, and all else that decides where a pod can go. */
import type { Pod } from "../api/gen/core.v1.ts";
import { isDeleting, keyOf } from "../api/meta/object-meta.ts";
import { CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, DEVICE_CLASSES, DEVICE_TAINT_RULES, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, STORAGE_CLASSES, VOLUME_ATTACHMENTS } from "../client/resources.ts";
import type { Binder } from "./binder.ts";
import { type ClusterChange, eventsOf } from "./changes.ts";
import { OWNER_RESOURCES } from "./cluster.ts";
import { deviceResources } from "./devices/claims.ts";
import { isAbout } from "./devices/taint-rules.ts";
import type { Parts } from "./parts.ts";
import { groupOf } from "./pod-groups.ts";
import { countsTheSame, isEnded } from "./snapshot.ts";

const SOURCES = [
  NODES, PODS, ...OWNER_RESOURCES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS, CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS, POD_DISRUPTION_BUDGETS,
] as const;

/** Resolves once everything is known, with what ends it. */
export async function followCluster(parts: Parts, binder: Binder, signal: AbortSignal): Promise<() => void> {
  const { deps: { informers, explainer, gates }, snapshot, cluster, queue, volumes, groups } = parts;
  await Promise.all([...SOURCES, ...deviceResources(gates), ...(groups ? [POD_GROUPS] : [])].map((ref) => informers.of(ref as typeof NAMESPACES).whenSynced(signal)));
  if (signal.aborted) return () => {};
  const changed = (change: ClusterChange): void => parts.changed(change);
  const storageChanged = (change: ClusterChange): void => {
    volumes.changed();
    changed(change);
  };
  const stops = [
    explainer?.attach({ snapshot, cluster, standing: (key) => queue.standing(key), groups }),
    informers.of(NODES).onChange((change) => nodeChanged(parts, { of: "node", ...change })),
    informers.of(PODS).onChange(({ object, old, deleted }) => handling(parts, podEvents(parts, { object, old, deleted }), () => {
      const isNew = !deleted && joins(parts, object);
      if (deleted) podGone(parts, binder, object, old);
      else podChanged(parts, binder, object, old);
      if (isNew) queue.regate(object.spec.nodeName ? "AssignedPodAdd" : "UnschedulablePodAdd", groups?.keysOf(groupOf(object)!)); // it may be the one its group has waited for
    })),
    informers.of(NAMESPACES).onChange((change) => changed({ of: "namespace", ...change })),
    informers.of(PERSISTENT_VOLUME_CLAIMS).onChange((change) => {
      cluster.storage.claims.told(change.object);
      storageChanged({ of: "claim", ...change });
    }),
    informers.of(PERSISTENT_VOLUMES).onChange((change) => {
      cluster.storage.volumes.told(change.object);
      storageChanged({ of: "volume", ...change });
    }),
    informers.of(STORAGE_CLASSES).onChange((change) => changed({ of: "storage class", ...change })),
    informers.of(CSI_NODES).onChange((change) => changed({ of: "CSI node", ...change })),
    informers.of(CSI_DRIVERS).onChange((change) => changed({ of: "CSI driver", ...change })),
    informers.of(CSI_STORAGE_CAPACITIES).onChange((change) => changed({ of: "storage capacity", ...change })),
    informers.of(VOLUME_ATTACHMENTS).onChange((change) => changed({ of: "attachment", ...change })),
    informers.of(RESOURCE_CLAIMS).onChange((change) => {
      cluster.devices.claims.told(change.object);
      if (change.deleted || change.object.status?.allocation) cluster.devices.pending.delete(change.object.metadata.uid);
      const claimChange: ClusterChange = { of: "resource claim", ...change };
      for (const event of eventsOf(claimChange)) queue.regate(event);
      changed(claimChange);
    }),
    informers.of(RESOURCE_SLICES).onChange((change) => changed({ of: "resource slice", ...change })),
    informers.of(DEVICE_CLASSES).onChange((change) => changed({ of: "device class", ...change })),
    groups && informers.of(POD_GROUPS).onChange((change) => {
      if (!change.deleted && !change.old) queue.regate("scheduling.k8s.io/PodGroupAdd", groups.keysOf(keyOf(change.object)));
      changed({ of: "pod group", ...change });
    }),
    gates?.has("DRADeviceTaintRules") ? informers.of(DEVICE_TAINT_RULES).onChange(({ object, old, deleted }) => {
      if (old && !deleted && Bun.deepEquals(old.spec, object.spec)) return; // its status alone
      for (const slice of informers.of(RESOURCE_SLICES).list()) if (isAbout(object, slice) || (old && isAbout(old, slice))) changed({ of: "resource slice", object: slice, old: slice, deleted: false });
    }) : undefined,
  ];
  return () => {
    for (const stop of stops) stop?.();
  };
}

function nodeChanged(parts: Parts, change: ClusterChange & { readonly of: "node" }): void {
  if (change.deleted) parts.snapshot.removeNode(change.object.metadata.name);
  else parts.snapshot.setNode(change.object);
  parts.changed(change);
}

/** How long what `does` takes counts under each of `events`. */
function handling(parts: Parts, events: readonly string[], does: () => void): void {
  const { deps: { clock }, metrics } = parts;
  const startMs = clock.uptimeMs();
  does();
  for (const event of events) metrics.handled(event, clock.uptimeMs() - startMs);
}

/** Upstream's words for what happens to a pod, but for those that Parts.changed counts. */
function podEvents(parts: Parts, { object: pod, old, deleted }: { readonly object: Readonly<Pod>; readonly old?: Readonly<Pod> | undefined; readonly deleted: boolean }): readonly string[] {
  const waited = old !== undefined && parts.isWaiting(old);
  if (deleted || !parts.isWaiting(pod)) return waited || (deleted && parts.isWaiting(pod)) ? ["UnschedulablePodDelete"] : old?.spec.nodeName && !isEnded(pod) && countsTheSame(old, pod) ? ["AssignedPodUpdate"] : [];
  if (!old) return ["UnschedulablePodAdd"];
  return [...new Set(["UnschedulablePodUpdate", ...eventsOf({ of: "pod", object: pod, old, deleted: false })])];
}

/** Whether it is one of a group from now on. Pods that another scheduler is to give a node to are not, until they have one. */
function joins(parts: Parts, pod: Readonly<Pod>): boolean {
  return parts.groups !== undefined && !isEnded(pod) && (pod.spec.nodeName ? true : parts.profileOf(pod) !== undefined) && parts.groups.set(pod);
}

function podGone(parts: Parts, binder: Binder, pod: Readonly<Pod>, old: Readonly<Pod> | undefined): void {
  const { snapshot, queue } = parts;
  const nominated = snapshot.nominatedNodeOf(pod) !== undefined, assumed = snapshot.isAssumed(pod);
  snapshot.removePod(pod);
  parts.groups?.delete(pod);
  queue.remove(keyOf(pod));
  binder.forget(pod);
  const change: ClusterChange = { of: "placed pod", object: pod, old, deleted: true };
  if (assumed || (pod.spec.nodeName && !isEnded(pod))) parts.changed(change); // also while it is being bound: that may take a while to fail
  else if (nominated) parts.changed(change, notAbove(pod));
}

/** Pods that a nomination of `pod` kept off its node: those that are no more important. */
function notAbove(pod: Readonly<Pod>): (other: Readonly<Pod>) => boolean {
  return (other) => (other.spec.priority ?? 0) <= (pod.spec.priority ?? 0);
}

/** It is being deleted while it waits for its volumes: it will not be bound any more, and others may have its place. */
function letGo(parts: Parts, pod: Readonly<Pod>): void {
  parts.snapshot.forget(pod);
  parts.snapshot.denominate(pod);
  parts.changed({ of: "placed pod", object: pod, deleted: true });
}

function podChanged(parts: Parts, binder: Binder, pod: Readonly<Pod>, old: Readonly<Pod> | undefined): void {
  const { snapshot, queue } = parts;
  if (!pod.spec.nodeName && !parts.profileOf(pod)) return; // where another scheduler would have it is that one's business
  if (!pod.spec.nodeName && isEnded(pod)) return podGone(parts, binder, pod, old);
  if (parts.isWaiting(pod) && snapshot.isAssumed(pod)) return void (isDeleting(pod) && letGo(parts, pod)); // it counts where it is to be
  snapshot.setPod(pod, old);
  if (parts.isWaiting(pod)) {
    queue.add(pod);
    if (old?.status?.nominatedNodeName && old.status.nominatedNodeName !== pod.status?.nominatedNodeName) parts.changed({ of: "placed pod", object: old, deleted: true }, notAbove(old)); // its place is free
    return;
  }
  queue.remove(keyOf(pod));
  if (isEnded(pod)) {
    parts.groups?.delete(pod);
    if (old && !isEnded(old)) parts.changed({ of: "placed pod", object: pod, old, deleted: true });
  } else if (!old?.spec.nodeName) parts.changed({ of: "placed pod", object: pod, deleted: false });
  else if (!countsTheSame(old, pod)) parts.changed({ of: "placed pod", object: pod, old, deleted: false });
}
