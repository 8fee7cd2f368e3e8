/** What users of Jobs and CronJobs rely on, with the real API, controllers and scheduler; time is simulated. Simulated nodes take a second for a Job's pod, and it succeeds. */
import { expect, test } from "vitest";
import type { CronJob, Job } from "../../core/api/gen/batch.v1.ts";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { CRON_JOBS, JOBS, PODS } from "../../core/client/resources.ts";
import { type FairCluster, fairCluster, NOWHERE } from "./fair-cluster.ts";

const pod = (more: object = {}) => ({ spec: { restartPolicy: "Never", containers: [{ name: "c", image: "work:1" }], ...more } });
const job = (name: string, spec: object = {}, podSpec: object = {}) => ({ metadata: { name }, spec: { template: pod(podSpec), ...spec } });
const podsOf = async (cluster: FairCluster, name: string): Promise<Pod[]> => (await cluster.list<Pod>(PODS)).filter(({ metadata }) => metadata.labels?.["job-name"] === name);
const get = (cluster: FairCluster, name: string) => cluster.get<Job>(JOBS, name);
const ended = async (cluster: FairCluster, name: string) => (await get(cluster, name)).status?.conditions?.find(({ type, status }) => (type === "Complete" || type === "Failed") && status === "True");
/** Every pod of the Job fails as soon as it runs. */
async function failing(cluster: FairCluster, name: string, until: () => Promise<boolean>, secondsMax = 900): Promise<void> {
  for (let i = 0; !(await until()); i++) {
    if (i > secondsMax * 10) throw new Error("it does not end");
    await cluster.pass(0.1);
    for (const one of await podsOf(cluster, name)) if (one.status?.phase === "Running") await cluster.patch(PODS, one.metadata.name, { status: { phase: "Failed" } }, "status");
  }
}
const starts = (cluster: FairCluster, prefix: string): number[] => cluster.seen.filter(({ type, prefix: of, object }) => type === "ADDED" && of.includes("/pods/") && object.metadata.name.startsWith(prefix)).map(({ atMs }) => atMs / 1000);

