/**
 * Starts Jobs at the times of their CronJob's schedule.
 *
 *   CronJob or Job changes, or the time has come → key → Jobs that ended leave status.active → history trimmed → a Job if one is due
 *
 * API:    https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
 * Source: kubernetes v1.36 pkg/controller/cronjob
 */
import type { CronJob, CronJobStatus, Job } from "../../api/gen/batch.v1.ts";
import type { ObjectReference } from "../../api/gen/core.v1.ts";
import { asDouble } from "../../api/meta/go-integer.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { isDeleting, keyOf, namespaceOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isNamespaceTerminating, isNotFound } from "../../api/meta/status-error.ts";
import { CRON_JOBS, JOBS } from "../../client/resources.ts";
import { BY_CONTROLLER } from "../claim.ts";
import { sameValue } from "../conditions.ts";
import { type Change, controllerIs, type Controller, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { finishedCondition } from "../job/view.ts";
import { messageOf } from "../pod-control.ts";
import type { Index } from "../../client/informer.ts";
import { JobControl } from "./job-control.ts";
import { beyondHistory, dueTime, jobName, nextDueInMs, notBefore, withoutTimesAhead } from "./plan.ts";
import { parseSchedule, type Schedule } from "./schedule.ts";
import { localZone, type Zone, zoneNamed } from "./zone.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { isFarAhead } from "../wrong-clock.ts";

type Cron = Readonly<CronJob>;
/** The status as it will be written. */
type Draft = CronJobStatus & { active: ObjectReference[] };

interface Deps extends Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics"> {
  readonly zone?: Zone | undefined;
  /** A moment that is certainly past: a clock that says less is not set. */
  readonly releasedMs?: number | undefined;
}

