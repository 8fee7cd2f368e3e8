/** What the Job controller counts. Source: kubernetes v1.36 pkg/controller/job/metrics/metrics.go */
import type { Job, JobCondition, JobStatus } from "../../api/gen/batch.v1.ts";
import type { Metrics } from "../../observe/metrics.ts";
import { Indexes } from "./indexes.ts";

export type SyncAction = "reconciling" | "tracking" | "pods_created" | "pods_deleted";

export interface JobMetrics {
  synced(job: Readonly<Job>, how: { readonly ms: number; readonly action: SyncAction; readonly failed: boolean }): void;
  finished(job: Readonly<Job>, end: JobCondition): void;
  /** The status was written: pods that are counted in `after` and were not in `before` have ended. */
  counted(job: Readonly<Job>, before: JobStatus, after: JobStatus): void;
}

/** 4 ms, doubling fourteen times. */
const SECONDS = Array.from({ length: 15 }, (_, i) => 0.004 * 2 ** i);

export function jobMetrics(metrics: Metrics): JobMetrics {
  const seconds = metrics.histogram("job_controller_job_sync_duration_seconds", "[STABLE] The time it took to sync a job", SECONDS);
  const syncs = metrics.counter("job_controller_job_syncs_total", "[STABLE] The number of job syncs");
  const jobs = metrics.counter("job_controller_jobs_finished_total", "[STABLE] The number of finished jobs");
  const pods = metrics.counter("job_controller_job_pods_finished_total", "[STABLE] The number of finished Pods that are fully tracked");
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
    },
  };
}

function modeOf({ spec }: Readonly<Job>): string { return spec?.completionMode === "Indexed" ? "Indexed" : "NonIndexed"; }

function succeededOf(job: Readonly<Job>, { succeeded = 0, completedIndexes }: JobStatus): number {
  return modeOf(job) === "Indexed" ? Indexes.parse(completedIndexes, job.spec?.completions ?? 0).size : succeeded;
}
