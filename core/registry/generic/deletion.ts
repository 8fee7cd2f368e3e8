/**
 * What a DELETE does to an object: removes it, marks it for deletion, or nothing because that has been done before. Pure.
 *
 * Source: kubernetes v1.36 apiserver/pkg/registry/rest/delete.go, apiserver/pkg/registry/generic/registry/store.go (deletionFinalizersForGarbageCollection)
 */
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest } from "../../api/meta/status-error.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import type { Resource } from "./resource.ts";

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagationPolicy?: "Orphan" | "Background" | "Foreground" | undefined;
  /** Deprecated; true means Orphan. */
  readonly orphanDependents?: boolean | undefined;
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined;
}

export const FINALIZER_ORPHAN = "orphan";
export const FINALIZER_FOREGROUND = "foregroundDeletion";

export type DeletePlan = { readonly type: "remove" } | { readonly type: "keep" } | { readonly type: "mark"; readonly next: ApiObject };

export function planDelete(object: Readonly<ApiObject>, definition: Resource, options: DeleteOptions, nowMs: number): DeletePlan {
  const { metadata } = object;
  const next: ApiObject = { ...object, metadata: { ...metadata } };
  const finalizers = finalizersFor(metadata.finalizers ?? [], definition, options);
  if (finalizers.length > 0) next.metadata.finalizers = finalizers;
  else delete next.metadata.finalizers;
  const finalizersChanged = finalizers.join() !== (metadata.finalizers ?? []).join();

  if (metadata.deletionTimestamp) return planAgain(next, definition, options, finalizersChanged);

  const graceSeconds = definition.gracePeriodSeconds?.(next, options.gracePeriodSeconds) ?? 0;
  const held = finalizers.length > 0 || (definition.isHeld?.(next) ?? false);
  if (graceSeconds === 0 && !held) return { type: "remove" };
  next.metadata.deletionTimestamp = timestamp(nowMs + graceSeconds * 1000);
  next.metadata.deletionGracePeriodSeconds = graceSeconds;
  definition.markDeleting?.(next);
  return { type: "mark", next };
}

/** An object that is being deleted already: its grace may become shorter, never longer. */
function planAgain(next: ApiObject, definition: Resource, options: DeleteOptions, finalizersChanged: boolean): DeletePlan {
  const before = next.metadata.deletionGracePeriodSeconds ?? 0;
  const held = (next.metadata.finalizers?.length ?? 0) > 0 || (definition.isHeld?.(next) ?? false);
  const requested = definition.gracePeriodSeconds ? options.gracePeriodSeconds : undefined;
  const graceSeconds = requested === undefined ? before : Math.min(before, Math.max(0, definition.gracePeriodSeconds!(next, requested)));
  if (graceSeconds === 0 && !held) return { type: "remove" };
  if (graceSeconds === before) return finalizersChanged ? { type: "mark", next } : { type: "keep" };
  const deletionMs = Date.parse(next.metadata.deletionTimestamp!) - (before - graceSeconds) * 1000;
  next.metadata.deletionTimestamp = timestamp(deletionMs);
  next.metadata.deletionGracePeriodSeconds = graceSeconds;
  return { type: "mark", next };
}

/** The two finalizers the garbage collector looks after, as the propagation policy says. */
function finalizersFor(before: readonly string[], definition: Resource, options: DeleteOptions): string[] {
  const policy = options.propagationPolicy ?? (options.orphanDependents === undefined ? undefined : options.orphanDependents ? "Orphan" : "Background");
  const orphan = policy ? policy === "Orphan" : before.includes(FINALIZER_ORPHAN) || (!before.includes(FINALIZER_FOREGROUND) && definition.defaultPropagation === "Orphan");
  const foreground = policy ? policy === "Foreground" : before.includes(FINALIZER_FOREGROUND);
  const rest = before.filter((name) => name !== FINALIZER_ORPHAN && name !== FINALIZER_FOREGROUND);
  return [...rest, ...(orphan ? [FINALIZER_ORPHAN] : []), ...(foreground ? [FINALIZER_FOREGROUND] : [])];
}

/** Whether an update of an object that is being deleted removes the last thing that held it. */
export function finishedBy(next: Readonly<ApiObject>, definition: Resource): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = next.metadata;
  return deletionTimestamp !== undefined && (deletionGracePeriodSeconds ?? 0) === 0 && (finalizers?.length ?? 0) === 0 && !(definition.isHeld?.(next) ?? false);
}

export function checkDeleteOptions(options: DeleteOptions): void {
  if (options.orphanDependents !== undefined && options.propagationPolicy !== undefined)
    throw badRequest("orphanDependents and deletionPropagation cannot be both set");
}
