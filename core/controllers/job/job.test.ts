import { expect, test } from "vitest";
import { eventually, type FakeApi } from "../../../test/fake-api.ts";
import { fakeKubelets, type Outcome } from "../../../test/fake-kubelet.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { Job, JobSpec } from "../../api/gen/batch.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { forbidden } from "../../api/meta/status-error.ts";
import { EVENTS, JOBS, PODS } from "../../client/resources.ts";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { ttlAfterFinishedController } from "../ttlafterfinished/ttlafterfinished.ts";
import { ActiveTimes } from "./active-times.ts";
import { Indexes } from "./indexes.ts";
import { jobControllers } from "./job.ts";
import { backoffLeftMs, failuresAfter, planPods, settle } from "./plan.ts";
import { indexFailures, TRACKING_FINALIZER } from "./pods.ts";
import { judgeFailure, successMet } from "./policies.ts";
import { deadlineInMs, viewOf } from "./view.ts";

function job(spec: Partial<JobSpec>): NewObject<Job> {
  return {
    apiVersion: "batch/v1", kind: "Job", metadata: { name: "work", namespace: "default" },
    spec: { parallelism: 2, completions: 4, backoffLimit: 6, selector: { matchLabels: { job: "work" } }, template: { metadata: { labels: { job: "work" } }, spec: { containers: [{ name: "c" }], restartPolicy: "Never" } }, ...spec },
  };
}
/** Waits for other pods no longer than a moment. */
const clock: Clock = { ...systemClock, after: (ms, work) => systemClock.after(ms === 1000 ? 1 : ms, work) };
const now = (api: FakeApi) => api.all(JOBS)[0];
const ended = (one: Job | undefined) => one?.status?.conditions?.find(({ type }) => type === "Complete" || type === "Failed");
const run = (spec: Partial<JobSpec>, outcome: (pod: Readonly<Pod>) => Outcome, body: (api: FakeApi, call: { signal: AbortSignal }) => Promise<void>, metrics = metricsRegistry()) =>
  withControllers((deps) => [...jobControllers(deps), ttlAfterFinishedController({ ...deps, metrics }), fakeKubelets(deps, outcome)], async (api, call) => {
    await api.client.resource(JOBS).create(job(spec), call);
    await body(api, call);
  }, { clock });
const indexOf = (pod: Readonly<Pod>) => Number(pod.metadata.annotations?.["batch.kubernetes.io/job-completion-index"] ?? -1);

test("a Job runs as many pods at once as it may, counts each once, and completes", () =>
  run({}, () => "succeeded", async (api) => {
    const done = await eventually(() => now(api), (one) => ended(one) !== undefined);
    expect(done!.status).toMatchObject({ succeeded: 4, active: 0, ready: 0, terminating: 0, uncountedTerminatedPods: {} });
    expect(done!.status!.conditions!.map(({ type, reason, message }) => [type, reason, message])).toEqual([
      ["SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"], ["Complete", "CompletionsReached", "Reached expected number of succeeded pods"],
    ]);
    expect(done!.status!.completionTime).toBeDefined();
    expect(api.all(PODS)).toHaveLength(4);
    await eventually(() => api.all(PODS).flatMap(({ metadata }) => metadata.finalizers ?? []), (finalizers) => finalizers.length === 0);
    await eventually(() => api.all(EVENTS).map(({ reason }) => reason), (reasons) => reasons.includes("Completed"));
  }));

test("who has just made a Job may change it at once: nobody else has written it yet", () =>
  withControllers((deps) => jobControllers(deps), async (api, call) => {
    const made = await api.client.resource(JOBS).create(job({ suspend: true }), call);
    await Bun.sleep(5);
    await api.client.resource(JOBS).update({ ...made, spec: { ...made.spec, parallelism: 1 } as JobSpec }, call);
    await eventually(() => now(api), (one) => one?.status?.conditions?.[0]?.type === "Suspended");
  }, { clock }));

