/**
 * What a DELETE does to an object: removes it, marks it for deletion, or nothing because that has been done before. Pure.
 *
 * Source: kubernetes v1.36 apiserver/pkg/registry/rest/delete.go, apiserver/pkg/registry/generic/registry/store.go (deletionFinalizersForGarbageCollection)
 */
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { GroupResource } from "../../api/meta/gvk.ts";
import { conflict } from "../../api/meta/status-error.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { FINALIZER_FOREGROUND, FINALIZER_ORPHAN } from "./object-meta.ts";
import type { Resource } from "./resource.ts";

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagationPolicy?: "Orphan" | "Background" | "Foreground" | undefined;
  /** Deprecated; true means Orphan. */
  readonly orphanDependents?: boolean | undefined;
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined;
}

export type DeletePlan =
  /** `last`: what it is when it goes, if that is another than it was. `steps`: what upstream makes of it, which marks first what has grace or finalizers. */
  | { readonly type: "remove"; readonly steps: 1 | 2; readonly last?: ApiObject }
  /** `asked`: whether plug-ins hear of it. They do not where nothing could have come of it. */
  | { readonly type: "keep"; readonly asked: boolean }
  /** `goes`: nothing holds it, so that it goes once the mark is written. Who looks at objects as they are, as operators do, sees the mark; of the removal alone they see nothing. */
  | { readonly type: "mark"; readonly next: ApiObject; readonly goes?: true };

export function planDelete(object: Readonly<ApiObject>, definition: Resource, options: DeleteOptions, nowMs: number): DeletePlan {
  const { metadata } = object;
  const next: ApiObject = { ...object, metadata: { ...metadata } };
  const isAdding = !metadata.deletionTimestamp && definition.finalizersOnDelete !== undefined;
  const finalizers = isAdding ? [...new Set([...metadata.finalizers ?? [], ...definition.finalizersOnDelete])] : finalizersFor(metadata.finalizers ?? [], definition, options, definition.markDeleting !== undefined && !metadata.deletionTimestamp);
  if (finalizers.length > 0) next.metadata.finalizers = finalizers;
  else delete next.metadata.finalizers;
  const finalizersChanged = finalizers.join() !== (metadata.finalizers ?? []).join();

  const requested = options.gracePeriodSeconds === undefined ? undefined : options.gracePeriodSeconds < 0 ? 1 : options.gracePeriodSeconds;
  const plainSteps = (metadata.finalizers ?? []).length > 0 ? 2 : 1;
  if (metadata.deletionTimestamp && definition.isHeld?.(object)) return { type: "keep", asked: false };
  if (metadata.deletionTimestamp) return planAgain({ object, next, finalizersChanged, plainSteps, isGraceful: definition.gracePeriodSeconds !== undefined, isHeld: isHeld(next, definition), requested, nowMs });

  const graceSeconds = definition.gracePeriodSeconds?.(next, requested) ?? 0;
  const isRemoved = graceSeconds === 0 && !isHeld(next, definition);
  if (isRemoved && !definition.gracePeriodSeconds) return { type: "remove", steps: plainSteps };
  next.metadata.deletionTimestamp = timestamp(nowMs + durationMs(graceSeconds));
  next.metadata.deletionGracePeriodSeconds = graceSeconds;
  if (isRemoved) return { type: "mark", next, goes: true };
  if (definition.markDeleting) { // upstream's storages of such know of no grace
    delete next.metadata.deletionGracePeriodSeconds;
    definition.markDeleting(next, nowMs);
  }
  return { type: "mark", next };
}

function isHeld(next: Readonly<ApiObject>, definition: Resource): boolean {
  return (next.metadata.finalizers?.length ?? 0) > 0 || (definition.isHeld?.(next) ?? false);
}

interface Again {
  readonly object: Readonly<ApiObject>;
  readonly next: ApiObject;
  readonly finalizersChanged: boolean;
  /** Of a removal without grace. */
  readonly plainSteps: 1 | 2;
  readonly isGraceful: boolean;
  readonly isHeld: boolean;
  readonly requested: number | undefined;
  readonly nowMs: number;
}

