/**
 * A Job as it stands: its pods sorted and counted, its indexes, and whether it has come to its end. No I/O.
 *
 * Source: kubernetes v1.36 pkg/controller/job/job_controller.go syncJob
 */
import type { Job, JobCondition, JobSpec, JobStatus } from "../../api/gen/batch.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { asDouble } from "../../api/meta/go-integer.ts";
import { isDeleting } from "../../api/meta/object-meta.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { isActive, isReady, isTerminal } from "../pod-state.ts";
import { Indexes } from "./indexes.ts";
import { allIndexFailures, endedMs, hasFailed, indexFailures, indexOf, isIndexed, isTracked } from "./pods.ts";
import { judgeFailure, successMet } from "./policies.ts";

type P = Readonly<Pod>;

export interface IndexView {
  /** Counted as succeeded before, and together with the pods there are. */
  readonly counted: Indexes;
  readonly succeeded: Indexes;
  /** Only with a backoff limit per index. */
  readonly failed: Indexes | undefined;
  /** The last failed pod of each index that will be tried again: kept until its successor is there, for its count of failures. */
  readonly delayed: ReadonlyMap<number, P>;
}

export interface JobView {
  readonly job: Readonly<Job>;
  readonly spec: Readonly<JobSpec>;
  readonly pods: readonly P[];
  readonly active: readonly P[];
  readonly terminating: number;
  readonly ready: number;
  /** Ended since they were last counted. */
  readonly newSucceeded: readonly P[];
  readonly newFailed: readonly P[];
  readonly succeeded: number;
  readonly failed: number;
  readonly indexes: IndexView | undefined;
}

const OWN_NAME = "kubernetes.io/job-controller"; // of spec.managedBy

/** Another controller's. */
export function isExternal(spec: Readonly<JobSpec> | undefined): boolean { return (spec?.managedBy ?? OWN_NAME) !== OWN_NAME; }

export function isSuspended(spec: Readonly<JobSpec>): boolean { return spec.suspend === true; }

export function finishedCondition({ status }: Readonly<Job>): JobCondition | undefined { return trueCondition(status, "Complete", "Failed"); }

export function trueCondition(status: Readonly<JobStatus> | undefined, ...types: readonly string[]): JobCondition | undefined {
  return status?.conditions?.find((one) => types.includes(one.type) && one.status === "True");
}

/** Its index, if that is one of the Job's. */
export function validIndex(pod: P, { completions = 0 }: Readonly<JobSpec>): number | undefined {
  const index = indexOf(pod);
  return index !== undefined && index < completions ? index : undefined;
}

export function viewOf(job: Readonly<Job>, pods: readonly P[]): JobView {
  const spec = job.spec ?? { template: {} };
  const { succeeded: uncountedSucceeded = [], failed: uncountedFailed = [] } = job.status?.uncountedTerminatedPods ?? {};
  const active = pods.filter(isActive);
  const counts = (pod: P): boolean => isTracked(pod) && (!isIndexed(spec) || validIndex(pod, spec) !== undefined);
  const named = new Set(uncountedFailed), counted = new Set(uncountedSucceeded);
  const newSucceeded = pods.filter((pod) => counts(pod) && hasSucceeded(pod, named) && !counted.has(pod.metadata.uid));
  const newFailed = pods.filter((pod) => counts(pod) && hasFailed(pod, spec) && !named.has(pod.metadata.uid));
  const indexes = isIndexed(spec) ? indexView(job, spec, pods, active, named) : undefined;
  const failures = newFailed.filter((pod) => judgeFailure(spec.podFailurePolicy, pod).counts).length;
  return {
    job, spec, pods, active, indexes, newSucceeded, newFailed,
    terminating: pods.filter((pod) => isDeleting(pod) && !isTerminal(pod)).length,
    ready: active.filter(isReady).length,
    succeeded: indexes?.succeeded.size ?? (job.status?.succeeded ?? 0) + newSucceeded.length + uncountedSucceeded.length,
    failed: (job.status?.failed ?? 0) + failures + uncountedFailed.length,
  };
}

/** What a Job has named as failed, when it was on its way out, stays failed, though it ended well after all: somebody else has its place. (Upstream calls a Job complete then, without it.) */
function hasSucceeded(pod: P, named: ReadonlySet<string>): boolean { return pod.status?.phase === "Succeeded" && !named.has(pod.metadata.uid); }

