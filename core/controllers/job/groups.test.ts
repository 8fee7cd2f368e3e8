import { expect, test } from "vitest";
import { eventually, type FakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Job, JobSpec } from "../../api/gen/batch.v1.ts";
import type { PodGroup, Workload } from "../../api/gen/scheduling.v1alpha2.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { EVENTS, JOBS, POD_GROUPS, PODS, WORKLOADS } from "../../client/resources.ts";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import { groupName, isGang, workloadName } from "./groups.ts";
import { jobControllers } from "./job.ts";

const GANG: Partial<JobSpec> = { parallelism: 4, completions: 4, completionMode: "Indexed" };
const template: JobSpec["template"] = { metadata: { labels: { job: "work" } }, spec: { containers: [{ name: "c" }], restartPolicy: "Never" } };
const grouped = { ...template, spec: { ...template.spec!, schedulingGroup: { podGroupName: "mine" } } };
const job = (spec: Partial<JobSpec> = GANG, name = "work"): NewObject<Job> => ({ apiVersion: "batch/v1", kind: "Job", metadata: { name, namespace: "default" }, spec: { backoffLimit: 6, selector: { matchLabels: { job: "work" } }, template, ...spec } });
const clock: Clock = { ...systemClock, after: (ms, work) => systemClock.after(ms === 1000 ? 1 : ms, work) };

test.each<[Partial<JobSpec>, boolean]>([
  [GANG, true], [{ ...GANG, parallelism: undefined }, false], [{ ...GANG, parallelism: 1, completions: 1 }, false], [{ ...GANG, completionMode: "NonIndexed" }, false], [{ ...GANG, completionMode: undefined }, false],
  [{ ...GANG, completions: undefined }, false], [{ ...GANG, completions: 8 }, false], [{ ...GANG, template: grouped }, false],
])("%j are scheduled all or none: %s", (spec, gang) => expect(isGang(stored<Job>("batch/v1", "Job", "default/a", job(spec)))).toBe(gang));

test("names fit, are the same each time, and are of the Job's uid", () => {
  const of = (name: string, uid: string): string => workloadName(stored<Job>("batch/v1", "Job", "default/x", { metadata: { name, uid } }));
  expect([of("my-job", "uid-123"), of("my-job", "uid-124")]).toEqual(["my-job-795ddf89fd", "my-job-79bf66c899"]);
  expect(of("a".repeat(253), "uid-long")).toHaveLength(253);
  expect(groupName("wl", "tpl")).toMatch(/^wl-tpl-[b-z2-9]{8,10}$/);
  expect(groupName("wl", "t".repeat(250))).toMatch(/^wl-t{238,240}-[b-z2-9]{8,10}$/);
  expect(groupName("w".repeat(250), "tpl")).toMatch(/^w{237,239}-tpl-[b-z2-9]{8,10}$/);
  const [, left = "", right = ""] = /^(w+)-(t+)-[b-z2-9]+$/.exec(groupName("w".repeat(200), "t".repeat(200))) ?? [];
  expect([left.length - right.length, groupName("w".repeat(200), "t".repeat(200)).length]).toEqual([left.length % 2 === right.length % 2 ? 0 : 1, 253]);
});

const named = (api: FakeApi) => api.all(PODS).map(({ spec }) => spec.schedulingGroup?.podGroupName);
type Prepared = (api: FakeApi, made: Readonly<Job>, call: { signal: AbortSignal }) => Promise<void>;

/** The Job is there, with what `prepare` adds, before the controller is. */
async function run(spec: Partial<JobSpec>, { prepare, groupsJobs = true, name }: { readonly prepare?: Prepared; readonly groupsJobs?: boolean; readonly name?: string }, body: Prepared): Promise<void> {
  await withControllers(() => [], async (api, call) => {
    const made = await api.client.resource(JOBS).create(job(spec, name), call);
    await prepare?.(api, made, call);
    await withControllers((deps) => jobControllers({ ...deps, groupsJobs }), (_, signal) => body(api, made, signal), { clock, api });
  });
}