test("a Job whose pods fail too often fails, and its other pods are stopped", () =>
  run({ backoffLimit: 0, parallelism: 3 }, (pod) => (pod.metadata.name.endsWith("1") || pod.metadata.labels?.["fail"] ? "failed" : "ready"), async (api, call) => {
    await eventually(() => api.all(PODS), (all) => all.length === 3 && all.every(({ status }) => status?.phase === "Running" || status?.phase === "Failed"));
    const running = api.all(PODS).find(({ status }) => status?.phase === "Running")!;
    await api.client.resource(PODS).updateStatus({ ...running, status: { ...running.status, phase: "Failed" } }, call);
    const done = await eventually(() => now(api), (one) => ended(one) !== undefined);
    expect(done!.status!.conditions!.map(({ type, reason }) => [type, reason])).toEqual([["FailureTarget", "BackoffLimitExceeded"], ["Failed", "BackoffLimitExceeded"]]);
    expect(done!.status).toMatchObject({ active: 0, failed: 3 }); // those stopped by the end of the Job count too
    await eventually(() => api.all(PODS).filter(({ status }) => status?.phase !== "Failed"), (left) => left.length === 0);
  }));

test("an indexed Job has one pod of each index, tries failed ones again apart, and says which are lost", () =>
  run({ completionMode: "Indexed", completions: 5, parallelism: 5, backoffLimitPerIndex: 0, backoffLimit: 2 ** 31 - 1 }, (pod) => (indexOf(pod) === 3 ? "failed" : "succeeded"), async (api) => {
    const done = await eventually(() => now(api), (one) => ended(one) !== undefined);
    expect(ended(done)).toMatchObject({ type: "Failed", reason: "FailedIndexes", message: "Job has failed indexes" });
    expect(done!.status).toMatchObject({ succeeded: 4, failed: 1, completedIndexes: "0-2,4", failedIndexes: "3" });
    const second = api.all(PODS).find((pod) => indexOf(pod) === 2)!;
    expect(second).toMatchObject({ metadata: { labels: { "batch.kubernetes.io/job-completion-index": "2" } }, spec: { hostname: "work-2", containers: [{ env: [{ name: "JOB_COMPLETION_INDEX" }] }] } });
    expect(second.metadata.name).toMatch(/^work-2-/);
  }));

test("a suspended Job has no pods; resumed, it starts anew", () =>
  run({ suspend: true }, () => "ready", async (api, call) => {
    const jobs = api.client.resource(JOBS);
    await eventually(() => now(api)?.status?.conditions?.[0], (condition) => condition?.type === "Suspended" && condition.status === "True");
    expect([api.all(PODS).length, now(api)?.status?.startTime]).toEqual([0, undefined]);
    await jobs.patch(now(api)!, "application/merge-patch+json", { spec: { suspend: false } }, call);
    await eventually(() => now(api)?.status, (status) => status?.active === 2 && status.ready === 2 && status.startTime !== undefined);
    await jobs.patch(now(api)!, "application/merge-patch+json", { spec: { suspend: true } }, call);
    await eventually(() => now(api)?.status, (status) => status?.active === 0 && status.terminating === 0);
    expect(now(api)?.status?.failed ?? 0).toBe(0);
    expect(api.all(EVENTS).map(({ reason }) => reason)).toEqual(expect.arrayContaining(["Suspended", "Resumed"]));
  }));

test("what becomes of pods within a second is looked at together: whoever succeeded beside the one that was enough has succeeded, too", async () => {
  const waiting = new Set<() => void>();
  const held: Clock = { ...systemClock, after: (ms, work) => (ms === 1000 ? (waiting.add(work), { cancel: () => void waiting.delete(work) }) : systemClock.after(ms, work)) };
  const secondIsOver = (): void => { for (const work of waiting) { waiting.delete(work); work(); } };
  await withControllers((deps) => jobControllers(deps), async (api, call) => {
    await api.client.resource(JOBS).create(job({ completionMode: "Indexed", completions: 3, parallelism: 3, successPolicy: { rules: [{ succeededCount: 1 }] } }), call);
    await eventually(() => api.all(PODS), (all) => all.length === 3);
    for (const pod of api.all(PODS)) await api.client.resource(PODS).updateStatus({ ...pod, status: { phase: "Succeeded" } }, call);
    await Bun.sleep(50);
    expect(now(api)?.status?.succeeded ?? 0).toBe(0);
    const done = await eventually(() => { secondIsOver(); return now(api); }, (one) => ended(one) !== undefined);
    expect(done?.status).toMatchObject({ succeeded: 3, completedIndexes: "0-2" });
  }, { clock: held });
});

