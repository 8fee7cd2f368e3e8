/**
 * VolumeAttachments for volumes of CSI drivers that have to be attached: one for each node whose pods use the volume. The driver's attacher acts on them.
 *
 *   pods on a node ─▶ plan.ts ─▶ VolumeAttachment made ─▶ attacher: status.attached ─▶ Node status.volumesAttached ─▶ the kubelet mounts
 *   last pod gone, nothing mounted (Node status.volumesInUse) ─▶ off the Node's status, then deleted
 *
 * Disks of iSCSI targets have no VolumeAttachment: the Node's status alone says who may use them (plan-disks.ts).
 *
 * A node that does not answer keeps a volume for six minutes, or with --disable-force-detach-on-timeout for good; one with the taint out-of-service, or that is gone, loses it at once.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume-attachment-v1/
 * Source: kubernetes v1.36 pkg/controller/volume/attachdetach, pkg/volume/csi/csi_attacher.go
 */
import { createHash } from "node:crypto";
import type { AttachedVolume, Node, PersistentVolume, PersistentVolumeClaim, Pod } from "../../api/gen/core.v1.ts";
import type { VolumeAttachment } from "../../api/gen/storage.v1.ts";
import { keyOf, type NewObject, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNotFound } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { CSI_DRIVERS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, VOLUME_ATTACHMENTS } from "../../client/resources.ts";
import { sameValue } from "../conditions.ts";
import { type Controller, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { isTerminal } from "../pod-state.ts";
import { claimsOf } from "../volume/volume.ts";
import { ATTACH_MS, forcedBy, multiAttachMessage, type Pending, planNode, type Wanted } from "./plan.ts";
import { attachedDisks, type DiskPlan, planDisks } from "./plan-disks.ts";
import { wantedVolumes } from "./wanted.ts";

const AGAIN_MS = 5_000;
const ATTACHMENTS_BY_NODE: Index<VolumeAttachment> = { name: "node", valuesOf: ({ spec }) => [spec.nodeName] };
const ATTACHMENTS_BY_VOLUME: Index<VolumeAttachment> = { name: "volume", valuesOf: ({ spec }) => (spec.source.persistentVolumeName ? [spec.source.persistentVolumeName] : []) };
const NODES_BY_DISK: Index<Node> = { name: "attached disk", valuesOf: attachedDisks };
const PODS_BY_CLAIM: Index<Pod> = { name: "mounted claim", valuesOf: claimsOf };

/** Keys are those of nodes. */
export function attachDetachController({ client, informers, events, clock, metrics, forceDetach }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics"> & { readonly forceDetach?: boolean | undefined }): Controller {
  const pods = informers.of(PODS);
  const nodes = informers.of(NODES);
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const { volume, isAttached, usedOn, wantedOn, disksOn } = wantedVolumes(informers);
  const attachments = informers.of(VOLUME_ATTACHMENTS);
  const attachmentClient = client.resource(VOLUME_ATTACHMENTS);
  const recorder = events.from({ component: "attachdetach-controller" });
  const forced = metrics?.counter("attach_detach_controller_attachdetach_controller_forced_detaches", "[ALPHA] Number of times the A/D Controller performed a forced detach");
  const idleSince = new Map<string, number>(); // attachments nobody wants, by name, by uptime; disks by node and name
  const pendingSince = new Map<string, { readonly node: ObjectKey; readonly sinceMs: number; attempt?: string | undefined }>(); // attachments that are waited for, by name, by uptime; the last attempt that pods have been told of
  const granting = new Map<string, string>(); // disks by name: the node whose status is about to say so
  const waitingForDisks = new Set<ObjectKey>(); // nodes
  const told = new Set<string>(); // pods that know that their volume is elsewhere
  const nodesOf = (claim: Readonly<PersistentVolumeClaim>) => pods.by(PODS_BY_CLAIM, keyOf(claim)).flatMap(({ spec }) => (spec.nodeName ? [objectKey("", spec.nodeName)] : []));

  return {
    name: "attachdetach",
    workers: 4,
    watches: [
      mapped(pods, ({ object, old, deleted }) => {
        const settled = old !== undefined && !deleted && old.spec.nodeName === object.spec.nodeName && isTerminal(old) === isTerminal(object);
        return settled || !object.spec.nodeName || (claimsOf(object).length === 0 && !object.spec.volumes?.some(({ iscsi }) => iscsi)) ? [] : [objectKey("", object.spec.nodeName)];
      }),
      mapped(claims, ({ object, old }) => (old?.spec.volumeName === object.spec.volumeName ? [] : nodesOf(object))),
      mapped(attachments, ({ object, deleted }) => [objectKey("", object.spec.nodeName), ...(deleted ? waitingFor(object) : [])]),
      mapped(nodes, ({ object, old, deleted }) => (!deleted && old !== undefined && sameValue([old.status?.volumesInUse, old.status?.volumesAttached, old.spec.taints], [object.status?.volumesInUse, object.status?.volumesAttached, object.spec.taints]) ? [] : [keyOf(object), ...waitingForDisks])),
      mapped(informers.of(CSI_DRIVERS), () => [...nodes.list()].map(keyOf)),
    ],
    reads: [informers.of(PERSISTENT_VOLUMES)],
    async reconcile(key, { signal }): Promise<Next> {
      const node = nodes.get(key);
      const used = node ? usedOn(key) : [];
      const wanted = used.filter(isAttached);
      const here = attachments.by(ATTACHMENTS_BY_NODE, key);
      const { attach, blocked, pending, detach, attached, waiting } = planNode({
        node, wanted, attachments: here, volume, idleMs, pendingMs: (name) => pendingMs(name, key), forceDetach, released: new Set(used.filter((one) => !isAttached(one)).map((one) => one.volume.metadata.name)),
        elsewhere: (name) => attachments.by(ATTACHMENTS_BY_VOLUME, name).filter(({ spec }) => spec.nodeName !== key),
      });
      const disks = node ? planDisks({
        node, wanted: disksOn(key), forceDetach: forceDetach ?? true, idleMs: (name) => idleMs(`${key} ${name}`),
        elsewhere: (name) => [...nodes.by(NODES_BY_DISK, name).map(({ metadata }) => metadata.name), ...(granting.has(name) ? [granting.get(name)!] : [])].filter((one) => one !== key),
      }) : NO_DISKS;
      if (node) await reportWith(node, attached, disks, signal); // before the volume goes
      for (const one of detach) {
        const reason = forcedBy(node, idleMs(one.metadata.name), forceDetach ?? true);
        await remove(one, signal);
        if (reason) forced?.inc({ reason });
      }
      for (const one of attach) await make(one.volume, key, signal);
      for (const { wanted: one, by } of blocked) tell(one, by.map(({ spec }) => spec.nodeName));
      for (const one of pending) tellProblem(one);
      for (const [name, { node: its }] of pendingSince) if (its === key && !pending.some(({ attachment }) => attachment === name)) pendingSince.delete(name);
      for (const { wanted: { volume: one, pods: users }, nodes: by } of disks.blocked) if (one) tell({ volume: one, pods: users }, by);
      if (disks.blocked.length > 0) waitingForDisks.add(key);
      else waitingForDisks.delete(key);
      forget(here);
      for (const name of idleSince.keys()) if (name.startsWith(`${key} `) && !disks.idle.includes(name.slice(key.length + 1))) idleSince.delete(name);
      if (waiting || disks.idle.length > 0) return { againInMs: AGAIN_MS };
      return pending.length > 0 ? { againInMs: ATTACH_MS } : undefined;
    },
  };

  /** What nobody else may be told of meanwhile. */
  async function reportWith(node: Readonly<Node>, attached: readonly AttachedVolume[], disks: Pick<DiskPlan, "attached" | "granted">, signal: AbortSignal): Promise<void> {
    for (const { name } of disks.granted) granting.set(name, node.metadata.name);
    try {
      await report(node, [...attached, ...disks.attached.map((name) => ({ name, devicePath: "" }))].sort((a, b) => (a.name < b.name ? -1 : 1)), signal);
    } finally {
      for (const { name } of disks.granted) granting.delete(name);
    }
    for (const { volume: one, pods: users } of disks.granted) if (one) for (const pod of users) recorder.event(pod, "Normal", "SuccessfulAttachVolume", attachedMessage(one.metadata.name));
  }

  /** Nodes whose pods may want the volume that has just left another. */
  function waitingFor({ spec }: Readonly<VolumeAttachment>): ReturnType<typeof nodesOf> {
    const { claimRef } = volume(spec.source.persistentVolumeName ?? "")?.spec ?? {};
    const claim = claimRef && claims.get(objectKey(claimRef.namespace ?? "", claimRef.name ?? ""));
    return claim ? nodesOf(claim) : [];
  }

  function idleMs(name: string): number {
    const sinceMs = idleSince.get(name) ?? clock.uptimeMs();
    idleSince.set(name, sinceMs);
    return clock.uptimeMs() - sinceMs;
  }

  function pendingMs(name: string, node: ObjectKey): number {
    const { sinceMs } = pendingSince.get(name) ?? { sinceMs: clock.uptimeMs() };
    if (!pendingSince.has(name)) pendingSince.set(name, { node, sinceMs });
    return clock.uptimeMs() - sinceMs;
  }

  function tellProblem({ wanted: { volume: one, pods: users }, attachment, problem, attempt }: Pending): void {
    const since = pendingSince.get(attachment);
    if (problem === undefined || since?.attempt === attempt) return;
    if (since) since.attempt = attempt;
    for (const pod of users) recorder.event(pod, "Warning", "FailedAttachVolume", `AttachVolume.Attach failed for volume "${one.metadata.name}" : ${problem}`);
  }

  function forget(here: readonly Readonly<VolumeAttachment>[]): void {
    for (const { metadata: { name }, spec } of here) if (wantedOn(spec.nodeName).some((one) => one.volume.metadata.name === spec.source.persistentVolumeName)) idleSince.delete(name);
  }

  async function report(node: Readonly<Node>, next: readonly AttachedVolume[], signal: AbortSignal): Promise<void> {
    const before = node.status?.volumesAttached ?? [];
    if (sameValue([...before].sort((a, b) => (a.name < b.name ? -1 : 1)), next)) return;
    const written = await client.resource(NODES).patch(node, "application/merge-patch+json", { status: { volumesAttached: next.length > 0 ? next : null } }, { signal, subresource: "status" });
    for (const { name } of next.filter((one) => !before.some((old) => old.name === one.name))) succeeded(node.metadata.name, name);
    await nodes.caughtUp([written], signal);
  }

  function succeeded(node: string, name: string): void {
    for (const { volume: one, pods: users } of wantedOn(node))
      if (name.endsWith(`^${one.spec.csi!.volumeHandle}`)) for (const pod of users) recorder.event(pod, "Normal", "SuccessfulAttachVolume", attachedMessage(one.metadata.name));
  }

  async function make(one: Readonly<PersistentVolume>, node: string, signal: AbortSignal): Promise<void> {
    try {
      await attachments.caughtUp([await attachmentClient.create(attachmentFor(one, node), { signal })], signal);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error; // the informer will have it soon
    }
  }

  async function remove(one: Readonly<VolumeAttachment>, signal: AbortSignal): Promise<void> {
    idleSince.delete(one.metadata.name);
    await attachmentClient.delete(one, { preconditions: { uid: one.metadata.uid } }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    await attachments.sawDeleted([one], signal);
  }

  function tell({ volume: one, pods: waiting }: Wanted, by: readonly string[]): void {
    const others = new Set(by);
    const { claimRef } = one.spec;
    const users = claimRef ? pods.by(PODS_BY_CLAIM, objectKey(claimRef.namespace ?? "", claimRef.name ?? "")).filter(({ spec }) => others.has(spec.nodeName ?? "")) : [];
    for (const pod of waiting) {
      const once = `${pod.metadata.uid} ${one.metadata.name}`;
      if (told.has(once)) continue;
      told.add(once);
      recorder.event(pod, "Warning", "FailedAttachVolume", multiAttachMessage(pod, one.metadata.name, users));
    }
  }
}

const NO_DISKS: DiskPlan = { attached: [], granted: [], blocked: [], idle: [] };

function attachedMessage(volume: string): string {
  return `AttachVolume.Attach succeeded for volume "${volume}" `;
}

/** The name every attacher and kubelet expects. */
export function attachmentName(handle: string, driver: string, node: string): string {
  return `csi-${createHash("sha256").update(`${handle}${driver}${node}`).digest("hex")}`;
}

function attachmentFor({ metadata, spec }: Readonly<PersistentVolume>, node: string): NewObject<VolumeAttachment> {
  const { driver, volumeHandle } = spec.csi!;
  return { apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volumeHandle, driver, node) }, spec: { attacher: driver, nodeName: node, source: { persistentVolumeName: metadata.name } } };
}