test("a Job of a gang has its workload and its group before its pods, which name it", () =>
  run(GANG, {}, async (api, made) => {
    await eventually(() => api.all(PODS), (pods) => pods.length === 4);
    const [workload, ...moreWorkloads] = api.all(WORKLOADS), [group, ...moreGroups] = api.all(POD_GROUPS);
    expect([moreWorkloads, moreGroups]).toEqual([[], []]);
    const owner = { apiVersion: "batch/v1", kind: "Job", name: "work", uid: made.metadata.uid, controller: true, blockOwnerDeletion: true }, schedulingPolicy = { gang: { minCount: 4 } };
    expect(workload).toMatchObject({ metadata: { name: workloadName(made), ownerReferences: [owner] }, spec: { controllerRef: { apiGroup: "batch", kind: "Job", name: "work" }, podGroupTemplates: [{ name: "work-pgt-0", schedulingPolicy }] } });
    expect(group!.metadata.name).toBe(groupName(workloadName(made), "work-pgt-0"));
    expect(group!.metadata.ownerReferences).toEqual([owner, { apiVersion: "scheduling.k8s.io/v1alpha2", kind: "Workload", name: workload!.metadata.name, uid: workload!.metadata.uid }]);
    expect(group!.spec).toEqual({ podGroupTemplateRef: { workload: { workloadName: workload!.metadata.name, podGroupTemplateName: "work-pgt-0" } }, schedulingPolicy });
    expect(named(api)).toEqual(Array(4).fill(group!.metadata.name));
    expect(api.all(PODS)[0]!.metadata.ownerReferences).toEqual([owner, { apiVersion: "scheduling.k8s.io/v1alpha2", kind: "PodGroup", name: group!.metadata.name, uid: group!.metadata.uid }]);
    await eventually(() => api.all(EVENTS).find(({ reason }) => reason === "WorkloadCreated")?.message, (message) => message === `Created Workload ${workload!.metadata.name} for Job work`);
  }));

test("a suspended Job has its group already; resumed, its pods are of it", () =>
  run({ ...GANG, suspend: true }, {}, async (api, _, call) => {
    await eventually(() => api.all(JOBS)[0]?.status?.conditions?.[0]?.type, (type) => type === "Suspended");
    expect([api.all(WORKLOADS).length, api.all(POD_GROUPS).length, api.all(PODS).length]).toEqual([1, 1, 0]);
    const now = api.all(JOBS)[0]!;
    await api.client.resource(JOBS).update({ ...now, spec: { ...now.spec!, suspend: false } }, call);
    await eventually(() => named(api), (names) => names.length === 4 && names.every((name) => name === api.all(POD_GROUPS)[0]!.metadata.name));
    expect(api.all(WORKLOADS)).toHaveLength(1);
  }));

const byController = ({ metadata: { name, uid } }: Readonly<Job>) => ({ ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name, uid, controller: true }] });
const workloadFor = (made: Readonly<Job>, name: string, templates = ["work-pgt-0"], metadata: object = byController(made)): NewObject<Workload> =>
  ({ apiVersion: "scheduling.k8s.io/v1alpha2", kind: "Workload", metadata: { name, namespace: "default", ...metadata }, spec: { controllerRef: { apiGroup: "batch", kind: "Job", name: "work" }, podGroupTemplates: templates.map((one) => ({ name: one, schedulingPolicy: { gang: { minCount: 4 } } })) } });
const groupFor = (made: Readonly<Job>, name: string, workload: string, metadata: object = byController(made)): NewObject<PodGroup> =>
  ({ apiVersion: "scheduling.k8s.io/v1alpha2", kind: "PodGroup", metadata: { name, namespace: "default", ...metadata }, spec: { podGroupTemplateRef: { workload: { workloadName: workload, podGroupTemplateName: "work-pgt-0" } }, schedulingPolicy: { gang: { minCount: 4 } } } });
