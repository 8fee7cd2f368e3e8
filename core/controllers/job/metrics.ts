/** What the Job controller counts. Source: kubernetes v1.36 pkg/controller/job/metrics/metrics.go */
import type { Job, JobCondition, JobStatus } from "../../api/gen/batch.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { doubling, type Metrics } from "../../observe/metrics.ts";
import type { Change } from "../controller.ts";
import { Indexes } from "./indexes.ts";
import { isTracked } from "./pods.ts";
import { isExternal, type JobView } from "./view.ts";

export type SyncAction = "reconciling" | "tracking" | "pods_created" | "pods_deleted";

export interface JobMetrics {
  synced(job: Readonly<Job>, how: { readonly ms: number; readonly action: SyncAction; readonly failed: boolean }): void;
  finished(job: Readonly<Job>, end: JobCondition): void;
  /** The status was written: pods that are counted in `after` and were not in `before` have ended. */
  counted(job: Readonly<Job>, before: JobStatus, after: JobStatus): void;
  /** Pods that rules of a failure policy spoke of, by what those do. */
  ruled(actions: readonly string[]): void;
  created(view: JobView, pods: { readonly succeeded: number; readonly failed: number }): void;
  jobSeen(change: Change<Job>): void;
  podSeen(change: Change<Pod>): void;
}

/** 4 ms, doubling fourteen times. */
const SECONDS = doubling(0.004, 15);

export function jobMetrics(metrics: Metrics): JobMetrics {
  const seconds = metrics.histogram("job_controller_job_sync_duration_seconds", "[STABLE] The time it took to sync a job", SECONDS);
  const syncs = metrics.counter("job_controller_job_syncs_total", "[STABLE] The number of job syncs");
  const jobs = metrics.counter("job_controller_jobs_finished_total", "[STABLE] The number of finished jobs");
  const pods = metrics.counter("job_controller_job_pods_finished_total", "[STABLE] The number of finished Pods that are fully tracked");
  const external = metrics.counter("job_controller_jobs_by_external_controller_total", "[ALPHA] The number of Jobs managed by an external controller");
  const ruled = metrics.counter(
    "job_controller_pod_failures_handled_by_failure_policy_total",
    '[BETA] The number of failed Pods handled by failure policy with\n\t\t\trespect to the failure policy action applied based on the matched\n\t\t\trule. Possible values of the action label correspond to the\n\t\t\tpossible values for the failure policy rule action, which are:\n\t\t\t"FailJob", "Ignore" and "Count".',
  );
  const tracked = metrics.counter(
    "job_controller_terminated_pods_tracking_finalizer_total",
    '[BETA] The number of terminated pods (phase=Failed|Succeeded)\nthat have the finalizer batch.kubernetes.io/job-tracking\nThe event label can be "add" or "delete".',
  );
  const indexes = metrics.counter(
    "job_controller_job_finished_indexes_total",
    '[ALPHA] The number of finished indexes. Possible values for the\n\t\t\tstatus label are: "succeeded", "failed". Possible values for the\n\t\t\tbackoffLimit label are: "perIndex" and "global"',
  );
  const created = metrics.counter(
    "job_controller_job_pods_creation_total",
    '[ALPHA] The number of Pods created by the Job controller labelled with a reason for the Pod creation.\nThis metric also distinguishes between Pods created using different PodReplacementPolicy settings.\nPossible values of the "reason" label are:\n"new", "recreate_terminating_or_failed", "recreate_failed".\nPossible values of the "status" label are:\n"succeeded", "failed".',
  );
  return {
    synced(job, { ms, action, failed }) {
      const labels = { action, completion_mode: modeOf(job), result: failed ? "error" : "success" };
      seconds.observe(ms / 1000, labels);
      syncs.inc(labels);
    },
    finished: (job, { type, reason = "" }) => jobs.inc({ completion_mode: modeOf(job), reason, result: type === "Complete" ? "succeeded" : "failed" }),
    counted(job, before, after) {
      const completion_mode = modeOf(job);
      const more = { succeeded: succeededOf(job, after) - succeededOf(job, before), failed: (after.failed ?? 0) - (before.failed ?? 0) };
      for (const [result, count] of Object.entries(more)) pods.inc({ completion_mode, result }, Math.max(0, count));
      if (completion_mode !== "Indexed") return;
      const backoffLimit = job.spec?.backoffLimitPerIndex === undefined ? "global" : "perIndex";
      indexes.inc({ backoffLimit, status: "succeeded" }, Math.max(0, more.succeeded));
      const lost = countOf(job, after.failedIndexes) - countOf(job, before.failedIndexes);
      if (lost > 0) indexes.inc({ backoffLimit, status: "failed" }, lost);
    },
    ruled(actions) { for (const action of actions) ruled.inc({ action }); },
    created(view, counts) {
      const reason = reasonToCreate(view);
      for (const [status, count] of Object.entries(counts)) if (count > 0) created.inc({ reason, status }, count);
    },
    jobSeen({ object: { spec }, old, deleted }) {
      if (old === undefined && !deleted && isExternal(spec)) external.inc({ controller_name: spec?.managedBy ?? "" });
    },
    podSeen({ object, old, deleted }) {
      const [was, is] = deleted ? [isHeld(object), false] : [old !== undefined && isHeld(old), isHeld(object)];
      if (was !== is) tracked.inc({ event: is ? "add" : "delete" });
    },
  };
}

function modeOf({ spec }: Readonly<Job>): string { return spec?.completionMode === "Indexed" ? "Indexed" : "NonIndexed"; }

function succeededOf(job: Readonly<Job>, { succeeded = 0, completedIndexes }: JobStatus): number {
  return modeOf(job) === "Indexed" ? countOf(job, completedIndexes) : succeeded;
}

function countOf({ spec }: Readonly<Job>, indexes: string | undefined): number { return Indexes.parse(indexes, spec?.completions ?? 0).size; }

/** Ended, and not counted yet. */
function isHeld(pod: Readonly<Pod>): boolean { return (pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded") && isTracked(pod); }

function reasonToCreate({ spec, failed, terminating }: JobView): string {
  if (spec.podReplacementPolicy === "Failed" && failed > 0) return "recreate_failed";
  return failed > 0 || terminating > 0 ? "recreate_terminating_or_failed" : "new";
}