test("a deleted Job's pods are not held back, a finished one goes in its time", () => {
  const metrics = metricsRegistry();
  return run({ completions: 1, parallelism: 1, ttlSecondsAfterFinished: 0 }, () => "succeeded", async (api, call) => {
    await eventually(() => now(api)?.metadata.deletionTimestamp, (at) => at !== undefined);
    await api.client.resource(JOBS).patch(now(api)!, "application/merge-patch+json", { metadata: { finalizers: null } }, call); // as the garbage collector does
    await eventually(() => now(api), (one) => one === undefined);
    await api.client.resource(PODS).delete(api.all(PODS)[0]!, {}, call);
    await eventually(() => api.all(PODS), (all) => all.length === 0);
    expect(metrics.render()).toContain("ttl_after_finished_controller_job_deletion_duration_seconds_count 1\n");
  }, metrics);
});

test("a Job that cannot be worked on is tried again after a second, then less and less often", () =>
  withControllers((deps) => {
    expect(jobControllers(deps).map(({ name, retry }) => [name, retry])).toEqual([["job", { minMs: 1000, maxMs: 60_000 }], ["job_orphan_pod", { minMs: 1000, maxMs: 60_000 }]]);
    return [];
  }, async () => {}));

test("index sets are written as upstream writes them", () => {
  expect(Indexes.of([0, 1, 3, 4, 5, 7]).toString()).toBe("0,1,3-5,7");
  expect(Indexes.parse("0,1,3-5,x,9-12", 11).toString()).toBe("0,1,3-5,9,10");
  for (let seed = 1; seed < 200; seed++) {
    let state = seed;
    const pick = () => { state = (Math.imul(state, 1103515245) + 12345) >>> 0; return (state >>> 9) & 1; };
    const [a, b] = [0, 1].map(() => Array.from({ length: 30 }, (_, i) => i).filter(pick)) as [number[], number[]];
    const both = Indexes.of(a).union(Indexes.of(b));
    const expected = [...new Set([...a, ...b])].sort((x, y) => x - y);
    expect(both.size).toBe(expected.length);
    expect(Indexes.parse(both.toString(), 30).toString()).toBe(both.toString());
    expect(Array.from({ length: 30 }, (_, i) => i).filter((i) => both.has(i))).toEqual(expected);
    expect(both.missing(99, 30)).toEqual(Array.from({ length: 30 }, (_, i) => i).filter((i) => !expected.includes(i)));
    expect(Indexes.of(a).overlap(Indexes.of(b))).toBe(a.filter((i) => b.includes(i)).length);
  }
});

const failedPod = (more: Partial<NonNullable<Pod["status"]>>, at = "2026-01-01T00:00:00Z") => ({ metadata: { name: "p", namespace: "n", creationTimestamp: at }, spec: { containers: [] }, status: { phase: "Failed", ...more } }) as unknown as Pod;

test("failures in a row are waited out, longer each time, until something succeeds", () => {
  const t0 = Date.parse("2026-01-01T00:00:00Z");
  const named = (uid: string) => ({ metadata: { name: "work", namespace: "n", uid } }) as Job;
  const a = named("a");
  const two = failuresAfter(failuresAfter(undefined, { job: a, newSucceeded: [], newFailed: [failedPod({})] }, t0), { job: a, newSucceeded: [], newFailed: [failedPod({}, "2026-01-01T00:01:00Z")] }, t0 + 60_000);
  expect(two).toEqual({ uid: "a", count: 2, lastMs: t0 + 60_000 });
  expect([backoffLeftMs(two, t0 + 60_000), backoffLeftMs(two, t0 + 80_000), backoffLeftMs({ count: 20, lastMs: t0 }, t0)]).toEqual([20_000, 0, 600_000]);
  expect(failuresAfter(two, { job: a, newSucceeded: [failedPod({}, "2026-01-01T00:02:00Z")], newFailed: [failedPod({}, "2026-01-01T00:01:00Z"), failedPod({}, "2026-01-01T00:03:00Z")] }, t0 + 180_000)).toEqual({ uid: "a", count: 1, lastMs: t0 + 180_000 });
  expect(failuresAfter(two, { job: named("b"), newSucceeded: [], newFailed: [] }, t0)).toEqual({ uid: "b", count: 0, lastMs: 0 });
});