const having = (workloads: (made: Readonly<Job>) => NewObject<Workload>[], groups: (made: Readonly<Job>) => NewObject<PodGroup>[] = () => [], status?: object): Prepared => async (api, made, call) => {
  for (const one of workloads(made)) await api.client.resource(WORKLOADS).create(one, call);
  for (const one of groups(made)) await api.client.resource(POD_GROUPS).create(one, call);
  if (status) await api.client.resource(JOBS).updateStatus({ ...made, status } as Job, call);
};

test.each<[string, Prepared, string | undefined, counts: [workloads: number, groups: number]]>([
  ["its own of before", having((made) => [workloadFor(made, "w")], (made) => [groupFor(made, "g", "w")]), "g", [1, 1]],
  ["its own, though it has begun", having((made) => [workloadFor(made, "w")], (made) => [groupFor(made, "g", "w")], { startTime: "2026-01-01T00:00:00Z", failed: 1 }), "g", [1, 1]],
  ["its workload alone", having((made) => [workloadFor(made, "w")]), groupName("w", "work-pgt-0"), [1, 1]],
  ["somebody else's workload", having((made) => [workloadFor(made, "w", ["work-pgt-0"], {})]), undefined, [1, 0]],
  ["two workloads", having((made) => [workloadFor(made, "w"), workloadFor(made, "v")]), undefined, [2, 0]],
  ["a workload of two templates", having((made) => [workloadFor(made, "w", ["a", "b"])]), undefined, [1, 0]],
  ["somebody else's group", having((made) => [workloadFor(made, "w")], (made) => [groupFor(made, "g", "w", {})]), undefined, [1, 1]],
  ["two groups", having((made) => [workloadFor(made, "w")], (made) => [groupFor(made, "g", "w"), groupFor(made, "h", "w")]), undefined, [1, 2]],
  ["started before", having(() => [], () => [], { startTime: "2026-01-01T00:00:00Z" }), undefined, [0, 0]],
  ["failed pods", having(() => [], () => [], { failed: 1 }), undefined, [0, 0]],
  ["been suspended", having(() => [], () => [], { conditions: [{ type: "Suspended", status: "False" }] }), undefined, [0, 0]],
])("a Job that has %s", (_, prepare, group, counts) =>
  run(GANG, { prepare }, async (api) => {
    await eventually(() => api.all(PODS), (pods) => pods.length === 4);
    expect(named(api)).toEqual(Array(4).fill(group));
    expect([api.all(WORKLOADS).length, api.all(POD_GROUPS).length]).toEqual(counts);
  }));

test.each<[string, Partial<JobSpec>, boolean, string | undefined]>([
  ["not switched on", GANG, false, undefined], ["of other Jobs", { parallelism: 4, completions: 4, completionMode: "NonIndexed" }, true, undefined], ["of pods that say of which group they are", { ...GANG, template: grouped }, true, "mine"],
])("%s, nothing is made", (_, spec, groupsJobs, group) =>
  run(spec, { groupsJobs }, async (api) => {
    await eventually(() => api.all(PODS), (pods) => pods.length === 4);
    expect(named(api)).toEqual(Array(4).fill(group));
    expect(api.all(PODS).every(({ metadata: { ownerReferences } }) => ownerReferences?.length === 1)).toBe(true);
    expect([api.all(WORKLOADS).length, api.all(POD_GROUPS).length]).toEqual([0, 0]);
  }));

test("without its workload a Job has no pods", () =>
  run(GANG, { prepare: async (api, made, call) => { await api.client.resource(WORKLOADS).create({ ...workloadFor(made, workloadName(made)), spec: { podGroupTemplates: [] } }, call); } }, async (api) => {
    await Bun.sleep(100);
    expect(api.all(PODS)).toEqual([]);
  }));

test("the template of a Job with a long name has a name that a template may have", () =>
  run(GANG, { name: "n".repeat(60) }, async (api) => {
    const [workload] = await eventually(() => api.all(WORKLOADS), (all) => all.length === 1);
    expect(workload!.spec.podGroupTemplates[0]!.name).toBe(`${"n".repeat(57)}-pgt-0`);
  }));