function indexView({ status }: Readonly<Job>, spec: Readonly<JobSpec>, pods: readonly P[], active: readonly P[], named: ReadonlySet<string>): IndexView {
  const completions = spec.completions ?? 0;
  const indexesOf = (some: readonly P[]): number[] => some.flatMap((pod) => validIndex(pod, spec) ?? []);
  const counted = Indexes.parse(status?.completedIndexes, completions);
  const succeeded = counted.union(Indexes.of(indexesOf(pods.filter((pod) => isTracked(pod) && hasSucceeded(pod, named)))));
  if (spec.backoffLimitPerIndex === undefined) return { counted, succeeded, failed: undefined, delayed: new Map() };
  const over = pods.filter((pod) => isTracked(pod) && indexIsLost(pod, spec));
  const failed = Indexes.parse(status?.failedIndexes, completions).union(Indexes.of(indexesOf(over)));
  const running = new Set(indexesOf(active));
  const delayed = new Map<number, P>();
  for (const pod of pods) {
    const index = validIndex(pod, spec);
    if (index === undefined || !isTracked(pod) || !hasFailed(pod, spec) || succeeded.has(index) || failed.has(index) || running.has(index)) continue;
    const held = delayed.get(index);
    if (held === undefined || (allIndexFailures(held) <= allIndexFailures(pod) && endedMs(held) <= endedMs(pod))) delayed.set(index, pod);
  }
  return { counted, succeeded, failed, delayed };
}

function indexIsLost(pod: P, spec: Readonly<JobSpec>): boolean {
  if (!hasFailed(pod, spec)) return false;
  const { counts, failsIndex } = judgeFailure(spec.podFailurePolicy, pod);
  return failsIndex === true || (counts && indexFailures(pod) >= (spec.backoffLimitPerIndex ?? 0));
}

export function jobCondition(nowMs: number, type: string, status: "True" | "False", reason: string, message: string): JobCondition {
  const now = timestamp(nowMs);
  return { type, status, lastProbeTime: now, lastTransitionTime: now, reason, message } as JobCondition;
}

/** With `next` in the place of the one of its type, or at the end. Undefined: it is said already, or it says that something is not so of which nobody has said it is. */
export function withJobCondition(conditions: readonly JobCondition[], next: JobCondition): JobCondition[] | undefined {
  const old = findCondition(conditions, next.type);
  if (old === undefined) return next.status === "False" ? undefined : [...conditions, next];
  if (old.status === next.status && old.reason === next.reason && old.message === next.message) return undefined;
  return conditions.map((one) => (one === old ? next : one));
}

/** The condition by which the Job comes to its end, if it does: FailureTarget or SuccessCriteriaMet, Failed if the former stands there already. `activeMs`: see ActiveTimes. */
export function endOf(view: JobView, { nowMs, activeMs }: { readonly nowMs: number; readonly activeMs: number }): JobCondition | undefined {
  const { job, spec, pods, failed, indexes } = view;
  const met = trueCondition(job.status, "SuccessCriteriaMet");
  if (met !== undefined) return met;
  const target = trueCondition(job.status, "FailureTarget");
  if (target !== undefined) return jobCondition(nowMs, "Failed", "True", target.reason ?? "", target.message ?? "");
  const fail = (reason: string, message: string): JobCondition => jobCondition(nowMs, "FailureTarget", "True", reason, message);
  for (const pod of pods) {
    const verdict = spec.podFailurePolicy !== undefined && hasFailed(pod, spec) ? judgeFailure(spec.podFailurePolicy, pod).failsJob : undefined;
    if (verdict !== undefined) return fail("PodFailurePolicy", verdict);
  }
  if (failed > (spec.backoffLimit ?? 6) || tooManyRestarts(view)) return fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
  if (deadlineInMs(view, activeMs) === 0) return fail("DeadlineExceeded", "Job was active longer than specified deadline");
  if (indexes === undefined) return undefined;
  const lost = indexes.failed?.size ?? 0;
  if (spec.maxFailedIndexes !== undefined && lost > spec.maxFailedIndexes) return fail("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes");
  if (lost > 0 && lost + indexes.succeeded.size >= (spec.completions ?? 0)) return fail("FailedIndexes", "Job has failed indexes");
  const success = successMet(spec, indexes.succeeded);
  return success === undefined ? undefined : jobCondition(nowMs, "SuccessCriteriaMet", "True", "SuccessPolicy", success);
}

/** Pods that restart their containers themselves count their restarts. */
function tooManyRestarts({ spec, pods }: JobView): boolean {
  if (spec.template.spec?.restartPolicy !== "OnFailure") return false;
  const running = pods.filter(({ status }) => status?.phase === "Running" || status?.phase === "Pending");
  const restarts = running.flatMap(({ status }) => [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]).reduce((sum, { restartCount }) => sum + (restartCount ?? 0), 0);
  const limit = spec.backoffLimit ?? 6;
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

/** How long until activeDeadlineSeconds is over; undefined: it does not run. */
export function deadlineInMs({ job, spec }: JobView, activeMs: number): number | undefined {
  if (spec.activeDeadlineSeconds === undefined || job.status?.startTime === undefined || isSuspended(spec)) return undefined;
  return Math.max(0, asDouble(spec.activeDeadlineSeconds) * 1000 - activeMs);
}