test("a Job that has started by a clock that was ahead is not said to have completed before", () =>
  withControllers((deps) => [...jobControllers(deps), fakeKubelets(deps, () => "succeeded")], async (api, call) => {
    const startTime = "2096-01-01T00:00:00Z";
    await api.client.resource(JOBS).create({ ...job({ completions: 1, parallelism: 1 }), status: { startTime } } as NewObject<Job>, call);
    const done = await eventually(() => now(api), (one) => ended(one) !== undefined);
    expect([done?.status?.completionTime, Date.parse(ended(done)?.lastTransitionTime ?? "") < Date.now() + 60_000]).toEqual([startTime, true]);
  }, { clock }));

test("a failure that is told by a clock that is ahead is waited out no longer than others", () => {
  const t0 = Date.parse("2026-01-01T00:00:00Z");
  const a = { metadata: { name: "work", namespace: "n", uid: "a" } } as Job;
  const endedAt = (finishedAt: string, at = "2026-01-01T00:00:00Z") => failedPod({ containerStatuses: [{ name: "c", state: { terminated: { exitCode: 1, finishedAt } } }] } as never, at);
  const leftMs = (pod: Pod, nowMs: number) => backoffLeftMs(failuresAfter(undefined, { job: a, newSucceeded: [], newFailed: [pod] }, nowMs), nowMs);
  expect([leftMs(endedAt("2026-01-01T00:00:05Z"), t0 + 3_000), leftMs(endedAt("2026-01-01T03:00:00Z"), t0 + 3_000), leftMs(endedAt("2036-01-01T00:00:00Z"), t0 + 11_000)]).toEqual([12_000, 7_000, 0]);
  expect(leftMs(endedAt("2036-01-01T00:00:05Z", "2036-01-01T00:00:00Z"), t0)).toBe(0); // both clocks were
  expect(backoffLeftMs({ count: 3, lastMs: t0 }, t0 - 3_600_000)).toBe(0); // ours has been set back
});

test.each([
  ["exit code", { containerStatuses: [{ name: "c", state: { terminated: { exitCode: 42 } } }] }, { counts: true, failsJob: "Container c for pod n/p failed with exit code 42 matching FailJob rule at index 0" }],
  ["another exit code", { containerStatuses: [{ name: "c", state: { terminated: { exitCode: 1 } } }] }, { counts: true }],
  ["disruption", { conditions: [{ type: "DisruptionTarget", status: "True" }] }, { counts: false }],
])("failure policy: %s", (_, status, verdict) => {
  const rules = [{ action: "FailJob" as const, onExitCodes: { operator: "In" as const, values: [42] } }, { action: "Ignore" as const, onPodConditions: [{ type: "DisruptionTarget" }] }];
  expect(judgeFailure({ rules }, failedPod(status as never))).toEqual(verdict);
});

test("a rule of an action or operator that is not known says nothing", () => {
  const rule = (action: string, operator: string) => ({ action, onExitCodes: { operator, values: [42] } }) as never;
  const verdict = (code: number, ...rules: never[]) => judgeFailure({ rules }, failedPod({ containerStatuses: [{ name: "c", state: { terminated: { exitCode: code } } }] } as never));
  expect(verdict(42, rule("Pause", "In"), rule("Ignore", "In"))).toEqual({ counts: false });
  expect(verdict(42, rule("FailJob", "Near"))).toEqual({ counts: true });
  expect([verdict(1, rule("Ignore", "Near")), verdict(1, rule("Ignore", "NotIn"))]).toEqual([{ counts: true }, { counts: false }]);
});

