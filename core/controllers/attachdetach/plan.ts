/**
 * Which volumes of CSI drivers are to be attached to a node, and which may be taken off it. Pure.
 *
 * Source: kubernetes v1.36 pkg/controller/volume/attachdetach/reconciler/reconciler.go, pkg/volume/csi/csi_attacher.go
 */
import { createHash } from "node:crypto";
import type { AttachedVolume, Node, PersistentVolume, Pod } from "../../api/gen/core.v1.ts";
import type { VolumeAttachment } from "../../api/gen/storage.v1.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { isDeleting, namespaceOf } from "../../api/meta/object-meta.ts";

/** A volume that a pod on the node uses. */
export interface Wanted {
  readonly volume: Readonly<PersistentVolume>;
  readonly pods: readonly Readonly<Pod>[];
}

export interface NodeFacts {
  /** Undefined: it is gone. */
  readonly node: Readonly<Node> | undefined;
  /** Of a node that is gone: what it had in use when it was last seen. */
  readonly lastInUse?: readonly string[] | undefined;
  readonly wanted: readonly Wanted[];
  /** Those of the node. */
  readonly attachments: readonly Readonly<VolumeAttachment>[];
  /** Those of the volume to other nodes. */
  readonly elsewhere: (volume: string) => readonly Readonly<VolumeAttachment>[];
  readonly volume: (name: string) => Readonly<PersistentVolume> | undefined;
  /** Volumes that pods on the node use, of drivers that do not want them attached: there was one of that name that did. */
  readonly released?: ReadonlySet<string> | undefined;
  /** Since when the attachment is not wanted any more. */
  readonly idleMs: (attachment: string) => number;
  /** For how long the attacher has been waited for. */
  readonly pendingMs: (attachment: string) => number;
  /** Whether a node that does not answer loses its volumes after a while; default: true. */
  readonly forceDetach?: boolean | undefined;
}

export interface NodePlan {
  readonly attach: readonly Wanted[];
  /** They are attached to one other node, and may be attached to one only. */
  readonly blocked: readonly { readonly wanted: Wanted; readonly by: readonly Readonly<VolumeAttachment>[] }[];
  /** Pods wait for the attacher. */
  readonly pending: readonly Pending[];
  readonly detach: readonly Readonly<VolumeAttachment>[];
  /** What the node's status is to say. */
  readonly attached: readonly AttachedVolume[];
  /** Needed still: looked at again after a while. */
  readonly waiting: boolean;
}

export interface Pending {
  readonly wanted: Wanted;
  /** The VolumeAttachment's name. */
  readonly attachment: string;
  /** What went wrong, once for each `attempt`; undefined: nothing so far. */
  readonly problem?: string | undefined;
  readonly attempt?: string | undefined;
}

/** A node that does not answer, or is gone while it may still run, keeps its volumes so long. Source: maxWaitForUnmountDuration */
export const FORCE_AFTER_MS = 6 * 60_000;
/** An attacher has so long to end what it has begun: while it attaches, nothing is taken away. Source: pkg/volume/csi/csi_plugin.go csiTimeout */
export const ATTACH_MS = 2 * 60_000;
/** A driver that wants no attaching any more: pods that wait for a volume it has just attached mount it first. Source: attach_detach_controller.go DesiredStateOfWorldPopulatorLoopSleepPeriod */
const RELEASED_MS = 60_000;

export function planNode({ node, lastInUse = [], wanted, attachments, elsewhere, volume, idleMs, pendingMs, released = NONE, forceDetach = true }: NodeFacts): NodePlan {
  const wantedNames = new Set(wanted.map((one) => one.volume.metadata.name));
  const here = new Map(attachments.map((one) => [one.spec.source.persistentVolumeName ?? "", one]));
  const attach: Wanted[] = [];
  const blocked: { wanted: Wanted; by: readonly Readonly<VolumeAttachment>[] }[] = [];
  for (const one of node ? wanted : []) {
    if (here.has(one.volume.metadata.name)) continue;
    const others = isForMany(one.volume) ? [] : elsewhere(one.volume.metadata.name);
    if (others.length > 0) blocked.push({ wanted: one, by: others });
    else attach.push(one);
  }
  const pending = wanted.flatMap((one): Pending[] => {
    const attachment = here.get(one.volume.metadata.name);
    return attachment === undefined || attachment.status?.attached ? [] : [{ wanted: one, attachment: attachment.metadata.name, ...problemOf(attachment, one.volume, pendingMs) }];
  });
  const inUse = new Set(node ? node.status?.volumesInUse : lastInUse);
  const names = [...inUse, ...(node?.status?.volumesAttached ?? []).map(({ name }) => name)];
  const idle = attachments.filter((one) => !wantedNames.has(one.spec.source.persistentVolumeName ?? "") && !isDeleting(one) && isOwn(one));
  const isMounted = (one: Readonly<VolumeAttachment>): boolean => {
    const name = uniqueName(one, volume, names);
    return name !== undefined && inUse.has(name);
  };
  const isNeeded = (one: Readonly<VolumeAttachment>): boolean => isMounted(one) || (node !== undefined && idleMs(one.metadata.name) < (isUnderWay(one) ? ATTACH_MS : released.has(one.spec.source.persistentVolumeName!) ? RELEASED_MS : 0));
  const detach = idle.filter((one) => !isNeeded(one) || forcedBy(node, idleMs(one.metadata.name), forceDetach) !== undefined);
  const attached = attachments.filter((one) => one.status?.attached && !isDeleting(one) && !detach.includes(one)).flatMap((one): AttachedVolume[] => {
    const name = uniqueName(one, volume, names);
    return name === undefined ? [] : [{ name, devicePath: "" }];
  });
  return { attach, blocked, pending, detach, attached: attached.sort((a, b) => (a.name < b.name ? -1 : 1)), waiting: detach.length < idle.length };
}

