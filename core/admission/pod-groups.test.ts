import { expect, test } from "vitest";
import { admissionRequest, runPlugin } from "../../test/admission-request.ts";
import { fakeApi } from "../../test/fake-api.ts";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { PriorityClass } from "../api/gen/scheduling.v1.ts";
import type { Job } from "../api/gen/batch.v1.ts";
import type { PodGroup, Workload } from "../api/gen/scheduling.v1alpha2.ts";
import { informerFactory } from "../client/informer-factory.ts";
import { POD_GROUPS, PRIORITY_CLASSES } from "../client/resources.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { jobValidation, podGroupProtection, podGroupWorkloadExists } from "./pod-groups.ts";
import { admissionPlugins } from "./plugins.ts";
import { priorityAdmission } from "./priority.ts";

const API = "scheduling.k8s.io/v1alpha2", resource = "podgroups.scheduling.k8s.io";
const { client } = fakeApi();
const group = (name: string, spec: object = {}, metadata: object = {}): PodGroup => stored<PodGroup>(API, "PodGroup", `default/${name}`, { metadata, spec: { schedulingPolicy: { basic: {} }, ...spec } });
const GANG = { schedulingPolicy: { gang: { minCount: 4 } } };

test("a new group is protected, once", async () => {
  const [bare, protectedAlready] = [group("a", {}, { finalizers: ["example.com/x"] }), group("b", {}, { finalizers: ["scheduling.k8s.io/podgroup-protection"] })];
  for (const object of [bare, protectedAlready]) expect(await runPlugin(podGroupProtection, admissionRequest({ resource, object }))).toBe("ok");
  expect([bare, protectedAlready].map(({ metadata: { finalizers } }) => finalizers)).toEqual([["example.com/x", "scheduling.k8s.io/podgroup-protection"], ["scheduling.k8s.io/podgroup-protection"]]);
  expect(await runPlugin(podGroupProtection, admissionRequest({ operation: "UPDATE", resource, object: bare, old: bare }))).toBe("not handled");
  expect(await runPlugin(podGroupProtection, admissionRequest({ resource: `${resource}/status`, object: bare }))).toBe("not handled");
});

const workload = (name: string, metadata: object = {}): Workload => stored<Workload>(API, "Workload", `default/${name}`, { metadata, spec: { podGroupTemplates: [{ name: "worker", schedulingPolicy: GANG.schedulingPolicy }] } });
const exists = podGroupWorkloadExists({ workloads: staticInformer<Workload>(workload("there"), workload("going", { deletionTimestamp: "2026-07-01T00:00:00Z" })) });
const FORBIDDEN = 'podgroups.scheduling.k8s.io "a" is forbidden: PodGroup rejected: ';
test.each<[string | undefined, string, string]>([
  [undefined, "", "ok"], ["there", "worker", "ok"],
  ["gone", "worker", `${FORBIDDEN}Workload "gone" not found`], ["going", "worker", `${FORBIDDEN}Workload "going" is being deleted`],
  ["there", "driver", `${FORBIDDEN}PodGroupTemplate "driver" not found in Workload "there"`],
])("a group made of %s/%s: %s", async (workloadName, podGroupTemplateName, answer) => {
  const object = group("a", workloadName === undefined ? {} : { podGroupTemplateRef: { workload: { workloadName, podGroupTemplateName } } });
  expect(await runPlugin(exists, admissionRequest({ resource, object }))).toBe(answer);
});

test("of a workload in another namespace no group is made", async () => {
  const object = group("a", { podGroupTemplateRef: { workload: { workloadName: "there", podGroupTemplateName: "worker" } } });
  expect(await runPlugin(exists, admissionRequest({ resource, namespace: "other", object }))).toBe(`${FORBIDDEN}Workload "there" not found`);
});

