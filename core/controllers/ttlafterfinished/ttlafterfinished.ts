/**
 * Deletes Jobs some time after they have finished: spec.ttlSecondsAfterFinished. Of one that has finished by a clock that was far ahead, some time after that is seen.
 *
 * Source: kubernetes v1.36 pkg/controller/ttlafterfinished
 */
import type { Job } from "../../api/gen/batch.v1.ts";
import { isDeleting, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import { parseTime } from "../../api/meta/time.ts";
import { JOBS } from "../../client/resources.ts";
import { doubling } from "../../observe/metrics.ts";
import { type Controller, itself, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { finishedCondition } from "../job/view.ts";
import { isFarAhead } from "../wrong-clock.ts";

/** In seconds. */
const LATE = doubling(0.1, 14); // ttlafterfinished/metrics/metrics.go

export function ttlAfterFinishedController({ client, informers, clock, metrics }: Pick<ControllerDeps, "client" | "informers" | "clock" | "metrics">): Controller {
  const jobs = informers.of(JOBS);
  const jobClient = client.resource(JOBS);
  const aheadFrom = new Map<ObjectKey, number>(); // since when, by uptime, it has been known of Jobs that they have finished long after now
  const lateness = metrics?.histogram("ttl_after_finished_controller_job_deletion_duration_seconds", "[ALPHA] The time it took to delete the job since it became eligible for deletion", LATE).with({});
  return {
    name: "ttl_jobs_to_delete",
    workers: 5,
    watches: [itself(jobs)],
    async reconcile(key, { signal }): Promise<Next> {
      const job = jobs.get(key);
      const leftMs = job === undefined ? undefined : leftOf(key, job);
      if (job === undefined || leftMs === undefined) return void aheadFrom.delete(key);
      if (leftMs > 0) return { againInMs: leftMs };
      try {
        const fresh = await jobClient.get(job, { signal }); // its time may have been prolonged
        const freshMs = leftOf(key, fresh);
        if (freshMs === undefined || freshMs > 0) return;
        await jobClient.delete(fresh, { propagationPolicy: "Foreground", preconditions: { uid: fresh.metadata.uid } }, { signal });
        lateness?.observe(-freshMs / 1000);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
  };

  /** How long until a Job is to go; undefined: it has not finished, or stays. */
  function leftOf(key: ObjectKey, job: Readonly<Job>): number | undefined {
    const ttl = job.spec?.ttlSecondsAfterFinished;
    const endedMs = parseTime(finishedCondition(job)?.lastTransitionTime ?? "");
    if (ttl === undefined || endedMs === undefined || isDeleting(job)) return undefined;
    const nowMs = clock.nowMs();
    if (!isFarAhead(endedMs, nowMs)) return endedMs + ttl * 1000 - nowMs;
    if (!aheadFrom.has(key)) aheadFrom.set(key, clock.uptimeMs());
    return aheadFrom.get(key)! + ttl * 1000 - clock.uptimeMs();
  }
}