const NONE: ReadonlySet<string> = new Set();

/** The attacher has said neither that it is there nor what went wrong. */
function isUnderWay({ status }: Readonly<VolumeAttachment>): boolean {
  return !status?.attached && status?.attachError === undefined;
}

function problemOf({ metadata, spec, status }: Readonly<VolumeAttachment>, volume: Readonly<PersistentVolume>, pendingMs: NodeFacts["pendingMs"]): Pick<Pending, "problem" | "attempt"> {
  const waitedMs = pendingMs(metadata.name);
  if (status?.attachError) return { problem: status.attachError.message ?? "", attempt: status.attachError.time ?? status.attachError.message };
  const attempts = Math.floor(waitedMs / ATTACH_MS);
  return attempts === 0 ? {} : { problem: `timed out waiting for external-attacher of ${spec.attacher} CSI driver to attach volume ${volume.spec.csi!.volumeHandle}`, attempt: String(attempts) };
}

/** Why it is not waited for until nothing on the node uses what is taken off it; undefined: nothing does. As upstream counts it. */
export function forcedBy(node: Readonly<Node> | undefined, idleMs: number, forceDetach: boolean): "timeout" | "out-of-service" | undefined {
  if (forceDetach && !(node && isHealthy(node)) && idleMs > FORCE_AFTER_MS) return "timeout";
  return node && isOutOfService(node) ? "out-of-service" : undefined;
}

export function isOutOfService({ spec }: Readonly<Node>): boolean {
  return (spec.taints ?? []).some(({ key }) => key === "node.kubernetes.io/out-of-service");
}

export function isHealthy({ status }: Readonly<Node>): boolean {
  return isConditionTrue(status?.conditions, "Ready");
}

/** The name every attacher and kubelet expects. */
export function attachmentName(handle: string, driver: string, node: string): string {
  return `csi-${createHash("sha256").update(`${handle}${driver}${node}`).digest("hex")}`;
}

/** One that this controller made: who makes a VolumeAttachment of another name looks after it alone. See attachmentName. */
function isOwn({ metadata, spec }: Readonly<VolumeAttachment>): boolean {
  return /^csi-[0-9a-f]{64}$/.test(metadata.name) && spec.source.persistentVolumeName !== undefined;
}

/** As volumesInUse and volumesAttached name it. Where the volume is gone, while it may be mounted still, the one of the node's `names` tells that the attachment is made of. */
function uniqueName({ metadata, spec }: Readonly<VolumeAttachment>, volume: NodeFacts["volume"], names: readonly string[]): string | undefined {
  const driver = `kubernetes.io/csi/${spec.attacher}^`;
  const handle = volume(spec.source.persistentVolumeName ?? "")?.spec.csi?.volumeHandle;
  if (handle !== undefined) return `${driver}${handle}`;
  return names.find((name) => name.startsWith(driver) && attachmentName(name.slice(driver.length), spec.attacher, spec.nodeName) === metadata.name);
}

export function isForMany({ spec }: Readonly<PersistentVolume>): boolean {
  const modes = spec.accessModes ?? [];
  return modes.length === 0 || modes.some((mode) => mode === "ReadWriteMany" || mode === "ReadOnlyMany");
}

/** Why a pod waits, as far as its own namespace may know. `users`: pods that use the volume on other nodes. */
export function multiAttachMessage(pod: Readonly<Pod>, volume: string, users: readonly Readonly<Pod>[]): string {
  const head = `Multi-Attach error for volume "${volume}" `;
  if (users.length === 0) return `${head}Volume is already exclusively attached to one node and can't be attached to another`;
  const own = users.filter((one) => namespaceOf(one) === namespaceOf(pod)).map(({ metadata }) => metadata.name).sort();
  const others = users.length - own.length;
  if (own.length === 0) return `${head}Volume is already used by ${others} pod(s) in different namespaces`;
  return `${head}Volume is already used by pod(s) ${own.join(", ")}${others > 0 ? ` and ${others} pod(s) in different namespaces` : ""}`;
}
