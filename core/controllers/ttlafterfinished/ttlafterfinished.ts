/**
 * Deletes Jobs some time after they have finished: spec.ttlSecondsAfterFinished.
 *
 * Source: kubernetes v1.36 pkg/controller/ttlafterfinished
 */
import type { Job } from "../../api/gen/batch.v1.ts";
import { isDeleting } from "../../api/meta/object-meta.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import { parseTime } from "../../api/meta/time.ts";
import { JOBS } from "../../client/resources.ts";
import { doubling } from "../../observe/metrics.ts";
import { type Controller, itself, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { finishedCondition } from "../job/view.ts";

/** When a Job is to go; undefined: it has not finished, or stays. */
function expiresMs(job: Readonly<Job>): number | undefined {
  const ttl = job.spec?.ttlSecondsAfterFinished;
  const endedMs = parseTime(finishedCondition(job)?.lastTransitionTime ?? "");
  return ttl === undefined || endedMs === undefined || isDeleting(job) ? undefined : endedMs + ttl * 1000;
}

/** In seconds. */
const LATE = doubling(0.1, 14); // ttlafterfinished/metrics/metrics.go

export function ttlAfterFinishedController({ client, informers, clock, metrics }: Pick<ControllerDeps, "client" | "informers" | "clock" | "metrics">): Controller {
  const jobs = informers.of(JOBS);
  const jobClient = client.resource(JOBS);
  const lateness = metrics?.histogram("ttl_after_finished_controller_job_deletion_duration_seconds", "[ALPHA] The time it took to delete the job since it became eligible for deletion", LATE).with({});
  return {
    name: "ttl_jobs_to_delete",
    workers: 5,
    watches: [itself(jobs)],
    async reconcile(key, { signal }): Promise<Next> {
      const job = jobs.get(key);
      const endMs = job === undefined ? undefined : expiresMs(job);
      if (job === undefined || endMs === undefined) return;
      const leftMs = endMs - clock.nowMs();
      if (leftMs > 0) return { againInMs: leftMs };
      try {
        const fresh = await jobClient.get(job, { signal }); // its time may have been prolonged
        const freshMs = expiresMs(fresh);
        if (freshMs === undefined || freshMs > clock.nowMs()) return;
        await jobClient.delete(fresh, { propagationPolicy: "Foreground", preconditions: { uid: fresh.metadata.uid } }, { signal });
        lateness?.observe((clock.nowMs() - freshMs) / 1000);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
  };
}
