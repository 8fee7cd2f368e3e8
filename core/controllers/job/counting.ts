/**
 * Counts a Job's pods, each once, whatever is interrupted: what has ended is named in the status, then its finalizer goes, then it is a number. When nothing is left to count the
 * Job ends.
 *
 * Source: kubernetes v1.36 pkg/controller/job/job_controller.go trackJobStatusAndRemoveFinalizers
 */
import type { Job, JobCondition, JobStatus } from "../../api/gen/batch.v1.ts";
import { JOBS } from "../../client/resources.ts";
import { settleAll } from "../../lifecycle/settle-all.ts";
import { sameValue } from "../conditions.ts";
import type { ControllerDeps } from "../deps.ts";
import type { PodReleaser } from "./finalizer.ts";
import type { JobMetrics } from "./metrics.ts";
import { settle, track } from "./plan.ts";
import { isTracked } from "./pods.ts";
import { jobCondition, type JobView, trueCondition, withJobCondition } from "./view.ts";

export interface Outcome {
  readonly view: JobView;
  /** The status, but for who has ended. */
  readonly before: JobStatus;
  /** What the Job comes to once all is counted. */
  readonly end: JobCondition | undefined;
  readonly stored: Readonly<Job>;
  /** Whoever has ended is named: the next look will not find it anew. */
  readonly onNamed: () => void;
}

interface Deps extends Pick<ControllerDeps, "client" | "informers" | "clock"> {
  readonly recorder: ReturnType<ControllerDeps["events"]["from"]>;
  readonly meter: JobMetrics | undefined;
  readonly releaser: PodReleaser;
}

export function jobCounter({ client, informers, clock, recorder, meter, releaser }: Deps): (outcome: Outcome, signal: AbortSignal) => Promise<void> {
  async function count({ view, before, end, stored, onNamed }: Outcome, signal: AbortSignal): Promise<void> {
    const nowMs = clock.nowMs();
    const tracking = track(view, before, end);
    let { status } = tracking;
    let last = end;
    if (end?.type === "FailureTarget" || end?.type === "SuccessCriteriaMet") {
      if (trueCondition(status, end.type) === undefined) status = { ...status, conditions: [...(status.conditions ?? []), end] };
      last = jobCondition(nowMs, end.type === "FailureTarget" ? "Failed" : "Complete", "True", end.reason ?? "", end.message ?? "");
    }
    let current = stored;
    if (!sameValue(status, stored.status ?? {})) current = await write(current, status, signal);
    meter?.ruled(tracking.ruled);
    onNamed();
    if (tracking.release.length > 0) await settleAll(tracking.release.map((pod) => releaser.release(pod, signal)));

    const released = new Set(tracking.release.map(({ metadata }) => metadata.uid));
    let next = settle(current.status ?? {}, view.pods.filter((pod) => isTracked(pod) && !released.has(pod.metadata.uid)));
    const { succeeded = [], failed = [] } = next.uncountedTerminatedPods ?? {};
    const finished = last !== undefined && !tracking.more && succeeded.length + failed.length === 0 && (next.terminating ?? 0) === 0;
    if (finished && last !== undefined) {
      next = { ...next, conditions: withJobCondition(next.conditions ?? [], last) ?? [...(next.conditions ?? [])], ...(last.type === "Complete" ? { completionTime: completionOf(next, last.lastTransitionTime) } : {}) };
    }
    if (!sameValue(next, current.status ?? {})) await write(current, next, signal);
    if (finished && last !== undefined) tellEnd(view, next, last);
  }

  async function write(job: Readonly<Job>, status: JobStatus, signal: AbortSignal): Promise<Readonly<Job>> {
    const written = await client.resource(JOBS).updateStatus({ ...job, status }, { signal });
    meter?.counted(job, job.status ?? {}, status);
    await informers.of(JOBS).caughtUp([written], signal);
    return written;
  }

  function tellEnd({ job, spec }: JobView, { succeeded = 0 }: JobStatus, end: JobCondition): void {
    const { type, reason = "", message = "" } = end;
    meter?.finished(job, end);
    if (type !== "Complete") {
      recorder.event(job, "Warning", reason, message);
      return;
    }
    if (spec.completions !== undefined && succeeded > spec.completions) {
      recorder.event(job, "Warning", "TooManySucceededPods", "Too many succeeded pods running after completion count reached");
    }
    recorder.event(job, "Normal", "Completed", "Job completed");
  }

  return count;
}

/** No Job may be said to have completed before it has started: who noted that had another clock, or this one has been set back since. */
function completionOf({ startTime }: JobStatus, endTime: string | undefined): string | undefined {
  return startTime !== undefined && endTime !== undefined && Date.parse(endTime) < Date.parse(startTime) ? startTime : endTime;
}