const ownedBy = (uid: string) => ({ ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name: "j", uid, controller: true }] });
const groups = staticInformer<PodGroup>(group("gang", GANG), group("basic"), group("of-job", GANG, ownedBy("owns-gang")), group("of-other", {}, ownedBy("owns-basic")));
const changes = jobValidation({ podGroups: groups, informer: groups, client: client.resource(POD_GROUPS) });
const job = (uid: string, parallelism: number, podGroupName?: string): Job => stored<Job>("batch/v1", "Job", "default/j", { metadata: { uid }, spec: { parallelism, template: { spec: podGroupName === undefined ? {} : { schedulingGroup: { podGroupName } } } } });
const KEEPS = (name: string): string => `jobs.batch "j" is forbidden: cannot change parallelism for a Job referencing gang-scheduled PodGroup "${name}"`;
test.each<[string, string | undefined, number, string]>([
  ["u", "gang", 4, "ok"], ["u", "gang", 2, KEEPS("gang")], ["u", "basic", 2, "ok"], ["u", "missing", 2, "ok"],
  ["u", undefined, 2, "ok"], ["owns-gang", undefined, 2, KEEPS("of-job")], ["owns-gang", undefined, 4, "ok"], ["owns-basic", undefined, 2, "ok"], ["owns-gang", "basic", 2, "ok"],
])("job %s of group %s to %i: %s", async (uid, name, parallelism, answer) => {
  expect(await runPlugin(changes, admissionRequest({ operation: "UPDATE", resource: "jobs.batch", object: job(uid, parallelism, name), old: job(uid, 4, name) }))).toBe(answer);
});

const priorityClasses = staticInformer<PriorityClass>(...([["high", 1000, false], ["std", 10, true]] as const).map(([name, value, globalDefault]) => stored<PriorityClass>("scheduling.k8s.io/v1", "PriorityClass", name, { value, globalDefault })));
const none = staticInformer<PriorityClass>();
const withPriorities = (informer = priorityClasses, ofGroups = true) => priorityAdmission({ priorityClasses: informer, informer, client: client.resource(PRIORITY_CLASSES), ofGroups });
test.each<[object, string, object?]>([
  [{}, "ok", { priorityClassName: "std", priority: 10 }], [{ priorityClassName: "high" }, "ok", { priorityClassName: "high", priority: 1000 }], [{ priorityClassName: "high", priority: 1000 }, "ok", { priorityClassName: "high", priority: 1000 }],
  [{ priorityClassName: "gone" }, 'podgroups.scheduling.k8s.io "a" is forbidden: no PriorityClass with name gone was found'],
  [{ priorityClassName: "high", priority: 9999 }, 'podgroups.scheduling.k8s.io "a" is forbidden: priority set in the pod group (9999) must match the priority computed (1000) based on the priority class set in the spec'],
])("a group with %j: %s", async (spec, answer, result) => {
  const object = group("a", spec);
  expect(await runPlugin(withPriorities(), admissionRequest({ resource, object }))).toBe(answer);
  if (result) expect(object.spec).toMatchObject(result);
});

test("a group without classes has priority 0; where groups have none it is let be", async () => {
  const [bare, off] = [group("a"), group("a", { priorityClassName: "gone" })];
  expect(await runPlugin(withPriorities(none), admissionRequest({ resource, object: bare }))).toBe("ok");
  expect(bare.spec).toEqual({ schedulingPolicy: { basic: {} }, priority: 0 });
  expect(await runPlugin(withPriorities(priorityClasses, false), admissionRequest({ resource, object: off }))).toBe("not handled");
  expect(await runPlugin(withPriorities(), admissionRequest({ operation: "UPDATE", resource, object: off, old: off }))).toBe("not handled");
});

test("they are there where groups are served, in upstream's order", () => {
  const informers = informerFactory({ client, clock: systemClock, random: systemRandom, log: silentLog });
  const deps = { client, informers, authorizer: undefined as never, escalationGuard: async () => {}, clock: systemClock, random: systemRandom };
  const names = (groupsPods: boolean): string[] => admissionPlugins({ ...deps, groupsPods, disabled: ["NodeRestriction"] }).map(({ name }) => name);
  const on = names(true);
  expect(on.filter((name) => !names(false).includes(name))).toEqual(["PodGroupProtection", "PodGroupWorkloadExists", "JobValidation"]);
  expect(on.slice(on.indexOf("StorageObjectInUseProtection"), on.indexOf("StorageObjectInUseProtection") + 2)).toEqual(["StorageObjectInUseProtection", "PodGroupProtection"]);
  expect(on.slice(on.indexOf("PodTopologyLabels"), on.indexOf("PodTopologyLabels") + 5)).toEqual(["PodTopologyLabels", "PodGroupWorkloadExists", "NodeDeclaredFeatureValidator", "JobValidation", "PodResizeValidator"]);
});
