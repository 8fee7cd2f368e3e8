/**
 * What a Job's status may become. Most rules look only at what the update changes, so that a status from before the rule can still be written.
 *
 * Source: kubernetes v1.36 pkg/apis/batch/validation/validation.go, pkg/registry/batch/job/strategy.go getStatusValidationOptions
 */
import { child, duplicate, type FieldError, index, invalid, OMIT_VALUE, required } from "../../api/meta/field-error.ts";
import type { Job, JobSpec, JobStatus } from "../../api/gen/batch.v1.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { nonNegative } from "../core/checks/values.ts";
import { countIndexes, firstOverlap } from "./indexes.ts";

const PATH = "status";
const CONDITIONS = "status.conditions";

interface Change {
  readonly spec: Readonly<JobSpec>;
  readonly next: Readonly<JobStatus>;
  readonly old: Readonly<JobStatus>;
  /** Whether any of these fields is another one than before. */
  changed(...names: readonly (keyof JobStatus)[]): boolean;
  /** Whether any of these conditions has become, or ceased to be, true. */
  turned(...types: readonly string[]): boolean;
}

export function* validateJobStatus(next: Readonly<Job>, old: Readonly<Job>): Iterable<FieldError> {
  const [status, before] = [next.status ?? {}, old.status ?? {}];
  const change: Change = {
    spec: next.spec, next: status, old: before,
    changed: (...names) => names.some((name) => !semanticEqual(status[name], before[name])),
    turned: (...types) => types.some((type) => is(status, type) !== is(before, type)),
  };
  for (const name of ["active", "succeeded", "failed", "ready", "terminating"] as const) yield* nonNegative(child(PATH, name), status[name]);
  yield* validateUncounted(child(PATH, "uncountedTerminatedPods"), status.uncountedTerminatedPods);
  yield* validateEnd(change);
  yield* validateFinished(change);
  yield* validateIndexes(change);
  yield* validateRunning(change);
  yield* validateProgress(change);
}

function is({ conditions }: Readonly<JobStatus>, type: string, status: "True" | "False" = "True"): boolean {
  return (conditions ?? []).some((condition) => condition.type === type && condition.status === status);
}
function isFinished(status: Readonly<JobStatus>): boolean { return is(status, "Complete") || is(status, "Failed"); }

function* validateUncounted(path: string, uncounted: JobStatus["uncountedTerminatedPods"]): Iterable<FieldError> {
  const seen = new Set<string>();
  for (const list of ["succeeded", "failed"] as const)
    for (const [i, uid] of (uncounted?.[list] ?? []).entries()) {
      const at = index(child(path, list), i);
      if (uid === "") yield invalid(at, uid, "must not be empty");
      else if (seen.has(uid)) yield duplicate(at, uid);
      else seen.add(uid);
    }
}

function refuse(detail: string): FieldError { return invalid(CONDITIONS, OMIT_VALUE, detail); }