/** An object that is being deleted already: its grace may become shorter, never longer. While it runs, nothing else changes. */
function planAgain({ object, next, finalizersChanged, plainSteps, isGraceful, isHeld: held, requested, nowMs }: Again): DeletePlan {
  const given = object.metadata.deletionGracePeriodSeconds ?? 0, before = given < 0 ? 1 : given;
  if (!isGraceful || before === 0) {
    if (!held) return { type: "remove", steps: plainSteps };
    const lacksGrace = object.metadata.deletionGracePeriodSeconds === undefined; // it was marked by a storage that knows of none
    if (lacksGrace) next.metadata.deletionGracePeriodSeconds = 0;
    return finalizersChanged || lacksGrace ? { type: "mark", next } : { type: "keep", asked: true };
  }
  if (requested === undefined || requested >= before) return { type: "keep", asked: false };
  const deletionMs = Date.parse(object.metadata.deletionTimestamp!) + durationMs(requested) - durationMs(before);
  const graceSeconds = deletionMs < nowMs && requested > 0 ? 1 : requested; // it is still for its node to end it
  next.metadata.deletionTimestamp = timestamp(Math.max(deletionMs, nowMs));
  next.metadata.deletionGracePeriodSeconds = graceSeconds;
  return graceSeconds === 0 && !held ? { type: "remove", steps: 2, last: next } : { type: "mark", next };
}

/** What Go makes of so many seconds: nanoseconds in 64 bits, which more than 292 years run over. A number that no double holds is a bigint. */
function durationMs(seconds: number): number { return Number(BigInt.asIntN(64, BigInt(seconds) * 1_000_000_000n) / 1_000_000n); }

/** The two finalizers the garbage collector looks after, as the propagation policy says. `marksItself`: upstream's storages that do take dependents that are not orphaned for such to wait for. */
function finalizersFor(before: readonly string[], definition: Resource, options: DeleteOptions, marksItself: boolean): string[] {
  const isSupported = definition.defaultPropagation !== "Unsupported";
  const policy = options.propagationPolicy ?? (options.orphanDependents === undefined ? undefined : options.orphanDependents ? "Orphan" : marksItself ? "Foreground" : "Background");
  const orphan = policy ? policy === "Orphan" : before.includes(FINALIZER_ORPHAN) || (!before.includes(FINALIZER_FOREGROUND) && definition.defaultPropagation === "Orphan");
  const foreground = policy ? policy === "Foreground" : before.includes(FINALIZER_FOREGROUND);
  const rest = before.filter((name) => name !== FINALIZER_ORPHAN && name !== FINALIZER_FOREGROUND);
  const after = [...rest, ...(isSupported && orphan ? [FINALIZER_ORPHAN] : []), ...(isSupported && foreground ? [FINALIZER_FOREGROUND] : [])];
  return new Set(after).symmetricDifference(new Set(before)).size === 0 ? [...before] : after; // the same ones stay as they are
}

/** Whether an update of an object that is being deleted removes the last thing that held it. */
export function finishedBy(next: Readonly<ApiObject>, definition: Resource): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = next.metadata;
  return deletionTimestamp !== undefined && (deletionGracePeriodSeconds ?? 0) === 0 && (finalizers?.length ?? 0) === 0 && !(definition.isHeld?.(next) ?? false);
}

/** Throws 409 when the object is not the one that was meant. Upstream's storages that mark on their own have words of their own for it. */
export function checkStoredPreconditions(object: Readonly<ApiObject>, preconditions: DeleteOptions["preconditions"], { resource: { group, kind, plural }, marksItself }: { readonly resource: Pick<Resource, "group" | "kind" | "plural">; readonly marksItself: boolean }): void {
  if (!marksItself) return checkDeletePreconditions({ group, resource: kind }, object, preconditions);
  const { name, uid, resourceVersion } = object.metadata;
  for (const [what, wanted, found] of [["UID", preconditions?.uid, uid], ["ResourceVersion", preconditions?.resourceVersion, resourceVersion]] as const)
    if (wanted !== undefined && wanted !== found) throw conflict({ group, resource: plural }, name, `Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${found}`);
}

/** Throws 409, as everywhere else. */
export function checkDeletePreconditions(resource: GroupResource, { metadata: { name, uid, resourceVersion } }: Readonly<ApiObject>, preconditions: DeleteOptions["preconditions"]): void {
  if (preconditions?.uid !== undefined && preconditions.uid !== uid)
    throw conflict(resource, name, `the UID in the precondition (${preconditions.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`);
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion)
    throw conflict(resource, name, `the ResourceVersion in the precondition (${preconditions.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`);
}
