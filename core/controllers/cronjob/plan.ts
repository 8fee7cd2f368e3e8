/**
 * When a CronJob is due, and which of its Jobs are to go. No I/O.
 *
 * Source: kubernetes v1.36 pkg/controller/cronjob/{cronjob_controllerv2,utils}.go
 */
import type { CronJob, Job } from "../../api/gen/batch.v1.ts";
import { asDouble } from "../../api/meta/go-integer.ts";
import { parseTime } from "../../api/meta/time.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { finishedCondition } from "../job/view.ts";
import { isFarAhead } from "../wrong-clock.ts";
import type { Schedule } from "./schedule.ts";

/** So that a timer that is a little early does not find nothing to do. */
const LATE_MS = 100;
const MANY = 100;

export interface Due {
  /** The latest time that has passed without a Job; undefined: none has. */
  readonly atMs: number | undefined;
  /** More than a hundred were missed. */
  readonly many: boolean;
  /** There is no such time, ever: 31 February. */
  readonly never?: boolean;
}

/** The CronJob as if its last time had been a minute ago, if that was written by a clock far ahead: it would wait for it. */
export function withoutTimesAhead(cronJob: Readonly<CronJob>, nowMs: number): Readonly<CronJob> {
  const lastMs = parseTime(cronJob.status?.lastScheduleTime ?? "") ?? parseTime(cronJob.metadata.creationTimestamp) ?? nowMs;
  return isFarAhead(lastMs, nowMs) ? { ...cronJob, status: { ...cronJob.status, lastScheduleTime: timestamp(nowMs - 60_000) } } : cronJob;
}

/** The CronJob as if its last time had been when it was given its schedule: of what that would have meant before nothing has been missed. */
export function notBefore(cronJob: Readonly<CronJob>, sinceMs: number | undefined): Readonly<CronJob> {
  const lastMs = parseTime(cronJob.status?.lastScheduleTime ?? "") ?? 0;
  return sinceMs === undefined || lastMs >= sinceMs ? cronJob : { ...cronJob, status: { ...cronJob.status, lastScheduleTime: timestamp(sinceMs) } };
}

/** Since the last Job, or the CronJob's creation, but no further back than `startingDeadlineSeconds`. */
export function dueTime(cronJob: Readonly<CronJob>, schedule: Schedule, nowMs: number, withDeadline = true): Due & { readonly fromMs: number } {
  const { startingDeadlineSeconds } = cronJob.spec;
  let fromMs = parseTime(cronJob.status?.lastScheduleTime ?? "") ?? parseTime(cronJob.metadata.creationTimestamp) ?? nowMs;
  if (withDeadline && startingDeadlineSeconds !== undefined) fromMs = Math.max(fromMs, nowMs - asDouble(startingDeadlineSeconds) * 1000);
  const first = schedule.next(fromMs);
  if (first === undefined) return { atMs: undefined, many: false, never: true, fromMs };
  if (nowMs < first) return { atMs: undefined, many: false, fromMs };
  const second = schedule.next(first);
  if (second === undefined || nowMs < second) return { atMs: first, many: false, fromMs };
  // Long ago: jump near to now by the distance of two, then count on one by one.
  const missed = Math.floor((nowMs - first) / (second - first)) + 1;
  let atMs: number | undefined;
  for (let at = schedule.next(first + (missed - 2) * (second - first)); at !== undefined && at <= nowMs; at = schedule.next(at)) atMs = at;
  return { atMs: atMs ?? latest(schedule, first, nowMs), many: missed > MANY, fromMs };
}

/**
 * The latest time up to now, of which `fromMs` is one. Upstream takes the distance of two for that of all and finds none where it is less, as that of "0,1 0 * * *" some minutes later; yet what
 * may start late, however late, is to be started.
 */
function latest(schedule: Schedule, fromMs: number, nowMs: number): number {
  let [foundMs, beforeMs, afterMs] = [fromMs, fromMs, nowMs];
  while (afterMs - beforeMs > 1000) {
    const middleMs = Math.floor((beforeMs + afterMs) / 2);
    const nextMs = schedule.next(middleMs);
    if (nextMs !== undefined && nextMs <= nowMs) [foundMs, beforeMs] = [nextMs, Math.max(middleMs, nextMs - 1)];
    else afterMs = middleMs;
  }
  return foundMs;
}

/** How long until the next time; undefined: never. */
export function nextDueInMs(cronJob: Readonly<CronJob>, schedule: Schedule, nowMs: number): number | undefined {
  const { atMs, fromMs } = dueTime(cronJob, schedule, nowMs, false);
  const nextMs = schedule.next(atMs ?? fromMs);
  return nextMs === undefined ? undefined : nextMs + LATE_MS - nowMs;
}

/** The Jobs of the CronJob beyond its history limits, oldest first: among them those that a clock far ahead has seen start. */
export function beyondHistory({ spec }: Readonly<CronJob>, jobs: readonly Readonly<Job>[], nowMs: number): Readonly<Job>[] {
  const order = ({ status, metadata }: Readonly<Job>): string => `${isFarAhead(parseTime(status?.startTime ?? "") ?? nowMs, nowMs) ? " " : ""}${status?.startTime ?? "~"} ${metadata.name}`;
  const oldest = (type: string, limit: number | undefined): Readonly<Job>[] => {
    if (limit === undefined) return [];
    const ended = jobs.filter((job) => finishedCondition(job)?.type === type).toSorted((a, b) => (order(a) < order(b) ? -1 : 1));
    return ended.slice(0, Math.max(0, ended.length - limit));
  };
  return [...oldest("Complete", spec.successfulJobsHistoryLimit), ...oldest("Failed", spec.failedJobsHistoryLimit)];
}

/** One name for one time: a Job is not started twice, whatever happens. */
export function jobName({ metadata: { name } }: Readonly<CronJob>, atMs: number): string { return `${name}-${Math.floor(atMs / 60_000)}`; }