function* validateEnd({ next, old, changed, turned }: Change): Iterable<FieldError> {
  const { startTime, completionTime } = next;
  const [complete, failed, target, met] = ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map((type) => is(next, type));
  const at = child(PATH, "completionTime");
  if (complete && failed && turned("Complete", "Failed")) yield refuse("cannot set Complete=True and Failed=true conditions");
  if (complete && target && turned("Complete", "FailureTarget")) yield refuse("cannot set Complete=True and FailureTarget=true conditions");
  if (turned("Complete") || changed("completionTime")) {
    if (completionTime !== undefined && !complete) yield invalid(at, completionTime, "cannot set completionTime when there is no Complete=True condition");
    if (completionTime === undefined && complete) yield required(at, "completionTime is required for Complete jobs");
  }
  if (changed("startTime", "completionTime") && startTime !== undefined && completionTime !== undefined && Date.parse(completionTime) < Date.parse(startTime))
    yield invalid(at, completionTime, "must be equal to or after `startTime`");
  if (failed && !target && (turned("Failed") || next.failedIndexes !== old.failedIndexes)) yield refuse("cannot set Failed=True condition without the FailureTarget=true condition");
  if (complete && !met && turned("Complete", "SuccessCriteriaMet")) yield refuse("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
}

function* validateFinished({ spec, next, old, changed }: Change): Iterable<FieldError> {
  if (!isFinished(next)) return;
  const turned = !isFinished(old);
  const isEmptySuspended = spec.suspend === true && spec.completions === 0;
  if ((turned || changed("active")) && (next.active ?? 0) > 0) yield invalid(child(PATH, "active"), next.active, "active>0 is invalid for finished job");
  if ((turned || changed("startTime")) && !isEmptySuspended && next.startTime === undefined) yield required(child(PATH, "startTime"), "startTime is required for finished job");
  const { succeeded = [], failed = [] } = next.uncountedTerminatedPods ?? {};
  if ((turned || changed("uncountedTerminatedPods")) && succeeded.length + failed.length > 0)
    yield invalid(child(PATH, "uncountedTerminatedPods"), internalForm("io.k8s.api.batch.v1.UncountedTerminatedPods", next.uncountedTerminatedPods!), "must be empty for finished job");
}

function* validateRunning({ spec, next, old, changed }: Change): Iterable<FieldError> {
  const { active = 0, ready, terminating = 0 } = next;
  if (isFinished(next) && (!isFinished(old) || changed("terminating")) && terminating > 0) yield invalid(child(PATH, "terminating"), terminating, "terminating>0 is invalid for finished job");
  if (changed("ready", "active") && ready !== undefined && ready > active) yield invalid(child(PATH, "ready"), ready, "cannot set more ready pods than active");
  const met = is(next, "SuccessCriteriaMet");
  if (met && is(next, "Failed")) yield refuse("cannot set SuccessCriteriaMet=True and Failed=true conditions");
  if (met && is(next, "FailureTarget")) yield refuse("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
  if (spec.successPolicy && !met && is(next, "Complete")) yield refuse("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
}

function* validateIndexes({ spec, next, changed }: Change): Iterable<FieldError> {
  const { completions, completionMode, backoffLimitPerIndex } = spec;
  const { completedIndexes = "", failedIndexes } = next;
  const completedAt = child(PATH, "completedIndexes");
  const failedAt = child(PATH, "failedIndexes");
  if (changed("completedIndexes") && completions !== undefined) yield* indexesErrors(completedAt, "completedIndexes", completedIndexes, completions);
  if (changed("failedIndexes") && completions !== undefined && backoffLimitPerIndex !== undefined && failedIndexes !== undefined) yield* indexesErrors(failedAt, "failedIndexes", failedIndexes, completions);
  if (changed("completedIndexes") && completedIndexes !== "" && completionMode !== "Indexed") yield invalid(completedAt, completedIndexes, "cannot set non-empty completedIndexes when non-indexed completion mode");
  if (changed("failedIndexes") && backoffLimitPerIndex === undefined && failedIndexes !== undefined) yield invalid(failedAt, failedIndexes, "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
  if (!changed("failedIndexes", "completedIndexes") || completions === undefined || failedIndexes === undefined) return;
  const overlap = firstOverlap(completedIndexes, failedIndexes, completions);
  if (overlap !== undefined) yield invalid(failedAt, failedIndexes, `failedIndexes and completedIndexes overlap at index: ${overlap}`);
}

function* indexesErrors(path: string, name: string, text: string, completions: number): Iterable<FieldError> {
  try {
    countIndexes(text, completions);
  } catch (error) {
    yield invalid(path, text, `error parsing ${name}: ${(error as Error).message}`);
  }
}

/** What cannot be taken back. */
function* validateProgress({ spec, next, old }: Change): Iterable<FieldError> {
  for (const type of ["Failed", "Complete", "FailureTarget"])
    if (is(old, type) && !is(next, type)) yield invalid(CONDITIONS, OMIT_VALUE, `cannot disable the terminal ${type}=True condition`);
  if ((next.failed ?? 0) < (old.failed ?? 0)) yield invalid(child(PATH, "failed"), next.failed ?? 0, "cannot decrease the failed counter");
  const isElastic = spec.completionMode === "Indexed" && spec.completions === spec.parallelism;
  if (!isElastic && (next.succeeded ?? 0) < (old.succeeded ?? 0)) yield invalid(child(PATH, "succeeded"), next.succeeded ?? 0, "cannot decrease the succeeded counter");
  if (next.completionTime !== undefined && old.completionTime !== undefined && next.completionTime !== old.completionTime)
    yield invalid(child(PATH, "completionTime"), next.completionTime, "field is immutable");
  const isResuming = is(old, "Suspended") && is(next, "Suspended", "False");
  if (!isResuming && old.startTime !== undefined && old.startTime !== next.startTime && spec.suspend !== true)
    yield invalid(child(PATH, "startTime"), next.startTime ?? null, "field is immutable for unsuspended job once set");
  if (is(old, "SuccessCriteriaMet") && !is(next, "SuccessCriteriaMet")) yield invalid(CONDITIONS, OMIT_VALUE, "cannot disable the SuccessCriteriaMet=True condition");
  if (is(old, "Complete") && !is(old, "SuccessCriteriaMet") && is(next, "SuccessCriteriaMet"))
    yield invalid(CONDITIONS, OMIT_VALUE, "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
}
