import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { CronJob, CronJobSpec, Job } from "../../api/gen/batch.v1.ts";
import { CRON_JOBS, EVENTS, JOBS } from "../../client/resources.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { cronJobController } from "./cronjob.ts";
import { beyondHistory, dueTime, nextDueInMs, withoutTimesAhead } from "./plan.ts";
import { parseSchedule } from "./schedule.ts";
import { formatInZone, UTC, zoneNamed } from "./zone.ts";

const at = (text: string) => Date.parse(text);
const next = (schedule: string, from: string, zone = UTC) => {
  const ms = parseSchedule(schedule, zone).next(at(from));
  return ms === undefined ? undefined : formatInZone(ms, zone);
};

test.each([
  ["* * * * *", "2026-01-01T00:00:30Z", "2026-01-01T00:01:00Z"],
  ["*/15 * * * *", "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"],
  ["5 4 * * sun", "2026-01-01T00:00:00Z", "2026-01-04T04:05:00Z"],
  ["0 0 31 * *", "2026-04-01T00:00:00Z", "2026-05-31T00:00:00Z"],
  ["0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"],
  ["0 0 30 feb *", "2026-01-01T00:00:00Z", undefined],
  ["0 12 1,15 * 3", "2026-01-02T00:00:00Z", "2026-01-07T12:00:00Z"], // either day will do
  ["0 12 */2 * 3", "2026-01-08T00:00:00Z", "2026-01-09T12:00:00Z"],
  ["0 12 * * 3", "2026-01-08T00:00:00Z", "2026-01-14T12:00:00Z"],
  ["10-20/5 8-9 * JAN-mar 1-5", "2026-01-02T09:15:00Z", "2026-01-02T09:20:00Z"],
  ["0,,30, * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"], // commas too many say nothing
  [", 4 * * *", "2026-01-01T00:00:00Z", undefined],
  ["+5 */+2 * * *", "2026-01-01T00:30:00Z", "2026-01-01T02:05:00Z"],
  ["*-5-9 */6 * * *", "2026-01-01T00:30:00Z", "2026-01-01T00:31:00Z"],
  ["@monthly", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"],
  ["@every 90m", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z"],
  ["CRON_TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T00:30:00Z", "2026-01-02T00:00:00Z"],
])("%s after %s", (schedule, from, expected) => expect(next(schedule, from)).toBe(expected));

test.each([
  // Berlin: 02:00 → 03:00 on 2026-03-29, 03:00 → 02:00 on 2026-10-25
  ["30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T02:30:00+02:00"],
  ["30 3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T03:30:00+02:00"],
  ["0 0 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:00:00+02:00"],
  ["0 4 * * *", "2026-10-24T12:00:00Z", "2026-10-25T04:00:00+01:00"],
])("in Berlin: %s after %s", (schedule, from, expected) => expect(next(schedule, from, zoneNamed("Europe/Berlin"))).toBe(expected));

test("a schedule that cannot be is refused", () => {
  for (const bad of ["", "* * * *", "60 * * * *", "* * * * 7", "a * * * *", "5-1 * * * *", "*/0 * * * *", "@now", "@every soon"]) expect(() => parseSchedule(bad, UTC), bad).toThrow();
});

const cron = (spec: Partial<CronJobSpec>, created = "2026-01-01T00:00:00Z", lastScheduleTime?: string): CronJob => ({
  apiVersion: "batch/v1", kind: "CronJob", metadata: { name: "c", namespace: "default", uid: "c", resourceVersion: "1", creationTimestamp: created },
  spec: { schedule: "0 * * * *", jobTemplate: { spec: { template: {} } }, ...spec }, status: lastScheduleTime === undefined ? {} : { lastScheduleTime },
});

test.each([
  ["not yet", cron({}), "2026-01-01T00:59:59Z", undefined, false],
  ["now", cron({}), "2026-01-01T01:00:00Z", "2026-01-01T01:00:00Z", false],
  ["the latest of several", cron({}), "2026-01-01T05:30:00Z", "2026-01-01T05:00:00Z", false],
  ["after a long sleep", cron({}), "2026-02-01T05:30:00Z", "2026-02-01T05:00:00Z", true],
  ["done already", cron({}, undefined, "2026-01-01T05:00:00Z"), "2026-01-01T05:30:00Z", undefined, false],
  ["nobody was there from 08:29 to 10:21", cron({ schedule: "* * * * *" }, undefined, "2026-01-01T08:29:00Z"), "2026-01-01T10:21:30Z", "2026-01-01T10:21:00Z", true],
  ["the same, of which only the last 200 s count", cron({ schedule: "* * * * *", startingDeadlineSeconds: 200 }, undefined, "2026-01-01T08:29:00Z"), "2026-01-01T10:21:30Z", "2026-01-01T10:21:00Z", false],
  ["the same, before the next minute", cron({ schedule: "* * * * *", startingDeadlineSeconds: 200 }, undefined, "2026-01-01T10:21:00Z"), "2026-01-01T10:21:59Z", undefined, false],
  ["a deadline that no double holds", cron({ startingDeadlineSeconds: (2n ** 63n - 1n) as unknown as number }), "2026-01-01T05:30:00Z", "2026-01-01T05:00:00Z", false],
  ["hours without power after two minutes close together", cron({ schedule: "0,1 0 * * *" }, undefined, "2026-01-01T00:01:00Z"), "2026-01-02T06:00:00Z", "2026-01-02T00:01:00Z", true],
  ["the same, for weeks", cron({ schedule: "0,1 0 1 * *" }, undefined, "2025-12-01T00:01:00Z"), "2026-02-27T06:00:00Z", "2026-02-01T00:01:00Z", true],
  ["the same, within its deadline", cron({ schedule: "0,1 0 * * *", startingDeadlineSeconds: 86_400 }, undefined, "2025-01-01T00:01:00Z"), "2026-01-02T06:00:00Z", "2026-01-02T00:01:00Z", true],
  ["the same, beyond its deadline", cron({ schedule: "0,1 0 * * *", startingDeadlineSeconds: 3600 }, undefined, "2025-01-01T00:01:00Z"), "2026-01-02T06:00:00Z", undefined, false],
  ["too late to start", cron({ startingDeadlineSeconds: 60 }), "2026-01-01T05:30:00Z", undefined, false],
])("due: %s", (_, of, now, expected, many) => {
  const due = dueTime(of, parseSchedule(of.spec.schedule, UTC), at(now));
  expect([due.atMs === undefined ? undefined : formatInZone(due.atMs, UTC), due.many]).toEqual([expected, many]);
});

test("the next look is when it is due next", () => {
  expect(nextDueInMs(cron({}, undefined, "2026-01-01T05:00:00Z"), parseSchedule("0 * * * *", UTC), at("2026-01-01T05:30:00Z"))).toBe(30 * 60_000 + 100);
});

test("after runs that were missed before a long pause the latest is due, and the next look is when it is due next, not at once", () => {
  const weekdays = cron({ schedule: "30 6-16/4 * * 1-5" }, undefined, "2026-01-02T06:30:00Z"); // a Friday
  const schedule = parseSchedule(weekdays.spec.schedule, UTC);
  const nowMs = at("2026-01-02T23:00:00Z");
  expect(dueTime(weekdays, schedule, nowMs)).toMatchObject({ atMs: at("2026-01-02T14:30:00Z"), many: false });
  expect(nextDueInMs(weekdays, schedule, nowMs)).toBe(at("2026-01-05T06:30:00Z") + 100 - nowMs);
});

test("finished Jobs beyond the limits go, the oldest first, each kind for itself", () => {
  const job = (name: string, type: string, startTime: string) => ({ metadata: { name }, status: { startTime, conditions: [{ type, status: "True" }] } }) as Job;
  const all = [job("s3", "Complete", "3"), job("s1", "Complete", "1"), job("s2", "Complete", "2"), job("f1", "Failed", "0"), job("running", "Suspended", "0")];
  expect(beyondHistory(cron({ successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 1 }), all, 0).map(({ metadata }) => metadata.name)).toEqual(["s1", "s2"]);
  expect(beyondHistory(cron({ failedJobsHistoryLimit: 0 }), all, 0).map(({ metadata }) => metadata.name)).toEqual(["f1"]);
});

test("Jobs of a clock that was far ahead are the oldest", () => {
  const job = (startTime: string) => ({ metadata: { name: startTime.slice(0, 4) }, status: { startTime, conditions: [{ type: "Complete", status: "True" }] } }) as Job;
  const all = [job("2036-01-01T00:00:00Z"), job("2026-01-01T00:00:00Z"), job("2025-01-01T00:00:00Z")];
  expect(beyondHistory(cron({ successfulJobsHistoryLimit: 1 }), all, at("2026-01-01T00:01:00Z")).map(({ metadata }) => metadata.name)).toEqual(["2036", "2025"]);
});

test.each([
  ["a clock that was ten years ahead has started the last", cron({ schedule: "* * * * *" }, undefined, "2036-01-01T05:00:00Z"), 0, "2026-01-01T05:30:00Z"],
  ["an hour is waited for, as always", cron({ schedule: "* * * * *" }, undefined, "2026-01-01T06:30:00Z"), 0, undefined],
  ["ours is not set", cron({ schedule: "* * * * *" }, undefined, "2036-01-01T05:00:00Z"), at("2026-06-01T00:00:00Z"), undefined],
])("times ahead: %s", (_, made, releasedMs, expected) => {
  const clock = { ...systemClock, nowMs: () => at("2026-01-01T05:30:10Z") };
  return withControllers((deps) => [cronJobController({ ...deps, zone: UTC, releasedMs })], async (api, call) => {
    await api.client.resource(CRON_JOBS).create({ ...made, metadata: { name: "c", namespace: "default" } }, call);
    if (expected === undefined) return await Bun.sleep(100).then(() => expect(api.all(JOBS)).toEqual([]));
    await eventually(() => api.all(CRON_JOBS)[0]?.status?.lastScheduleTime, (last) => last === expected);
    expect(api.all(JOBS).map(({ metadata }) => metadata.name)).toEqual([`c-${at(expected) / 60_000}`]);
  }, { clock });
});

test("a CronJob that a clock far ahead has made is due as if it had been made a minute ago", () => {
  const nowMs = at("2026-01-01T05:30:10Z"), made = cron({}, "2036-01-01T00:00:00Z"), schedule = parseSchedule("30 * * * *", UTC);
  expect(dueTime(made, schedule, nowMs).atMs).toBeUndefined();
  expect(dueTime(withoutTimesAhead(made, nowMs), schedule, nowMs).atMs).toBe(at("2026-01-01T05:30:00Z"));
  expect(nextDueInMs(withoutTimesAhead(made, nowMs), schedule, nowMs)).toBe(at("2026-01-01T06:30:00Z") + 100 - nowMs);
});

test("a CronJob starts Jobs in time, one at a time if it must, and keeps the last", async () => {
  let aheadMs = at("2026-01-01T00:00:10Z") - Date.now();
  const clock = { nowMs: () => Date.now() + aheadMs, uptimeMs: () => performance.now() + aheadMs, sleep: () => Bun.sleep(5), every: () => { throw new Error("unused"); }, after: (ms: number, work: () => void) => { const timer = setTimeout(work, Math.min(ms, 10)); return { cancel: () => clearTimeout(timer) }; } };
  const metrics = metricsRegistry();
  await withControllers((deps) => [cronJobController({ ...deps, metrics, zone: UTC })], async (api, call) => {
    const [crons, jobs] = [api.client.resource(CRON_JOBS), api.client.resource(JOBS)];
    await crons.create({ apiVersion: "batch/v1", kind: "CronJob", metadata: { name: "c", namespace: "default" }, spec: { schedule: "* * * * *", timeZone: "Europe/Berlin", concurrencyPolicy: "Forbid", successfulJobsHistoryLimit: 1, jobTemplate: { metadata: { labels: { from: "template" } }, spec: { template: {} } } } }, call);
    await Bun.sleep(30);
    expect(api.all(JOBS)).toEqual([]);
    aheadMs += 60_000;
    const [first] = await eventually(() => api.all(JOBS), (all) => all.length === 1);
    expect(first).toMatchObject({ metadata: { name: `c-${at("2026-01-01T00:01:00Z") / 60_000}`, labels: { from: "template" }, annotations: { "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T01:01:00+01:00" } } });
    await eventually(() => api.all(CRON_JOBS)[0]?.status, (status) => status?.active?.length === 1 && status.lastScheduleTime === "2026-01-01T00:01:00Z");
    aheadMs += 60_000;
    await eventually(() => api.all(EVENTS).map(({ reason }) => reason), (reasons) => reasons.includes("JobAlreadyActive"));
    expect(api.all(JOBS)).toHaveLength(1);
    const finish = (job: Job, completionTime: string) => jobs.updateStatus({ ...job, status: { startTime: completionTime, completionTime, conditions: [{ type: "Complete", status: "True" }] } }, call);
    await finish(first!, "2026-01-01T00:01:30Z");
    const second = await eventually(() => api.all(JOBS).find(({ metadata }) => metadata.uid !== first!.metadata.uid), (job) => job !== undefined);
    await finish(second!, "2026-01-01T00:02:30Z");
    await eventually(() => api.all(JOBS).map(({ metadata }) => metadata.uid), (uids) => uids.length === 1 && uids[0] === second!.metadata.uid);
    await eventually(() => api.all(EVENTS).map(({ reason, message }) => `${reason} ${message}`), (told) => told.includes(`SuccessfulDelete Deleted job ${first!.metadata.name}`));
    await eventually(() => api.all(CRON_JOBS)[0]?.status, (status) => (status?.active ?? []).length === 0 && status?.lastSuccessfulTime === "2026-01-01T00:02:30Z");
  }, { clock: clock as never });
  expect(metrics.render()).toContain("cronjob_controller_job_creation_skew_duration_seconds_count 2\n");
});

test("what another schedule would have meant before it was given is not made up for", async () => {
  let aheadMs = at("2026-01-01T00:00:10Z") - Date.now();
  const clock = { ...systemClock, nowMs: () => Date.now() + aheadMs, after: (ms: number, work: () => void) => systemClock.after(Math.min(ms, 10), work) };
  await withControllers((deps) => [cronJobController({ ...deps, zone: UTC })], async (api, call) => {
    const made = await api.client.resource(CRON_JOBS).create({ apiVersion: "batch/v1", kind: "CronJob", metadata: { name: "c", namespace: "default" }, spec: { schedule: "0 0 1 6 *", jobTemplate: { spec: { template: {} } } } }, call);
    aheadMs += 60_000;
    await api.client.resource(CRON_JOBS).patch(made, "application/merge-patch+json", { spec: { schedule: "* * * * *" } }, call);
    await Bun.sleep(30);
    expect(api.all(JOBS)).toEqual([]);
    aheadMs += 60_000;
    const [job] = await eventually(() => api.all(JOBS), (all) => all.length > 0);
    expect(job?.metadata.name).toBe(`c-${at("2026-01-01T00:02:00Z") / 60_000}`);
  }, { clock });
});

test("a schedule that was given while the clock was ten years ahead does not wait for that time to come again", async () => {
  const tenYearsMs = at("2036-01-01T00:00:00Z") - at("2026-01-01T00:00:00Z");
  let aheadMs = at("2026-01-01T00:00:10Z") - Date.now() + tenYearsMs;
  const clock = { ...systemClock, nowMs: () => Date.now() + aheadMs, after: (ms: number, work: () => void) => systemClock.after(Math.min(ms, 10), work) };
  await withControllers((deps) => [cronJobController({ ...deps, zone: UTC })], async (api, call) => {
    const made = await api.client.resource(CRON_JOBS).create({ apiVersion: "batch/v1", kind: "CronJob", metadata: { name: "c", namespace: "default" }, spec: { schedule: "0 0 1 6 *", suspend: true, jobTemplate: { spec: { template: {} } } } }, call);
    await api.client.resource(CRON_JOBS).patch(made, "application/merge-patch+json", { spec: { schedule: "0 * * * *", suspend: false } }, call);
    await Bun.sleep(30);
    aheadMs -= tenYearsMs;
    const name = (time: string): string => `c-${at(time) / 60_000}`, names = (): string[] => api.all(JOBS).map(({ metadata }) => metadata.name);
    await eventually(names, (all) => all.length > 0);
    aheadMs += 65 * 60_000; // and from then on what was missed is made up as ever
    expect(await eventually(names, (all) => all.length > 1)).toEqual([name("2026-01-01T00:00:00Z"), name("2026-01-01T01:00:00Z")]);
  }, { clock });
});

test("a schedule whose day never comes is told of, and starts nothing", () =>
  withControllers((deps) => [cronJobController({ ...deps, zone: UTC })], async (api, call) => {
    await api.client.resource(CRON_JOBS).create({ apiVersion: "batch/v1", kind: "CronJob", metadata: { name: "c", namespace: "default" }, spec: { schedule: "0 0 31 2 *", jobTemplate: { spec: { template: {} } } } }, call);
    const [event] = await eventually(() => api.all(EVENTS), (all) => all.length > 0);
    expect([event?.type, event?.reason, event?.message]).toEqual(["Warning", "InvalidSchedule", "invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second"]);
    expect(api.all(JOBS)).toEqual([]);
  }));

test("of the zone within its schedule a CronJob that is suspended says nothing", () =>
  withControllers((deps) => [cronJobController({ ...deps, zone: UTC })], async (api, call) => {
    const told = () => api.all(EVENTS).filter(({ reason }) => reason === "UnsupportedSchedule").length;
    const made = await api.client.resource(CRON_JOBS).create({ apiVersion: "batch/v1", kind: "CronJob", metadata: { name: "c", namespace: "default" }, spec: { schedule: "TZ=Asia/Tokyo 0 0 1 6 *", suspend: true, jobTemplate: { spec: { template: {} } } } }, call);
    await Bun.sleep(30);
    expect(told()).toBe(0);
    await api.client.resource(CRON_JOBS).patch(made, "application/merge-patch+json", { spec: { suspend: false } }, call);
    await eventually(told, (count) => count > 0);
  }));