test.each([["2147483647", 2147483647], ["2147483648", 0], ["-1", 0], ["many", 0], [undefined, 0]])("failures of an index: %s are %i", (text, failures) => {
  const pod = { metadata: { name: "p", ...(text === undefined ? {} : { annotations: { "batch.kubernetes.io/job-index-failure-count": text } }) } } as unknown as Pod;
  expect(indexFailures(pod)).toBe(failures);
});

test("success policy: enough of the named indexes, or enough at all", () => {
  const spec = { template: {}, completions: 10, successPolicy: { rules: [{ succeededIndexes: "0-3", succeededCount: 2 }, { succeededCount: 5 }] } };
  expect([successMet(spec, Indexes.of([0, 7])), successMet(spec, Indexes.of([0, 3])), successMet(spec, Indexes.of([5, 6, 7, 8, 9]))]).toEqual([undefined, "Matched rules at index 0", "Matched rules at index 1"]);
});

test.each<[string, Partial<JobSpec>, number, number, number, string]>([
  ["enough run", {}, 2, 0, 0, "tracking"], ["too few run", {}, 1, 0, 1, "pods_created"], ["too few run, of which one has just failed", {}, 1, 1, 0, "pods_created"],
  ["too many run", {}, 3, 0, 0, "pods_deleted"], ["suspended, and none runs", { suspend: true }, 0, 0, 0, "pods_deleted"],
])("as what a look at a Job is counted: %s", (_, spec, active, failures, create, action) => {
  const pods = Array.from({ length: active }, (_, i) => ({ ...failedPod({ phase: "Running" }), metadata: { name: `p${i}`, uid: `p${i}`, creationTimestamp: "2026-01-01T00:00:00Z" } }) as Pod);
  expect(planPods(viewOf(job(spec) as Job, pods), { count: failures, lastMs: 0 }, 0)).toMatchObject({ create, action });
});

test("what is named is counted only when its finalizer is gone, and only once", () => {
  const tracked = [{ metadata: { uid: "a" } }] as Pod[];
  const once = settle({ succeeded: 1, failed: 0, uncountedTerminatedPods: { succeeded: ["a", "b"], failed: ["c"] } }, tracked);
  expect(once).toEqual({ succeeded: 2, failed: 1, uncountedTerminatedPods: { succeeded: ["a"] } });
  expect(settle(once, tracked)).toEqual(once);
});

test.each(["Indexed", "NonIndexed"] as const)("who was named as failed while on the way out, and ended well, is no success: another takes its place (%s)", (completionMode) => {
  const late = { metadata: { name: "late", uid: "late", finalizers: [TRACKING_FINALIZER], deletionTimestamp: "2026-01-01T00:00:00Z", annotations: { "batch.kubernetes.io/job-completion-index": "0" } }, status: { phase: "Succeeded" } } as unknown as Pod;
  const seen = viewOf({ ...job({ completions: 1, completionMode }), status: { uncountedTerminatedPods: { failed: ["late"] } } } as unknown as Job, [late]);
  expect(seen).toMatchObject({ succeeded: 0, failed: 1, newSucceeded: [] });
  expect(planPods(seen, { count: 0, lastMs: 0 }, 0)).toMatchObject({ create: 1 });
});