export function cronJobController({ client, informers, events, clock, metrics, zone = localZone(), releasedMs = 0 }: Deps): Controller {
  const crons = informers.of(CRON_JOBS);
  const jobs = informers.of(JOBS);
  const cronClient = client.resource(CRON_JOBS);
  const jobClient = client.resource(JOBS);
  const recorder = events.from({ component: "cronjob-controller" });
  const control = new JobControl({ client, jobs, recorder, metrics });
  const rescheduledMs = new Map<ObjectKey, number>(); // when a CronJob was given the schedule it has now, if it had another one before

  return {
    name: "cronjob",
    workers: 5,
    watches: [mapped(crons, (change) => { noteSchedule(change); return [keyOf(change.object)]; }), controllerIs(jobs, CRON_JOBS)],
    async reconcile(key, { signal }): Promise<Next> {
      const cron = crons.get(key);
      if (cron === undefined) return;
      const own = jobs.by(BY_CONTROLLER as Index<Job>, cron.metadata.uid);
      const draft: Draft = { ...cron.status, active: [...(cron.status?.active ?? [])] };
      let againInMs: number | undefined;
      let failure: unknown;
      try {
        await trim(cron, own, draft, signal);
        await review(cron, own, draft, signal);
        againInMs = await schedule(cron, draft, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        failure = error;
      }
      if (!sameValue(draft, cron.status ?? {})) await crons.caughtUp([await cronClient.updateStatus({ ...cron, status: draft }, { signal })], signal);
      if (failure !== undefined && !isNamespaceTerminating(failure)) throw failure;
      return againInMs === undefined ? undefined : { againInMs };
    },
  };

  async function trim(cron: Cron, own: readonly Readonly<Job>[], draft: Draft, signal: AbortSignal): Promise<void> {
    for (const job of beyondHistory(cron, own, clock.nowMs())) if (!isDeleting(job)) await removeJob(cron, job, draft, signal).catch((error: unknown) => { if (signal.aborted) throw error; }); // told as an event; tried again next time
  }

  async function removeJob(cron: Cron, job: Readonly<Job>, draft: Draft, signal: AbortSignal): Promise<void> {
    if (await control.remove(cron, job, signal)) draft.active = draft.active.filter(({ uid }) => uid !== job.metadata.uid);
  }

  /** Brings status.active and the last success in line with the Jobs there are. */
  async function review(cron: Cron, own: readonly Readonly<Job>[], draft: Draft, signal: AbortSignal): Promise<void> {
    for (const job of own) {
      const listed = draft.active.some(({ uid }) => uid === job.metadata.uid);
      const end = finishedCondition(job);
      if (end === undefined) {
        if (!listed) recorder.event(cron, "Warning", "UnexpectedJob", `Saw a job that the controller did not create or forgot: ${job.metadata.name}`);
        continue;
      }
      if (listed) {
        draft.active = draft.active.filter(({ uid }) => uid !== job.metadata.uid);
        recorder.event(cron, "Normal", "SawCompletedJob", `Saw completed job: ${job.metadata.name}, condition: ${end.type}`);
      }
      const completed = end.type === "Complete" ? job.status?.completionTime : undefined;
      if (completed !== undefined && completed > (draft.lastSuccessfulTime ?? "")) draft.lastSuccessfulTime = completed;
    }
    for (const { uid, name = "" } of [...draft.active]) {
      if (own.some((job) => job.metadata.uid === uid)) continue;
      const live = await ifFound(jobClient.get({ metadata: { name, namespace: namespaceOf(cron) } }, { signal }));
      if (live !== undefined && live.metadata.uid === uid) continue;
      recorder.event(cron, "Normal", "MissingJob", `Active job went missing: ${name}`);
      draft.active = draft.active.filter((one) => one.uid !== uid);
    }
  }

  /** Starts what is due; returns how long until it is worth looking again. */
  async function schedule(cron: Cron, draft: Draft, signal: AbortSignal): Promise<number | undefined> {
    if (isDeleting(cron)) return undefined;
    const where = zoneOf(cron);
    const parsed = where === undefined || cron.spec.suspend ? undefined : scheduleOf(cron, where);
    if (parsed === undefined) return undefined;
    const nowMs = clock.nowMs();
    const isSet = nowMs >= releasedMs; // otherwise it is ours that is wrong, and what is ahead is right
    const sinceMs = rescheduled(keyOf(cron), isSet ? nowMs : undefined);
    const timed = (one: Cron): Cron => notBefore(isSet ? withoutTimesAhead(one, nowMs) : one, sinceMs);
    const again = (): number | undefined => nextDueInMs(timed({ ...cron, status: draft }), parsed, nowMs);
    const { atMs, many, never } = dueTime(timed(cron), parsed, nowMs);
    if (never) recorder.event(cron, "Warning", "InvalidSchedule", `invalid schedule: ${cron.spec.schedule} : time difference between two schedules is less than 1 second`);
    if (atMs === undefined) return again();
    if (many) recorder.event(cron, "Warning", "TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew");
    const { startingDeadlineSeconds, concurrencyPolicy } = cron.spec;
    if (startingDeadlineSeconds !== undefined && atMs + asDouble(startingDeadlineSeconds) * 1000 < nowMs) {
      recorder.event(cron, "Warning", "MissSchedule", `Missed scheduled time to start a job: ${new Date(atMs).toUTCString().replace("GMT", "+0000")}`);
      return again();
    }
    const name = jobName(cron, atMs);
    if (draft.active.some((one) => one.name === name) || draft.lastScheduleTime === timestamp(atMs)) return again();
    if (concurrencyPolicy === "Forbid" && draft.active.length > 0) {
      recorder.event(cron, "Normal", "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid");
      return again();
    }
    if (concurrencyPolicy === "Replace") await replaceActive(cron, draft, signal);
    const started = await control.create(cron, atMs, signal);
    if (started === undefined || draft.active.some(({ uid }) => uid === started.metadata.uid)) return again();
    const { uid, resourceVersion } = started.metadata;
    draft.active.push({ kind: "Job", apiVersion: "batch/v1", namespace: namespaceOf(started), name, uid, resourceVersion });
    draft.lastScheduleTime = timestamp(atMs);
    return again();
  }

  /** `nowMs`: by a clock that is right. One that was far ahead gave the schedule a minute ago, and from then on at that time. */
  function rescheduled(key: ObjectKey, nowMs: number | undefined): number | undefined {
    const sinceMs = rescheduledMs.get(key);
    if (sinceMs === undefined || nowMs === undefined || !isFarAhead(sinceMs, nowMs)) return sinceMs;
    const aMinuteAgoMs = nowMs - 60_000;
    rescheduledMs.set(key, aMinuteAgoMs);
    return aMinuteAgoMs;
  }

  function noteSchedule({ object, old, deleted }: Change<CronJob>): void {
    if (deleted) rescheduledMs.delete(keyOf(object));
    else if (old !== undefined && (old.spec.schedule !== object.spec.schedule || old.spec.timeZone !== object.spec.timeZone)) rescheduledMs.set(keyOf(object), clock.nowMs());
  }

  function zoneOf(cron: Cron): Zone | undefined {
    const { timeZone } = cron.spec;
    try {
      return timeZone === undefined ? zone : zoneNamed(timeZone);
    } catch {
      recorder.event(cron, "Warning", "UnknownTimeZone", `invalid timeZone: ${goQuote(timeZone ?? "")}: unknown time zone ${timeZone}`);
      return undefined;
    }
  }

  function scheduleOf(cron: Cron, where: Zone): Schedule | undefined {
    const text = cron.spec.schedule;
    if (text.includes("TZ")) {
      recorder.event(cron, "Warning", "UnsupportedSchedule", `CRON_TZ or TZ used in schedule ${goQuote(text)} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details`);
    }
    try {
      return parseSchedule(text, where);
    } catch (error) {
      recorder.event(cron, "Warning", "UnparseableSchedule", `unparseable schedule: ${goQuote(text)} : ${messageOf(error)}`);
      return undefined;
    }
  }

  async function replaceActive(cron: Cron, draft: Draft, signal: AbortSignal): Promise<void> {
    for (const { name = "", uid } of [...draft.active]) {
      const job = await jobClient.get({ metadata: { name, namespace: namespaceOf(cron) } }, { signal }).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        recorder.event(cron, "Warning", "FailedGet", `Get job: ${messageOf(error)}`);
        throw error;
      });
      if (job === undefined || job.metadata.uid !== uid) draft.active = draft.active.filter((one) => one.uid !== uid);
      else await removeJob(cron, job, draft, signal);
    }
  }
}
