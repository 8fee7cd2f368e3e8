/**
 * VolumeAttachments for volumes of CSI drivers that have to be attached: one for each node whose pods use the volume. The driver's attacher acts on them.
 *
 *   pods on a node ─▶ plan.ts ─▶ VolumeAttachment made ─▶ attacher: status.attached ─▶ Node status.volumesAttached ─▶ the kubelet mounts
 *   last pod gone, nothing mounted (Node status.volumesInUse) ─▶ off the Node's status, then deleted
 *
 * Disks of iSCSI targets have no VolumeAttachment: the Node's status alone says who may use them (plan-disks.ts).
 *
 * Nodes without the kubelet's annotation that leaves it to us see to it themselves, and are left alone.
 * A node that does not answer keeps a volume for six minutes, or with --disable-force-detach-on-timeout for good; one with the taint out-of-service loses it at once.
 * One that is gone has what it had mounted as one that does not answer: its machine may run on, and its Node come back. The rest it loses at once.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume-attachment-v1/
 * Source: kubernetes v1.36 pkg/controller/volume/attachdetach, pkg/volume/csi/csi_attacher.go
 */
import type { AttachedVolume, Node, PersistentVolume, PersistentVolumeClaim, Pod } from "../../api/gen/core.v1.ts";
import type { VolumeAttachment } from "../../api/gen/storage.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { annotationsOf, keyOf, type NewObject, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { CSI_DRIVERS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, VOLUME_ATTACHMENTS } from "../../client/resources.ts";
import { settleEach } from "../../lifecycle/settle-all.ts";
import { sameValue } from "../conditions.ts";
import { type Controller, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { claimsOf } from "../pod-state.ts";
import { isDoneWithVolumes } from "../volume/volume.ts";
import { attachCounts } from "./attach-counts.ts";
import { ATTACH_MS, attachmentName, forcedBy, type NodePlan, planNode } from "./plan.ts";
import { attachedDisks, type DiskPlan, disksInUse, keptOfGone, planDisks } from "./plan-disks.ts";
import { toldPods } from "./told-pods.ts";
import { diskKey, waits as waitsBy } from "./waits.ts";
import { wantedVolumes } from "./wanted.ts";

const AGAIN_MS = 5_000;
const LEFT_TO_US = "volumes.kubernetes.io/controller-managed-attach-detach";
const ATTACHMENTS_BY_NODE: Index<VolumeAttachment> = { name: "node", valuesOf: ({ spec }) => [spec.nodeName] };
const ATTACHMENTS_BY_VOLUME: Index<VolumeAttachment> = { name: "volume", valuesOf: ({ spec }) => (spec.source.persistentVolumeName ? [spec.source.persistentVolumeName] : []) };
const NODES_BY_DISK: Index<Node> = { name: "attached disk", valuesOf: attachedDisks };
const PODS_BY_CLAIM: Index<Pod> = { name: "mounted claim", valuesOf: claimsOf };

/** Keys are those of nodes. */
export function attachDetachController({ client, informers, events, clock, metrics, forceDetach = true }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics"> & { readonly forceDetach?: boolean | undefined }): Controller {
  const pods = informers.of(PODS);
  const nodes = informers.of(NODES);
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const wanted = wantedVolumes(informers);
  const { volume, isAttached, usedOn, wantedOn, disksOn } = wanted;
  const attachments = informers.of(VOLUME_ATTACHMENTS);
  const attachmentClient = client.resource(VOLUME_ATTACHMENTS);
  const waits = waitsBy(clock);
  const told = toldPods({ recorder: events.from({ component: "attachdetach-controller" }), waits, podsOfClaim: (claim) => pods.by(PODS_BY_CLAIM, claim).filter((pod) => !isDoneWithVolumes(pod)) });
  const forced = metrics?.counter("attach_detach_controller_attachdetach_controller_forced_detaches", "[ALPHA] Number of times the A/D Controller performed a forced detach");
  if (metrics) attachCounts(metrics, { pods: () => pods.list(), nodes: () => nodes.list(), attachments: () => attachments.list(), volumes: wanted });
  const granting = new Map<string, string>(); // disks by name: the node whose status is about to say so
  const waitingForDisks = new Set<ObjectKey>(); // nodes
  const ofGone = new Map<ObjectKey, readonly string[]>(); // by node whose Node is gone: disks it may use still
  const lastInUse = new Map<ObjectKey, readonly string[]>(); // by node, of those that use any
  const nodesOf = (claim: Readonly<PersistentVolumeClaim>) => pods.by(PODS_BY_CLAIM, keyOf(claim)).flatMap(({ spec }) => (spec.nodeName ? [objectKey("", spec.nodeName)] : []));

  return {
    name: "attachdetach",
    workers: 4,
    watches: [
      mapped(pods, ({ object, old, deleted }) => {
        const settled = old !== undefined && !deleted && old.spec.nodeName === object.spec.nodeName && isDoneWithVolumes(old) === isDoneWithVolumes(object);
        return settled || !object.spec.nodeName || (claimsOf(object).length === 0 && !object.spec.volumes?.some(({ iscsi }) => iscsi)) ? [] : [objectKey("", object.spec.nodeName)];
      }),
      mapped(claims, ({ object, old }) => (old?.spec.volumeName === object.spec.volumeName ? [] : nodesOf(object))),
      mapped(attachments, ({ object, deleted }) => [objectKey("", object.spec.nodeName), ...(deleted ? waitingFor(object) : [])]),
      mapped(nodes, ({ object, old, deleted }) => {
        const used = deleted && isLeftToUs(object) ? disksInUse(object) : [];
        if (used.length > 0) ofGone.set(keyOf(object), used);
        return !deleted && old !== undefined && sameValue(whatMatters(old), whatMatters(object)) ? [] : [keyOf(object), ...waitingForDisks];
      }),
      mapped(informers.of(CSI_DRIVERS), () => [...nodes.list()].map(keyOf)),
    ],
    reads: [informers.of(PERSISTENT_VOLUMES)],
    async reconcile(key, { signal }): Promise<Next> {
      const node = nodes.get(key);
      if (node && !isLeftToUs(node)) return;
      if (node?.status?.volumesInUse?.length) lastInUse.set(key, node.status.volumesInUse);
      else if (node || attachments.by(ATTACHMENTS_BY_NODE, key).length === 0) lastInUse.delete(key);
      const plan = planned(key, node);
      const kept = ofGone.get(key);
      const disks = node ? plannedDisks(key, withDisks(node, kept)) : disksOfGone(key);
      if (node) await reportWith(node, plan.attached, disks, signal); // before the volume goes
      if (node && ofGone.get(key) === kept) ofGone.delete(key); // else it has gone meanwhile
      for (const name of disks.released) countForced(node, diskKey(key, name));
      const changes = [...plan.detach.map((one) => () => remove(one, node, signal)), ...plan.attach.map((one) => () => make(one.volume, key, signal))];
      await settleEach(changes, 1, (change) => change()).finally(() => tell(plan, disks)); // what is refused of one volume keeps no other from its pods
      if (disks.blocked.length > 0) waitingForDisks.add(key);
      else waitingForDisks.delete(key);
      waits.pendingOnes(key, plan.pending.map(({ attachment }) => attachment));
      for (const name of attachedAsWanted(key)) waits.notIdle(name);
      waits.idleDisks(key, disks.idle);
      if (plan.waiting || disks.idle.length > 0 || (disks.blocked.length > 0 && ofGone.size > 0)) return { againInMs: AGAIN_MS };
      return plan.pending.length > 0 ? { againInMs: ATTACH_MS } : undefined;
    },
  };

  function planned(key: ObjectKey, node: Readonly<Node> | undefined): NodePlan {
    const used = node || lastInUse.has(key) ? usedOn(key) : [];
    return planNode({
      node, lastInUse: lastInUse.get(key), wanted: used.filter(isAttached), attachments: attachments.by(ATTACHMENTS_BY_NODE, key), volume, idleMs: waits.idleMs, pendingMs: (name) => waits.pendingMs(name, key), forceDetach,
      released: new Set(used.filter((one) => !isAttached(one)).map((one) => one.volume.metadata.name)),
      elsewhere: (name) => attachments.by(ATTACHMENTS_BY_VOLUME, name).filter(({ spec }) => spec.nodeName !== key),
    });
  }

  function plannedDisks(key: ObjectKey, node: Readonly<Node>): DiskPlan {
    return planDisks({
      node, wanted: disksOn(key), forceDetach, idleMs: (name) => waits.idleMs(diskKey(key, name)),
      elsewhere: (name) => [
        ...nodes.by(NODES_BY_DISK, name).map(({ metadata }) => metadata.name), ...(granting.has(name) ? [granting.get(name)!] : []),
        ...[...ofGone].flatMap(([gone, names]) => (names.includes(name) ? [gone] : [])),
      ].filter((one) => one !== key),
    });
  }

  function disksOfGone(key: ObjectKey): DiskPlan {
    const before = ofGone.get(key) ?? [], wanted = disksOn(key);
    for (const { name } of wanted) waits.notIdle(diskKey(key, name));
    const kept = keptOfGone(before, { wanted, forceDetach, idleMs: (name) => waits.idleMs(diskKey(key, name)) });
    if (kept.length > 0) ofGone.set(key, kept);
    else ofGone.delete(key);
    return { ...NO_DISKS, idle: kept, released: before.filter((name) => !kept.includes(name)) };
  }

  function tell({ blocked, pending }: NodePlan, disks: DiskPlan): void {
    for (const { wanted, by } of blocked) told.elsewhere(wanted, by.map(({ spec }) => spec.nodeName));
    for (const one of pending) told.problem(one);
    for (const { wanted: { volume: one, pods: users }, nodes: by } of disks.blocked) if (one) told.elsewhere({ volume: one, pods: users }, by);
  }

  /** What nobody else may be told of meanwhile. */
  async function reportWith(node: Readonly<Node>, attached: readonly AttachedVolume[], disks: Pick<DiskPlan, "attached" | "granted">, signal: AbortSignal): Promise<void> {
    for (const { name } of disks.granted) granting.set(name, node.metadata.name);
    try {
      await report(node, [...attached, ...disks.attached.map((name) => ({ name, devicePath: "" }))].sort((a, b) => (a.name < b.name ? -1 : 1)), signal);
    } finally {
      for (const { name } of disks.granted) granting.delete(name);
    }
    for (const { volume: one, pods: users } of disks.granted) if (one) told.attached({ volume: one, pods: users });
  }

  async function report(node: Readonly<Node>, next: readonly AttachedVolume[], signal: AbortSignal): Promise<void> {
    const before = node.status?.volumesAttached ?? [];
    if (sameValue([...before].sort((a, b) => (a.name < b.name ? -1 : 1)), next)) return;
    const written = await client.resource(NODES).patch(node, "application/merge-patch+json", { status: { volumesAttached: next.length > 0 ? next : null } }, { signal, subresource: "status" });
    const had = new Set(before.map(({ name }) => name)), fresh = next.filter(({ name }) => !had.has(name));
    for (const { name } of fresh) for (const one of wantedOn(node.metadata.name)) if (name.endsWith(`^${one.volume.spec.csi!.volumeHandle}`)) told.attached(one);
    await nodes.caughtUp([written], signal);
  }

  /** Names of the node's attachments that its pods want. */
  function attachedAsWanted(key: ObjectKey): string[] {
    const wanted = new Set(wantedOn(key).map((one) => one.volume.metadata.name));
    return attachments.by(ATTACHMENTS_BY_NODE, key).filter(({ spec }) => wanted.has(spec.source.persistentVolumeName ?? "")).map(({ metadata }) => metadata.name);
  }

  /** Nodes whose pods may want the volume that has just left another. */
  function waitingFor({ spec }: Readonly<VolumeAttachment>): ReturnType<typeof nodesOf> {
    const { claimRef } = volume(spec.source.persistentVolumeName ?? "")?.spec ?? {};
    const claim = claimRef && claims.get(objectKey(claimRef.namespace ?? "", claimRef.name ?? ""));
    return claim ? nodesOf(claim) : [];
  }

  async function make(one: Readonly<PersistentVolume>, node: string, signal: AbortSignal): Promise<void> {
    try {
      await attachments.caughtUp([await attachmentClient.create(attachmentFor(one, node), { signal })], signal);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error; // the informer will have it soon
    }
  }

  async function remove(one: Readonly<VolumeAttachment>, node: Readonly<Node> | undefined, signal: AbortSignal): Promise<void> {
    const { name, uid } = one.metadata;
    await ifFound(attachmentClient.delete(one, { preconditions: { uid } }, { signal }));
    countForced(node, name);
    await attachments.sawDeleted([one], signal);
  }

  /** What the node no longer has, whether it has given it back or not. */
  function countForced(node: Readonly<Node> | undefined, name: string): void {
    const reason = forcedBy(node, waits.idleMs(name), forceDetach);
    if (reason) forced?.inc({ reason });
    waits.notIdle(name);
  }
}

/** One that is back, and has not been told yet what it may use. */
function withDisks(node: Readonly<Node>, names: readonly string[] = []): Readonly<Node> {
  const attached = new Set(attachedDisks(node)), missing = names.filter((name) => !attached.has(name));
  return missing.length === 0 ? node : { ...node, status: { ...node.status, volumesAttached: [...node.status?.volumesAttached ?? [], ...missing.map((name) => ({ name, devicePath: "" }))] } };
}

function isLeftToUs(node: Readonly<Node>): boolean { return annotationsOf(node)[LEFT_TO_US] !== undefined; }

function whatMatters(node: Readonly<Node>): unknown { return [isLeftToUs(node), node.status?.volumesInUse, node.status?.volumesAttached, node.spec.taints]; }

const NO_DISKS: DiskPlan = { attached: [], granted: [], blocked: [], idle: [], released: [] };

function attachmentFor({ metadata, spec }: Readonly<PersistentVolume>, node: string): NewObject<VolumeAttachment> {
  const { driver, volumeHandle } = spec.csi!;
  return { apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volumeHandle, driver, node) }, spec: { attacher: driver, nodeName: node, source: { persistentVolumeName: metadata.name } } };
}