test("what ends is counted under upstream's names, each pod once", async () => {
  const metrics = metricsRegistry();
  const counted = (): string[] => metrics.render().split("\n").filter((line) => /^job_controller_(jobs|job_pods)_finished_total/.test(line)).sort();
  await withControllers((deps) => [...jobControllers({ ...deps, metrics }), fakeKubelets(deps, (pod) => (indexOf(pod) === 1 ? "failed" : "succeeded"))], async (api, call) => {
    await api.client.resource(JOBS).create(job({ completionMode: "Indexed", completions: 2, backoffLimitPerIndex: 0 }), call);
    await eventually(() => now(api), (one) => ended(one) !== undefined);
    await eventually(counted, (lines) => lines.length === 3);
  }, { clock });
  expect(counted()).toEqual([
    'job_controller_job_pods_finished_total{completion_mode="Indexed",result="failed"} 1',
    'job_controller_job_pods_finished_total{completion_mode="Indexed",result="succeeded"} 1',
    'job_controller_jobs_finished_total{completion_mode="Indexed",reason="FailedIndexes",result="failed"} 1',
  ]);
  const others = metrics.render().split("\n").filter((line) => /^job_controller_(job_finished_indexes|job_pods_creation|terminated_pods_tracking_finalizer)_total/.test(line)).sort();
  expect(others).toEqual([
    'job_controller_job_finished_indexes_total{backoffLimit="perIndex",status="failed"} 1',
    'job_controller_job_finished_indexes_total{backoffLimit="perIndex",status="succeeded"} 1',
    'job_controller_job_pods_creation_total{reason="new",status="succeeded"} 2',
    'job_controller_terminated_pods_tracking_finalizer_total{event="add"} 2',
    'job_controller_terminated_pods_tracking_finalizer_total{event="delete"} 2',
  ]);
  expect(metrics.render()).toMatch(/^job_controller_job_syncs_total\{action="pods_created",completion_mode="Indexed",result="success"\} [1-9]/m);
});

test("what rules of a failure policy did is counted, and Jobs of other controllers", async () => {
  const metrics = metricsRegistry();
  const policy = { rules: [{ action: "FailJob" as const, onPodConditions: [{ type: "Broken", status: "True" }] }] };
  await withControllers((deps) => jobControllers({ ...deps, metrics }), async (api, call) => {
    await api.client.resource(JOBS).create({ ...job({ managedBy: "example.com/other" }), metadata: { name: "theirs", namespace: "default" } }, call);
    await api.client.resource(JOBS).create(job({ parallelism: 1, podFailurePolicy: policy }), call);
    const [pod] = await eventually(() => api.all(PODS), (all) => all.length === 1);
    await api.client.resource(PODS).updateStatus({ ...pod!, status: { phase: "Failed", conditions: [{ type: "Broken", status: "True" }] } }, call);
    await eventually(() => api.all(JOBS).map((one) => ended(one)?.reason), (reasons) => reasons.includes("PodFailurePolicy"));
  }, { clock });
  expect(metrics.render()).toContain('\njob_controller_pod_failures_handled_by_failure_policy_total{action="FailJob"} 1\n');
  expect(metrics.render()).toContain('\njob_controller_jobs_by_external_controller_total{controller_name="example.com/other"} 1\n');
});

test("a finalizer is taken off what no Job of ours counts, and off nothing that another controller does", () =>
  withControllers((deps) => jobControllers(deps), async (api, call) => {
    const [jobs, pods] = [api.client.resource(JOBS), api.client.resource(PODS)];
    const finish = async (name: string, spec: Partial<JobSpec>) => {
      const made = await jobs.create({ ...job({ suspend: true, ...spec }), metadata: { name, namespace: "default" } }, call);
      await jobs.patch(made, "application/merge-patch+json", { status: { conditions: [{ type: "Complete", status: "True" }] } }, { ...call, subresource: "status" });
      return { apiVersion: "batch/v1", kind: "Job", name, uid: made.metadata.uid };
    };
    const owners = { ours: await finish("ours", {}), theirs: await finish("theirs", { managedBy: "example.com/other" }), other: { apiVersion: "example.com/v1", kind: "Work", name: "ours", uid: "w" } };
    for (const [name, owner] of Object.entries(owners)) {
      await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", finalizers: [TRACKING_FINALIZER], ownerReferences: [{ ...owner, controller: true }] }, spec: { containers: [{ name: "c" }] } }, call);
    }
    const held = () => api.all(PODS).filter(({ metadata }) => metadata.finalizers?.includes(TRACKING_FINALIZER)).map(({ metadata }) => metadata.name);
    await eventually(held, (names) => !names.includes("ours"));
    await pods.patch({ metadata: { name: "other", namespace: "default" } }, "application/merge-patch+json", { metadata: { labels: { look: "again" } } }, call);
    await Bun.sleep(20);
    expect(held().toSorted()).toEqual(["other", "theirs"]);
  }));

