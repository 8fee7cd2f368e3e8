/**
 * A claimed volume that has become larger becomes larger on the node, too; then its claim says so. Who grows it (a CSI driver, or the host's tools) is passed in.
 *
 * Source: kubernetes v1.36 pkg/volume/util/operationexecutor/{node_expander,operation_generator}.go, pkg/volume/util/resize_util.go
 */
import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition, Pod } from "../../../core/api/gen/core.v1.ts";
import { compareQuantities, parseQuantity } from "../../../core/api/meta/quantity.ts";
import type { Client } from "../../../core/client/client.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { PERSISTENT_VOLUME_CLAIMS } from "../../../core/client/resources.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import { type Clock, timestamp } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import { podReference } from "../pod-spec.ts";
import { MountFailure } from "./mount-failure.ts";

/** What `grow` throws where its failure means more than "once again". */
export class GrowFailure extends Error {
  /** in-use: it will grow when it is mounted the next time. infeasible: not to this size. final: nothing was begun. */
  readonly kind: "in-use" | "infeasible" | "final";
  constructor(kind: GrowFailure["kind"], cause: Error) {
    super(cause.message, { cause });
    this.name = "GrowFailure";
    this.kind = kind;
  }
}

export interface Growing {
  readonly pod: Pod;
  readonly claim: Readonly<PersistentVolumeClaim>;
  readonly volume: Readonly<PersistentVolume>;
  readonly readOnly: boolean;
  /** To `bytes`; false: there is nothing to be done on this node. */
  readonly grow: (bytes: number) => Promise<boolean>;
}

export interface ClaimExpander {
  /** Whether there may be something to be done for a volume that is used here. */
  grows(of: Pick<Growing, "claim" | "volume">): boolean;
  /** As the volume is mounted. Throws MountFailure. */
  beforeUse(growing: Growing, signal: AbortSignal): Promise<void>;
  /** While it is used: a failure is told, and the next try comes later and later; the pod goes on. */
  inUse(growing: Growing, signal: AbortSignal): Promise<void>;
  /** The pod has its volumes no more. */
  released(podUid: string): void;
  /** Of how many volumes something is remembered. */
  readonly size: number;
}

interface Deps {
  readonly client: Client;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeName: string;
}

const RETRY = { minMs: 500, maxMs: 122_000 };
/** Every condition that tells of a resize. Source: knownResizeConditions */
const RESIZE_CONDITIONS: ReadonlySet<string> = new Set(["FileSystemResizePending", "Resizing", "ControllerResizeError", "NodeResizeError"]);
const ON_NODE: ReadonlySet<string> = new Set(["NodeResizePending", "NodeResizeInProgress"]);

/** The size the node should bring the volume to; undefined: nothing to do, or not yet. Pure. */
export function wantedSize({ status }: Readonly<PersistentVolumeClaim>, { spec }: Readonly<PersistentVolume>): string | undefined {
  const wanted = spec.capacity?.["storage"];
  const has = status?.capacity?.["storage"];
  if (wanted === undefined || has === undefined || status?.phase !== "Bound" || compareQuantities(wanted, has) <= 0) return undefined;
  const allocated = status.allocatedResources?.["storage"];
  const step = status.allocatedResourceStatuses?.["storage"];
  if (allocated === undefined && step === undefined) return wanted; // a resizer that does not tell its steps
  return step !== undefined && ON_NODE.has(step) ? (allocated ?? wanted) : undefined;
}

/** A resizer that tells its steps looks at what the node tells. */
function hasSteps({ status }: Readonly<PersistentVolumeClaim>): boolean {
  return status?.allocatedResources !== undefined || status?.allocatedResourceStatuses?.["storage"] !== undefined;
}

/** Drivers of shared storage that have nothing to do on each node say so. */
const NODES_NEED_NOT = "volume.kubernetes.io/node-expansion-not-required";

function isShared({ spec }: Readonly<PersistentVolumeClaim>): boolean { return spec.accessModes?.includes("ReadWriteMany") ?? false; }

/** To what a volume of many nodes has grown that is `here` in the size it had when it was mounted: one node has told the claim, and each has to do its part. Undefined: there is nothing to do. Pure. */
function sharedSize(claim: Readonly<PersistentVolumeClaim>, { spec: { capacity } }: Readonly<PersistentVolume>, here: string): string | undefined {
  const { metadata, status } = claim;
  const grown = capacity?.["storage"];
  const isTold = grown !== undefined && compareQuantities(status?.capacity?.["storage"] ?? "0", grown) >= 0 && status?.allocatedResourceStatuses?.["storage"] === undefined;
  return isTold && isShared(claim) && metadata.annotations?.[NODES_NEED_NOT] === undefined && compareQuantities(grown, here) > 0 ? grown : undefined;
}

