/**
 * Which pods a Job needs more or fewer of, and what its status is to count next. No I/O.
 *
 * Source: kubernetes v1.36 pkg/controller/job/job_controller.go manageJob, trackJobStatusAndRemoveFinalizers
 */
import type { JobCondition, JobStatus } from "../../api/gen/batch.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { isDeleting } from "../../api/meta/object-meta.ts";
import { parseTime } from "../../api/meta/time.ts";
import { jobDeletionOrder } from "../replicaset/deletion-order.ts";
import { isTerminating } from "../pod-state.ts";
import { Indexes } from "./indexes.ts";
import type { SyncAction } from "./metrics.ts";
import { allIndexFailures, endedMs, hasFailed, indexOf, isTracked, replacesOnlyFailed } from "./pods.ts";
import { judgeFailure, matchingRule } from "./policies.ts";
import { isSuspended, type JobView, validIndex } from "./view.ts";

type P = Readonly<Pod>;

/** Pods made or removed in one go, and pods counted in one go. */
const BURST_MAX = 500; // kubernetes v1.36 pkg/controller/job/job_controller.go MaxPodCreateDeletePerSync, MaxUncountedPods
const BACKOFF = { minMs: 10_000, maxMs: 600_000 };
/** Clocks that are set do not differ by more. */
const SKEW_MS_MAX = 60_000;

/** Failures in a row, and when the last one was. */
export interface Failures { readonly count: number; readonly lastMs: number }
export interface JobFailures extends Failures { readonly uid: string }

/** A success wipes the slate, but for what failed after it. What another Job of the same name came to does not count. */
export function failuresAfter(known: JobFailures | undefined, { job, newSucceeded, newFailed }: Pick<JobView, "job" | "newSucceeded" | "newFailed">, nowMs: number): JobFailures {
  const lastOf = (pods: readonly P[]): number => Math.max(...pods.map((pod) => failedMs(pod, nowMs)));
  const { uid } = job.metadata;
  const none: JobFailures = { uid, count: 0, lastMs: 0 };
  if (newSucceeded.length === 0) {
    const before = known?.uid === uid ? known : none;
    return newFailed.length === 0 ? before : { uid, count: before.count + newFailed.length, lastMs: lastOf(newFailed) };
  }
  const successMs = Math.max(...newSucceeded.map(endedMs));
  const later = newFailed.filter((pod) => endedMs(pod) > successMs);
  return later.length === 0 ? none : { uid, count: later.length, lastMs: lastOf(later) };
}

/** Its node may say that it has ended in hours, or in years: then what is known is when it was made. */
function failedMs(pod: P, nowMs: number): number {
  const ms = endedMs(pod);
  return ms - nowMs > SKEW_MS_MAX ? parseTime(pod.metadata.creationTimestamp) ?? 0 : ms;
}

/** How long to wait after this many failures. Our own clock may have been set back since the last. */
export function backoffLeftMs({ count, lastMs }: Failures, nowMs: number): number {
  return count === 0 || lastMs - nowMs > SKEW_MS_MAX ? 0 : Math.max(0, lastMs + Math.min(BACKOFF.maxMs, BACKOFF.minMs * 2 ** Math.min(count - 1, 30)) - nowMs);
}

export interface PodPlan {
  readonly remove: readonly P[];
  /** How many; of an indexed Job, which. */
  readonly create: number;
  readonly indexes: readonly number[];
  /** As it is counted: what it was about, though there may have been no pod to do it to. */
  readonly action: SyncAction;
  /** When more can be made. */
  readonly againInMs?: number | undefined;
}

export function planPods(view: JobView, failures: Failures, nowMs: number): PodPlan {
  const { spec, active, succeeded, indexes, terminating } = view;
  if (isSuspended(spec)) return { remove: active, create: 0, indexes: [], action: "pods_deleted" };
  const parallelism = spec.parallelism ?? 1;
  const wanted = spec.completions === undefined ? (succeeded > 0 ? active.length : parallelism) : Math.max(0, Math.min(parallelism, spec.completions - succeeded));
  const remove = toRemove(view, Math.max(0, active.length - wanted)).slice(0, BURST_MAX);
  if (remove.length > 0) return { remove, create: 0, indexes: [], action: "pods_deleted" };
  const missing = Math.min(BURST_MAX, wanted - active.length - (replacesOnlyFailed(spec) ? terminating : 0));
  if (missing <= 0) return { remove, create: 0, indexes: [], action: "tracking" };
  const action = "pods_created";
  if (spec.backoffLimitPerIndex === undefined) {
    const leftMs = backoffLeftMs(failures, nowMs);
    if (leftMs > 0) return { remove, create: 0, indexes: [], action, againInMs: leftMs };
  }
  if (indexes === undefined) return { remove, create: missing, indexes: [], action };
  const pending = pendingIndexes(view, missing);
  const waits = new Map(pending.map((index) => [index, indexBackoffMs(indexes.delayed.get(index), nowMs)]));
  const now = pending.filter((index) => waits.get(index) === 0);
  const soonest = Math.min(...[...waits.values()].filter((ms) => ms > 0));
  return { remove, create: now.length, indexes: now, action, ...(Number.isFinite(soonest) ? { againInMs: soonest } : {}) };
}