test("one pod, one success: selector and labels are the server's, the pod stays for its log, and goes with the Job", async () => {
  await using cluster = await fairCluster({ nodes: 1 });
  const made = await cluster.create<Job>(JOBS, job("pi"));
  const labels = { "batch.kubernetes.io/controller-uid": made.metadata.uid, "batch.kubernetes.io/job-name": "pi", "controller-uid": made.metadata.uid, "job-name": "pi" };
  expect([made.spec?.selector?.matchLabels, made.spec?.template.metadata?.labels]).toEqual([{ "batch.kubernetes.io/controller-uid": made.metadata.uid }, labels]);
  expect(made.spec?.template.spec).toMatchObject({ dnsPolicy: "ClusterFirst", schedulerName: "default-scheduler", securityContext: {}, terminationGracePeriodSeconds: 30, containers: [{ terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File", resources: {} }] });
  await cluster.until(async () => (await podsOf(cluster, "pi")).length === 1);
  expect((await podsOf(cluster, "pi"))[0]!.metadata).toMatchObject({ labels, finalizers: ["batch.kubernetes.io/job-tracking"], generateName: "pi-", ownerReferences: [{ kind: "Job", name: "pi", controller: true }] });
  await cluster.until(async () => (await ended(cluster, "pi")) !== undefined);
  const { status } = await get(cluster, "pi");
  expect(status).toMatchObject({ succeeded: 1, ready: 0, startTime: expect.any(String), completionTime: expect.any(String) });
  expect(status?.conditions?.map(({ type, status: value, reason, message }) => `${type}=${value} ${reason}: ${message}`)).toEqual([
    "SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods", "Complete=True CompletionsReached: Reached expected number of succeeded pods",
  ]);
  const [only] = await podsOf(cluster, "pi");
  await cluster.until(async () => (await cluster.events("pi")).length >= 2);
  expect(await cluster.events("pi")).toEqual([`Normal SuccessfulCreate: Created pod: ${only!.metadata.name}`, "Normal Completed: Job completed"]);
  expect([only!.status?.phase, only!.metadata.finalizers]).toEqual(["Succeeded", undefined]);
  await expect(cluster.patch(JOBS, "pi", { spec: { selector: { matchLabels: { a: "b" } } } })).rejects.toThrow("field is immutable");
  await expect(cluster.patch(JOBS, "pi", { spec: { template: pod({ hostNetwork: true }) } })).rejects.toThrow("field is immutable");
  await cluster.remove(JOBS, "pi", { propagationPolicy: "Background" });
  await cluster.until(async () => (await podsOf(cluster, "pi")).length === 0);
});

test("so many completions, so many at once, and no more than are still missing; nought at once is a pause; a queue ends with its first success", async () => {
  await using cluster = await fairCluster();
  await cluster.create(JOBS, job("many", { completions: 5, parallelism: 3 }));
  let most = 0;
  const left: number[] = [];
  await cluster.until(async () => {
    const { active = 0, succeeded = 0 } = (await get(cluster, "many")).status ?? {};
    most = Math.max(most, active);
    left.push(5 - succeeded - active);
    return (await ended(cluster, "many")) !== undefined;
  });
  expect([most, Math.min(...left) >= 0, (await podsOf(cluster, "many")).length]).toEqual([3, true, 5]);

  await cluster.create(JOBS, job("paused", { completions: 2, parallelism: 0 }));
  await cluster.pass(20);
  expect((await podsOf(cluster, "paused")).length).toBe(0);
  await cluster.patch(JOBS, "paused", { spec: { parallelism: 2 } });
  await cluster.until(async () => (await ended(cluster, "paused"))?.type === "Complete");

  await cluster.create(JOBS, job("queue", { parallelism: 3 }));
  await cluster.until(async () => (await ended(cluster, "queue"))?.type === "Complete");
  expect([(await get(cluster, "queue")).spec?.completions, (await podsOf(cluster, "queue")).length]).toEqual([undefined, 3]);
});

test("indexed: each index once, known to the pod by annotation, label, hostname and environment", async () => {
  await using cluster = await fairCluster();
  await cluster.create(JOBS, job("work", { completions: 3, parallelism: 3, completionMode: "Indexed" }));
  await cluster.until(async () => (await ended(cluster, "work"))?.type === "Complete");
  const pods = await podsOf(cluster, "work");
  for (const { metadata, spec } of pods) {
    const index = metadata.annotations!["batch.kubernetes.io/job-completion-index"]!;
    expect([metadata.labels!["batch.kubernetes.io/job-completion-index"], spec.hostname]).toEqual([index, `work-${index}`]);
    expect(metadata.name).toMatch(new RegExp(`^work-${index}-[a-z0-9]{5}$`));
    expect(spec.containers[0]!.env).toEqual([{ name: "JOB_COMPLETION_INDEX", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']" } } }]);
  }
  expect([pods.map(({ metadata }) => metadata.annotations!["batch.kubernetes.io/job-completion-index"]).sort(), (await get(cluster, "work")).status?.completedIndexes]).toEqual([["0", "1", "2"], "0-2"]);
});

test("a pod that fails is made again after 10 s, 20 s, 40 s; beyond backoffLimit the Job has failed, for good", async () => {
  await using cluster = await fairCluster();
  await cluster.create(JOBS, job("bad", { backoffLimit: 3 }));
  await failing(cluster, "bad", async () => (await ended(cluster, "bad")) !== undefined);
  expect(await ended(cluster, "bad")).toMatchObject({ type: "Failed", reason: "BackoffLimitExceeded", message: "Job has reached the specified backoff limit" });
  const at = starts(cluster, "bad-");
  expect(at.slice(1).map((when, i) => Math.round((when - at[i]!) / 5) * 5)).toEqual([10, 20, 40]);
  expect((await get(cluster, "bad")).status).toMatchObject({ failed: 4 });
  await cluster.until(async () => (await cluster.events("bad")).includes("Warning BackoffLimitExceeded: Job has reached the specified backoff limit"));
  await cluster.pass(600);
  expect((await podsOf(cluster, "bad")).length).toBe(4);
});

test("activeDeadlineSeconds ends what runs, whatever tries are left", async () => {
  await using cluster = await fairCluster();
  await cluster.create(JOBS, job("slow", { activeDeadlineSeconds: 100, parallelism: 2, completions: 2 }, NOWHERE));
  const seconds = await cluster.until(async () => (await ended(cluster, "slow")) !== undefined, 200);
  expect([Math.abs(seconds - 100) < 5, await ended(cluster, "slow")]).toEqual([true, expect.objectContaining({ type: "Failed", reason: "DeadlineExceeded", message: "Job was active longer than specified deadline" })]);
  expect((await podsOf(cluster, "slow")).length).toBe(0);
});

test("suspended: no pods, no clock; resumed: it starts anew; suspended again: pods are stopped and do not count", async () => {
  await using cluster = await fairCluster();
  await cluster.create(JOBS, job("later", { suspend: true, activeDeadlineSeconds: 60, completions: 2, parallelism: 2 }, NOWHERE));
  await cluster.pass(120);
  const condition = async () => (await get(cluster, "later")).status?.conditions?.find(({ type }) => type === "Suspended");
  expect([(await podsOf(cluster, "later")).length, (await get(cluster, "later")).status?.startTime, await ended(cluster, "later")]).toEqual([0, undefined, undefined]);
  expect(await condition()).toMatchObject({ status: "True", reason: "JobSuspended", message: "Job suspended", lastProbeTime: expect.any(String), lastTransitionTime: expect.any(String) });
  await cluster.patch(JOBS, "later", { spec: { suspend: false } });
  await cluster.until(async () => (await podsOf(cluster, "later")).length === 2);
  expect([await condition(), Date.parse((await get(cluster, "later")).status!.startTime!) > cluster.nowMs - 10_000]).toEqual([expect.objectContaining({ status: "False", reason: "JobResumed" }), true]);
  await cluster.patch(JOBS, "later", { spec: { suspend: true } });
  await cluster.until(async () => (await podsOf(cluster, "later")).length === 0);
  expect((await get(cluster, "later")).status?.failed ?? 0).toBe(0);
  const events = await cluster.events("later");
  expect(events.filter((text) => /Suspended|Resumed|SuccessfulDelete/.test(text)).map((text) => text.replace(/later-\w+$/, "X")).sort()).toEqual(["Normal Resumed: Job resumed", "Normal SuccessfulDelete: Deleted pod: X", "Normal SuccessfulDelete: Deleted pod: X", "Normal Suspended: Job suspended"]);
  expect((await get(cluster, "later")).status?.conditions?.some(({ type }) => type === "Failed")).toBe(false);
});

test("a manual selector takes over the pods of a Job that was orphaned; without the word a selector is refused", async () => {
  await using cluster = await fairCluster();
  await expect(cluster.create(JOBS, job("own", { selector: { matchLabels: { a: "b" } } }))).rejects.toThrow("`selector` not auto-generated");
  const old = await cluster.create<Job>(JOBS, job("old", { completions: 2, parallelism: 2 }, NOWHERE));
  await cluster.until(async () => (await podsOf(cluster, "old")).length === 2);
  const uids = (await podsOf(cluster, "old")).map(({ metadata }) => metadata.uid).sort();
  await cluster.remove(JOBS, "old", { propagationPolicy: "Orphan" });
  await cluster.until(async () => (await cluster.list(JOBS)).length === 0);
  const labels = { "controller-uid": old.metadata.uid };
  await cluster.create(JOBS, { metadata: { name: "new" }, spec: { manualSelector: true, completions: 2, parallelism: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, ...pod(NOWHERE) } } });
  await cluster.until(async () => (await get(cluster, "new")).status?.active === 2);
  expect((await cluster.list<Pod>(PODS)).filter(({ metadata }) => metadata.ownerReferences?.[0]?.name === "new").map(({ metadata }) => metadata.uid).sort()).toEqual(uids);
});

test("counted right although its pods are deleted as they end; replaced when their node is lost", async () => {
  await using cluster = await fairCluster();
  await cluster.create(JOBS, job("work", { completions: 6, parallelism: 2 }));
  await cluster.until(async () => {
    for (const one of await podsOf(cluster, "work")) if (one.status?.phase === "Succeeded" && !one.metadata.deletionTimestamp) await cluster.remove(PODS, one.metadata.name, { gracePeriodSeconds: 0 });
    return (await ended(cluster, "work")) !== undefined;
  });
  expect((await get(cluster, "work")).status).toMatchObject({ succeeded: 6 });
  expect(starts(cluster, "work-").length).toBe(6);
});

test("ttlSecondsAfterFinished: gone so long after its end, with its pods; it may be set late; without it, kept", async () => {
  await using cluster = await fairCluster();
  for (const [name, spec] of [["soon", { ttlSecondsAfterFinished: 100 }], ["now", { ttlSecondsAfterFinished: 0 }], ["kept", {}]] as const) await cluster.create(JOBS, job(name, spec));
  const names = async (): Promise<string> => (await cluster.list(JOBS)).map(({ metadata }) => metadata.name).sort().join(" ");
  await cluster.until(async () => (await names()) === "kept soon");
  await cluster.until(async () => (await ended(cluster, "soon")) !== undefined);
  const seconds = await cluster.until(async () => (await names()) === "kept", 200);
  expect(Math.abs(seconds - 100)).toBeLessThan(10);
  await cluster.until(async () => (await podsOf(cluster, "soon")).length === 0);
  await cluster.pass(600);
  expect(await names()).toBe("kept");
  await cluster.patch(JOBS, "kept", { spec: { ttlSecondsAfterFinished: 60 } });
  await cluster.until(async () => (await names()) === "");
});

// CronJobs: time starts at 2026-01-01T00:00:20Z

const cron = (spec: object = {}, jobSpec: object = {}, podSpec: object = {}) => ({ metadata: { name: "tick" }, spec: { schedule: "* * * * *", jobTemplate: { spec: { template: pod(podSpec), ...jobSpec } }, ...spec } });
const jobsOf = async (cluster: FairCluster): Promise<Job[]> => (await cluster.list<Job>(JOBS)).toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));

test("a Job each minute, named for its time, and three good ones are kept", async () => {
  await using cluster = await fairCluster({ nodes: 1 });
  await cluster.create(CRON_JOBS, cron());
  await cluster.pass(60 * 10);
  const jobs = await jobsOf(cluster);
  expect(jobs.length).toBeGreaterThanOrEqual(3);
  expect(jobs.length).toBeLessThanOrEqual(4);
  for (const { metadata } of jobs) {
    expect(metadata.name).toBe(`tick-${Date.parse(metadata.annotations!["batch.kubernetes.io/cronjob-scheduled-timestamp"]!) / 60_000}`);
    expect(metadata.ownerReferences).toMatchObject([{ kind: "CronJob", name: "tick", controller: true }]);
  }
  const made = cluster.seen.filter(({ type, prefix }) => type === "ADDED" && prefix.includes("/jobs/")).map(({ atMs }) => Math.floor(atMs / 60_000));
  expect(made).toEqual(Array.from({ length: made.length }, (_, i) => made[0]! + i)); // each minute one
  const { status } = await cluster.get<CronJob>(CRON_JOBS, "tick");
  expect([status?.lastScheduleTime, status?.lastSuccessfulTime]).toEqual([expect.any(String), expect.any(String)]);
  expect(await cluster.events("tick")).toEqual(expect.arrayContaining([`Normal SuccessfulCreate: Created job ${jobs[0]!.metadata.name}`, `Normal SawCompletedJob: Saw completed job: ${jobs[0]!.metadata.name}, condition: Complete`]));
});

test.each([["Allow", 3], ["Forbid", 1], ["Replace", 1]] as const)("a run that does not end, and %s: %i at once", async (concurrencyPolicy, count) => {
  await using cluster = await fairCluster({ nodes: 1 });
  await cluster.create(CRON_JOBS, cron({ concurrencyPolicy }, {}, NOWHERE));
  await cluster.pass(170);
  const jobs = await jobsOf(cluster);
  expect(jobs.length).toBe(count);
  const minutes = jobs.map(({ metadata }) => (Number(metadata.name.slice("tick-".length)) - Date.parse("2026-01-01T00:00:00Z") / 60_000));
  expect(minutes).toEqual(concurrencyPolicy === "Allow" ? [1, 2, 3] : concurrencyPolicy === "Forbid" ? [1] : [3]);
});

test("controllers down for long: with a deadline the next run comes, and so it does without one, after a warning", async () => {
  for (const startingDeadlineSeconds of [200, undefined]) {
    await using cluster = await fairCluster({ nodes: 1 });
    await cluster.create(CRON_JOBS, cron(startingDeadlineSeconds === undefined ? {} : { startingDeadlineSeconds }));
    await cluster.pass(90);
    cluster.inner.killPlane("plane-a");
    await cluster.pass(3 * 3600);
    const before = cluster.seen.filter(({ type, prefix }) => type === "ADDED" && prefix.includes("/jobs/")).length;
    cluster.inner.startPlane("plane-a");
    await cluster.pass(150);
    const made = cluster.seen.filter(({ type, prefix }) => type === "ADDED" && prefix.includes("/jobs/")).slice(before).map(({ object }) => Number(object.metadata.name.slice("tick-".length)));
    expect([made.length >= 2, made.length <= 4]).toEqual([true, true]); // the latest that was missed, and those due since
    expect(made[0]! * 60_000).toBeGreaterThan(cluster.nowMs - 300_000);
    if (startingDeadlineSeconds === undefined) expect(await cluster.events("tick")).toContain("Warning TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew");
  }
});

test("suspended: nothing is started; a time zone decides when it is midnight", async () => {
  await using cluster = await fairCluster({ nodes: 1 });
  await cluster.create(CRON_JOBS, cron({ suspend: true }));
  await cluster.create(CRON_JOBS, { ...cron({ schedule: "30 1 * * *", timeZone: "Europe/Berlin" }), metadata: { name: "berlin" } });
  await cluster.pass(60 * 20);
  expect(await jobsOf(cluster)).toEqual([]);
  await cluster.pass(60 * 12);
  expect((await jobsOf(cluster)).map(({ metadata }) => [metadata.name, metadata.annotations!["batch.kubernetes.io/cronjob-scheduled-timestamp"]])).toEqual([[`berlin-${Date.parse("2026-01-01T00:30:00Z") / 60_000}`, "2026-01-01T01:30:00+01:00"]]);
});