export function claimExpander({ client, events, clock, log, nodeName }: Deps): ClaimExpander {
  const claims = client.resource(PERSISTENT_VOLUME_CLAIMS);
  const users = new Map<string, Set<string>>(); // pods, by volume: of what none of them uses nothing is remembered
  const sizes = new Map<string, string>(); // by volume, of those that many nodes may use: as it is on this one
  const failures = new Map<string, { readonly count: number; readonly untilMs: number }>(); // by volume, of those in use

  function use({ pod, volume }: Growing): void {
    const { name } = volume.metadata;
    users.set(name, (users.get(name) ?? new Set<string>()).add(pod.metadata.uid));
  }

  async function write(claim: Readonly<PersistentVolumeClaim>, status: Record<string, unknown>, signal: AbortSignal): Promise<Readonly<PersistentVolumeClaim>> {
    return await claims.patch(claim, "application/merge-patch+json", { status }, { subresource: "status", signal });
  }

  function sizesOf(claim: Readonly<PersistentVolumeClaim>, volume: Readonly<PersistentVolume>): { readonly wanted: string | undefined; readonly here: string; readonly size: string | undefined } {
    const wanted = wantedSize(claim, volume);
    const here = sizes.get(volume.metadata.name) ?? claim.status?.capacity?.["storage"] ?? "0";
    return { wanted, here, size: wanted ?? sharedSize(claim, volume, here) };
  }

  /** "unmounted": not while it is used. */
  async function expand({ pod, claim, volume, readOnly, grow }: Growing, signal: AbortSignal): Promise<"done" | "unmounted"> {
    const { name } = volume.metadata;
    const { wanted, here, size } = sizesOf(claim, volume);
    if (isShared(claim)) sizes.set(name, here);
    if (size === undefined) return "done";
    const tell = (type: "Normal" | "Warning", reason: string, message: string): void => {
      events.event(podReference(pod), type, reason, message);
      events.event({ apiVersion: "v1", kind: "PersistentVolumeClaim", name: claim.metadata.name, namespace: claim.metadata.namespace, uid: claim.metadata.uid }, type, reason, message);
    };
    if (readOnly) {
      tell("Warning", "FileSystemResizeFailed", `MountVolume.NodeExpandVolume failed for volume "${name}" requested read-only file system`);
      return "unmounted";
    }
    const current = claim.status?.allocatedResourceStatuses?.["storage"] === "NodeResizePending" ? await write(claim, { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } }, signal) : claim;
    try {
      if (await grow(parseQuantity(size).number())) tell("Normal", "FileSystemResizeSuccessful", `MountVolume.NodeExpandVolume succeeded for volume "${name}" ${nodeName}`);
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof GrowFailure && hasSteps(current))
        await write(current, failedStatus(current, size, cause, timestamp(clock.nowMs())), signal).catch((error: unknown) => log.warn("a claim that is not expanded does not say so", { volume: name, error }));
      if (cause instanceof GrowFailure && cause.kind === "in-use") {
        log.info("volume in use is not expanded", { volume: name, error: cause });
        return "unmounted";
      }
      throw cause;
    }
    if (isShared(claim)) sizes.set(name, size);
    if (wanted === undefined) return "done"; // another node has told the claim
    const conditions = (current.status?.conditions ?? []).filter(({ type }) => !RESIZE_CONDITIONS.has(type));
    await write(current, { capacity: { ...current.status?.capacity, storage: size }, conditions, ...(current.status?.allocatedResourceStatuses ? { allocatedResourceStatuses: { storage: null } } : {}) }, signal);
    return "done";
  }

  return {
    grows: ({ claim, volume }) => sizesOf(claim, volume).size !== undefined,
    get size() { return new Set([...users.keys(), ...sizes.keys(), ...failures.keys()]).size; },
    released(podUid) {
      for (const [name, pods] of users) {
        if (!pods.delete(podUid) || pods.size > 0) continue;
        for (const known of [users, sizes, failures]) known.delete(name);
      }
    },
    async beforeUse(growing, signal) {
      use(growing);
      failures.delete(growing.volume.metadata.name);
      const { metadata: { name }, spec: { volumeMode } } = growing.volume;
      await expand(growing, signal).catch((cause: Error) => {
        signal.throwIfAborted();
        throw new MountFailure(volumeMode === "Block" ? "MapVolume.MarkVolumeAsMounted" : "MountVolume.Setup", name, cause, { doing: "while expanding volume" });
      });
    },
    async inUse(growing, signal) {
      use(growing);
      if (growing.readOnly) return; // told where it is mounted
      const { name } = growing.volume.metadata;
      const before = failures.get(name);
      if (before && clock.uptimeMs() < before.untilMs) return;
      try {
        if ((await expand(growing, signal)) === "unmounted") failures.set(name, { count: 0, untilMs: Number.POSITIVE_INFINITY });
        else failures.delete(name);
      } catch (error) {
        signal.throwIfAborted();
        events.event(podReference(growing.pod), "Warning", "VolumeResizeFailed", new MountFailure("NodeExpandVolume.NodeExpandVolume", name, error as Error).message);
        const count = (before?.count ?? 0) + 1;
        failures.set(name, { count, untilMs: clock.uptimeMs() + backoffMs(count, RETRY) });
        log.warn("volume in use not expanded, next try later", { volume: name, error });
      }
    },
  };
}

/** The claim's status after a failure that is no matter of trying again at once. Pure. A second one after the user has asked for another size leaves that to the resizer. */
export function failedStatus({ spec, status }: Readonly<PersistentVolumeClaim>, size: string, { kind, message }: Pick<GrowFailure, "kind" | "message">, now: string): Record<string, unknown> {
  const conditions = status?.conditions ?? [];
  const isAnother = compareQuantities(spec.resources?.requests?.["storage"] ?? size, size) !== 0;
  const failedBefore = conditions.some(({ type }) => type === "NodeResizeError");
  const condition: PersistentVolumeClaimCondition = { type: "NodeResizeError", status: "True", lastTransitionTime: now, message: `failed to expand pvc with ${message}` };
  return {
    conditions: failedBefore ? conditions : [...conditions, condition],
    ...(kind === "infeasible" || (isAnother && failedBefore) ? { allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } } : {}),
  };
}