function indexBackoffMs(pod: P | undefined, nowMs: number): number {
  return pod === undefined ? 0 : backoffLeftMs({ count: allIndexFailures(pod) + 1, lastMs: failedMs(pod, nowMs) }, nowMs);
}

function pendingIndexes({ spec, active, pods, indexes }: JobView, count: number): number[] {
  const indexesOf = (some: readonly P[]): Indexes => Indexes.of(some.flatMap((pod) => indexOf(pod) ?? []));
  let taken = (indexes?.succeeded ?? Indexes.NONE).union(indexesOf(active)).union(indexes?.failed ?? Indexes.NONE);
  if (replacesOnlyFailed(spec)) taken = taken.union(indexesOf(pods.filter(isTerminating)));
  return taken.missing(count, spec.completions ?? 0);
}

/** Pods of no index, or of one that another has, and then as many as are too many. */
function toRemove({ spec, active, indexes }: JobView, atLeast: number): P[] {
  if (indexes === undefined) return jobDeletionOrder(active).slice(0, atLeast);
  const byIndex = Map.groupBy(active, (pod) => validIndex(pod, spec));
  const remove = [...(byIndex.get(undefined) ?? [])];
  const keep: P[] = [];
  for (const [index, same] of byIndex) {
    if (index === undefined) continue;
    const sorted = jobDeletionOrder(same);
    remove.push(...sorted.slice(0, -1));
    keep.push(...sorted.slice(-1));
  }
  return remove.length >= atLeast ? remove : [...remove, ...jobDeletionOrder(keep).slice(0, atLeast - remove.length)];
}

export interface Tracking {
  readonly status: JobStatus;
  /** Pods whose finalizer may go once `status` is stored. */
  readonly release: readonly P[];
  /** What rules of the failure policy did to pods that were not named before. */
  readonly ruled: readonly string[];
  /** There are more: come back. */
  readonly more: boolean;
}

/**
 * The next status. Pods that have ended are first named in uncountedTerminatedPods; only when their finalizer is gone are they added
 * to the counters. So each is counted once, whatever is interrupted in between.
 */
export function track({ job, spec, pods, indexes }: JobView, before: JobStatus, end: JobCondition | undefined): Tracking {
  const settled = settle(before, pods.filter(isTracked));
  const uncounted = { succeeded: [...(settled.uncountedTerminatedPods?.succeeded ?? [])], failed: [...(settled.uncountedTerminatedPods?.failed ?? [])] };
  const release: P[] = [];
  const ruled: string[] = [];
  const newIndexes: number[] = [];
  let more = false;
  const failing = end !== undefined && end.type !== "SuccessCriteriaMet" && end.type !== "Complete";
  for (const pod of pods.toSorted((a, b) => (indexOf(a) ?? -1) - (indexOf(b) ?? -1))) {
    if (!isTracked(pod)) continue;
    const failed = hasFailed(pod, spec);
    const { uid } = pod.metadata;
    const succeeded = pod.status?.phase === "Succeeded";
    const index = indexes === undefined ? undefined : validIndex(pod, spec);
    const held = index !== undefined && indexes?.delayed.get(index)?.metadata.uid === uid;
    if (!(isDeleting(job) || end !== undefined || succeeded || (failed && !held))) continue;
    release.push(pod);
    if (succeeded && !uncounted.failed.includes(uid)) {
      if (indexes === undefined) { if (!uncounted.succeeded.includes(uid)) uncounted.succeeded.push(uid); }
      else if (index !== undefined && !indexes.counted.has(index)) newIndexes.push(index);
    } else if ((failed || failing) && !uncounted.failed.includes(uid) && (indexes === undefined || index !== undefined)) {
      const rule = matchingRule(spec.podFailurePolicy, pod);
      if (rule !== undefined) ruled.push(rule.action);
      if (judgeFailure(spec.podFailurePolicy, pod).counts) uncounted.failed.push(uid);
    }
    if (newIndexes.length + uncounted.succeeded.length + uncounted.failed.length >= BURST_MAX) { more = true; break; }
  }
  const status: JobStatus = { ...settled, uncountedTerminatedPods: compact(uncounted) };
  if (indexes !== undefined) {
    const completed = indexes.counted.union(Indexes.of(newIndexes));
    status.succeeded = completed.size;
    status.completedIndexes = completed.toString();
    if (indexes.failed !== undefined) status.failedIndexes = indexes.failed.toString();
  }
  return { status, release, ruled, more };
}

/** Named pods that have lost their finalizer, or are gone, go into the counters. */
export function settle(status: JobStatus, tracked: readonly P[]): JobStatus {
  const held = new Set(tracked.map(({ metadata }) => metadata.uid));
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const left = { succeeded: succeeded.filter((uid) => held.has(uid)), failed: failed.filter((uid) => held.has(uid)) };
  return {
    ...status, succeeded: (status.succeeded ?? 0) + succeeded.length - left.succeeded.length, failed: (status.failed ?? 0) + failed.length - left.failed.length,
    uncountedTerminatedPods: compact(left),
  };
}

function compact({ succeeded, failed }: { readonly succeeded: string[]; readonly failed: string[] }): { succeeded?: string[]; failed?: string[] } {
  return { ...(succeeded.length > 0 ? { succeeded } : {}), ...(failed.length > 0 ? { failed } : {}) };
}