test("what could be done of a Job's pods is told, and that it is suspended, though some were refused", () =>
  withControllers((deps) => jobControllers(deps), async (api, call) => {
    let made = 0;
    api.fail = ({ method, path }) => ((method === "POST" && path.endsWith("/pods") && ++made > 2) || (method === "DELETE" && path.endsWith(api.all(PODS)[0]!.metadata.name)) ? forbidden({ group: "", resource: "pods" }, "", "no") : undefined);
    const one = await api.client.resource(JOBS).create(job({ parallelism: 4 }), call);
    const first = await eventually(() => now(api)?.status, (status) => status?.startTime !== undefined);
    expect(first).toMatchObject({ active: 2 });
    await api.client.resource(JOBS).patch(one, "application/merge-patch+json", { spec: { suspend: true } }, call);
    const held = await eventually(() => now(api)?.status, (status) => status?.conditions?.some(({ type, status: is }) => type === "Suspended" && is === "True") === true);
    expect(held?.active).toBe(1);
  }));

test("a condition that somebody has set to False stands in no end's way", () =>
  withControllers((deps) => jobControllers(deps), async (api, call) => {
    const told = ["FailureTarget", "Failed"].map((type) => ({ type, status: "False", reason: "Manually" }));
    const made = await api.client.resource(JOBS).create(job({ suspend: true, backoffLimit: 0, parallelism: 1 }), call);
    await api.client.resource(JOBS).patch(made, "application/merge-patch+json", { status: { conditions: told } }, { ...call, subresource: "status" });
    await api.client.resource(JOBS).patch(made, "application/merge-patch+json", { spec: { suspend: false } }, call);
    const [pod] = await eventually(() => api.all(PODS), (all) => all.length === 1);
    await api.client.resource(PODS).updateStatus({ ...pod!, status: { phase: "Failed" } }, call);
    const done = await eventually(() => now(api)?.status?.conditions ?? [], (all) => all.some(({ type, status }) => type === "Failed" && status === "True"));
    expect(done.filter(({ type }) => type !== "Suspended").map(({ type, status, reason }) => `${type} ${status} ${reason}`)).toEqual(["FailureTarget False Manually", "Failed True BackoffLimitExceeded", "FailureTarget True BackoffLimitExceeded"]);
  }, { clock }));

test.each([[60, 50_000], [5, 0], [2n ** 63n - 1n, 2 ** 63 * 1000], [undefined, undefined]])("10 s after the start a deadline of %s s is %s ms away", (activeDeadlineSeconds, inMs) => {
  const view = viewOf({ ...job({ activeDeadlineSeconds: activeDeadlineSeconds as number | undefined }), status: { startTime: "2026-01-01T00:00:00Z" } } as unknown as Job, []);
  const left = deadlineInMs(view, 10_000);
  expect(left === undefined ? undefined : Math.abs(left - inMs!) <= 2 ** 32).toBe(inMs === undefined ? undefined : true);
});

test("a Job is active for as long as it is, though the clock is set meanwhile", () => {
  const clock = { now: Date.parse("1970-01-01T00:00:00Z"), up: 0, nowMs: () => clock.now, uptimeMs: () => clock.up };
  const times = new ActiveTimes(clock);
  const started = (startTime: string | undefined, uid = "u") => ({ metadata: { name: "work", namespace: "n", uid }, status: { startTime } }) as Job;
  const early = started("1970-01-01T00:00:00Z");
  expect(times.of(early)).toBe(0);
  [clock.now, clock.up] = [Date.parse("2026-01-01T00:00:00Z"), 5_000]; // a network has appeared
  expect(times.of(early)).toBe(5_000);
  expect(new ActiveTimes(clock).of(started("2025-12-31T23:59:00Z"))).toBe(60_000); // it was started before we were
  expect([times.of(started("2026-01-01T00:00:00Z")), times.of(started(undefined)), times.of(started("2096-01-01T00:00:00Z", "other"))]).toEqual([0, 0, 0]);
  clock.up += 1_000;
  expect(times.of(started("2096-01-01T00:00:00Z", "other"))).toBe(1_000);
});
