import { expect, test } from "vitest";
import type { PodGroup, Workload } from "../../api/gen/scheduling.v1alpha2.ts";
import type { Resource } from "../generic/resource.ts";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { podGroupDefinition, workloadDefinition } from "./workload.ts";

const TOPOLOGY = "TopologyAwareWorkloadScheduling", PREEMPTION = "WorkloadAwarePreemption";
const on = (...gates: string[]): ReadonlySet<string> => new Set(["GenericWorkload", ...gates]);
const podGroups = podGroupDefinition(on()), workloads = workloadDefinition(on());
const GANG = { gang: { minCount: 5 } }, BASIC = { basic: {} };
const REFERENCE = { workload: { workloadName: "workload", podGroupTemplateName: "template" } };
const IMMUTABLE = "Invalid value: null: field is immutable";
const LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

const group = (spec: Given = {}): Given => ({ spec: { podGroupTemplateRef: REFERENCE, schedulingPolicy: GANG, ...spec } });
const workload = (template: Given = {}, spec: Given = {}): Given => ({ spec: { podGroupTemplates: [{ name: "main", schedulingPolicy: GANG, ...template }], ...spec } });
const topology = (...keys: string[]): Given => ({ schedulingConstraints: { topology: keys.map((key) => ({ key })) } });

/** What is wrong in a group, and at the same place in a template. */
const SHARED: readonly [gates: string[], Given, string[]][] = [
  [[], {}, []], [[], { schedulingPolicy: BASIC }, []],
  [[], { schedulingPolicy: { gang: { minCount: 0 } } }, ["schedulingPolicy.gang.minCount: Required value"]],
  [[], { schedulingPolicy: { gang: { minCount: -1 } } }, ["schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"]],
  [[], { schedulingPolicy: {} }, ['schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`']],
  [[], { schedulingPolicy: { ...BASIC, ...GANG } }, ['schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`']],
  [[], { ...topology("-", "-"), disruptionMode: "Never", priorityClassName: "a/b", priority: 2_000_000_000, resourceClaims: [{ name: "a/b" }] }, []], // dropped
  [[TOPOLOGY], topology("foo"), []], [[TOPOLOGY], { schedulingConstraints: {} }, []], [[TOPOLOGY], topology("example.com/Foo"), []],
  [[TOPOLOGY], topology("foo", "bar"), ["schedulingConstraints.topology: Too many: 2: must have at most 1 item"]],
  [[TOPOLOGY], topology(""), ["schedulingConstraints.topology[0].key: Required value"]],
  [[TOPOLOGY], topology("b".repeat(64)), [`schedulingConstraints.topology[0].key: Invalid value: "${"b".repeat(64)}": name part must be no more than 63 bytes`]],
  [[TOPOLOGY], topology("foo-"), [`schedulingConstraints.topology[0].key: Invalid value: "foo-": name part ${KEY} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`]],
  [[PREEMPTION], { disruptionMode: "PodGroup", priorityClassName: "high", priority: -2147483648 }, []],
  [[PREEMPTION], { disruptionMode: "Invalid" }, ['disruptionMode: Unsupported value: "Invalid": supported values: "Pod", "PodGroup"']],
  [[PREEMPTION], { priorityClassName: "high/priority" }, [`priorityClassName: Invalid value: "high/priority": ${SUBDOMAIN}`]],
  [[PREEMPTION], { priority: 1_000_000_001 }, ["priority: Invalid value: 1000000001: must be less than or equal to 1000000000"]],
];
test.each(SHARED)("with %j %j is %j", (gates, given, errors) => {
  expect(created(podGroupDefinition(on(...gates)), group(given)).errors).toEqual(errors.map((error) => `spec.${error}`));
  expect(created(workloadDefinition(on(...gates)), workload(given)).errors).toEqual(errors.map((error) => `spec.podGroupTemplates[0].${error}`));
});

test.each<[Given, string[]]>([
  [{ podGroupTemplateRef: undefined }, []],
  [{ podGroupTemplateRef: {} }, ['spec.podGroupTemplateRef: Invalid value: "": must specify one of: `workload`']],
  [{ podGroupTemplateRef: { workload: {} } }, ["spec.podGroupTemplateRef.workload.workloadName: Required value", "spec.podGroupTemplateRef.workload.podGroupTemplateName: Required value"]],
  [{ podGroupTemplateRef: { workload: { workloadName: "w".repeat(254), podGroupTemplateName: "t".repeat(64) } } }, [
    `spec.podGroupTemplateRef.workload.workloadName: Invalid value: "${"w".repeat(254)}": must be no more than 253 bytes`, `spec.podGroupTemplateRef.workload.podGroupTemplateName: Invalid value: "${"t".repeat(64)}": must be no more than 63 bytes`,
  ]],
  [{ podGroupTemplateRef: { workload: { workloadName: "work/load", podGroupTemplateName: "a.b" } } }, [`spec.podGroupTemplateRef.workload.workloadName: Invalid value: "work/load": ${SUBDOMAIN}`, 'spec.podGroupTemplateRef.workload.podGroupTemplateName: Invalid value: "a.b": must not contain dots']],
])("a group with %j", (spec, errors) => expect(created(podGroups, group(spec)).errors).toEqual(errors));

const templates = (count: number): Given[] => Array.from({ length: count }, (_, i) => ({ name: `t${i}`, schedulingPolicy: BASIC }));
test.each<[Given, string[]]>([
  [{ controllerRef: { apiGroup: "apps", kind: "Deployment", name: "d" } }, []], [{ controllerRef: { kind: "Pod", name: "d" } }, []],
  [{ controllerRef: {} }, ["spec.controllerRef.kind: Required value", "spec.controllerRef.name: Required value"]],
  [{ controllerRef: { apiGroup: "a/b", kind: "a/b", name: "." } }, [`spec.controllerRef.apiGroup: Invalid value: "a/b": ${SUBDOMAIN}`, `spec.controllerRef.kind: Invalid value: "a/b": may not contain '/'`, `spec.controllerRef.name: Invalid value: ".": may not be '.'`]],
  [{ podGroupTemplates: [] }, ["spec.podGroupTemplates: Required value"]], [{ podGroupTemplates: undefined }, ["spec.podGroupTemplates: Required value"]], [{ podGroupTemplates: templates(8) }, []],
  [{ podGroupTemplates: templates(9) }, ["spec.podGroupTemplates: Too many: 9: must have at most 8 items"]],
  [{ podGroupTemplates: [{ name: "", schedulingPolicy: GANG }, { name: "A", schedulingPolicy: GANG }] }, ["spec.podGroupTemplates[0].name: Required value", `spec.podGroupTemplates[1].name: Invalid value: "A": ${LABEL}`]],
])("a workload with %j", (spec, errors) => expect(created(workloads, workload({}, spec)).errors).toEqual(errors));

test("templates of one name are refused", () => {
  const errors = created(workloads, workload({}, { podGroupTemplates: [...templates(1), ...templates(1)] })).errors;
  expect(errors).toEqual(['spec.podGroupTemplates[1]: Duplicate value: {"name":"t0","schedulingPolicy":{"basic":{}},"schedulingConstraints":null}']);
});

function changed<T extends PodGroup | Workload>(definition: Resource<T>, before: Given, after: Given): readonly string[] {
  const { object } = created(definition, before);
  return updated(definition, object, { spec: { ...object.spec, ...after["spec"] as Given } }).errors;
}

test("what a group is made with it keeps", () => {
  const all = podGroupDefinition(on(TOPOLOGY, PREEMPTION));
  const before = group({ ...topology("a"), priorityClassName: "low", priority: 5 });
  expect(changed(all, before, {})).toEqual([]);
  for (const [field, value] of [
    ["podGroupTemplateRef", {}], ["podGroupTemplateRef", undefined], ["schedulingPolicy", BASIC], ["schedulingPolicy", { gang: { minCount: 0 } }], ["schedulingConstraints", {}], ["resourceClaims", undefined],
    ["disruptionMode", "PodGroup"], ["priorityClassName", "high"], ["priorityClassName", undefined], ["priority", 6],
  ] as const) expect(changed(all, before, { spec: { [field]: value } }), field).toEqual(field === "resourceClaims" ? [] : [`spec.${field}: ${IMMUTABLE}`]);
});

test("what is there of a gate that is off may stay or go, and is not changed", () => {
  const { object } = created(podGroupDefinition(on(TOPOLOGY, PREEMPTION)), group({ ...topology("a"), disruptionMode: "PodGroup", priorityClassName: "low", priority: 5 }));
  const tells = (spec: Given): readonly string[] => updated(podGroups, object, { spec: { ...object.spec, ...spec } }).errors;
  expect(tells({})).toEqual([]);
  expect(tells({ ...topology("b"), disruptionMode: "Pod", priorityClassName: "high", priority: 6 })).toEqual(["spec.schedulingConstraints: Forbidden", "spec.disruptionMode: Forbidden", "spec.priorityClassName: Forbidden", "spec.priority: Forbidden"]);
  expect(tells({ schedulingConstraints: undefined, priorityClassName: undefined, priority: undefined })).toEqual([]);
});

test("what a workload is made with it keeps", () => {
  const before = workload({}, { controllerRef: { kind: "Job", name: "a" } });
  expect(changed(workloads, before, {})).toEqual([]);
  expect(changed(workloads, before, { spec: { controllerRef: { kind: "Job", name: "b" } } })).toEqual([`spec.controllerRef: ${IMMUTABLE}`]);
  expect(changed(workloads, workload(), { spec: { controllerRef: { kind: "Job", name: "b" } } })).toEqual([`spec.controllerRef: ${IMMUTABLE}`]);
  expect(changed(workloads, before, { spec: { podGroupTemplates: templates(1) } })).toEqual([`spec.podGroupTemplates: ${IMMUTABLE}`]);
  expect(changed(workloads, before, { spec: { podGroupTemplates: templates(9) } })).toEqual([`spec.podGroupTemplates: ${IMMUTABLE}`, "spec.podGroupTemplates: Too many: 9: must have at most 8 items"]);
  expect(changed(workloads, before, { spec: { podGroupTemplates: [] } })).toEqual([`spec.podGroupTemplates: ${IMMUTABLE}`, "spec.podGroupTemplates: Required value"]);
});

test("a group is disrupted pod by pod unless it says otherwise, and says so though the gate is off", () => {
  const { object } = created(podGroups, group({ disruptionMode: "PodGroup", ...topology("a"), priority: 3 }));
  expect(object.spec).toEqual({ podGroupTemplateRef: REFERENCE, schedulingPolicy: GANG, disruptionMode: "Pod" });
  expect(created(podGroupDefinition(on(PREEMPTION)), group()).object.spec.disruptionMode).toBe("Pod");
  expect(created(workloads, workload()).object.spec.podGroupTemplates[0]).not.toHaveProperty("disruptionMode");
});

test("the status of a group has conditions of which no two are of a type, and claims of the group alone", () => {
  const { object } = created(podGroups, { ...group(), status: { conditions: [] } });
  expect(object.status).toEqual({});
  const condition = { type: "PodGroupScheduled", status: "False", reason: "Unschedulable", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" };
  const tells = (definition: Resource<PodGroup>, old: PodGroup, status: Given) => updated(definition, old, { status }, { subresource: "status" });
  expect(tells(podGroups, object, { conditions: [condition] }).errors).toEqual([]);
  expect(tells(podGroups, object, { conditions: [condition, condition] }).errors).toEqual(['status.conditions[1].type: Duplicate value: "PodGroupScheduled"']);
  expect(tells(podGroups, object, { resourceClaimStatuses: [{ name: "a" }] }).object.status).toEqual({});
  const claiming = { ...object, spec: { ...object.spec, resourceClaims: [{ name: "a", resourceClaimName: "c" }, { name: "b", resourceClaimTemplateName: "t" }] } };
  expect(tells(podGroups, claiming, { resourceClaimStatuses: [{ name: "a", resourceClaimName: "x" }, { name: "b" }] }).errors).toEqual([]);
  expect(tells(podGroups, claiming, { resourceClaimStatuses: [{ name: "a", resourceClaimName: "%" }, { name: "b" }, { name: "b" }, { name: "c" }] }).errors).toEqual([
    'status.resourceClaimStatuses[3].name: Invalid value: "c": must match the name of an entry in `spec.resourceClaims`', 'status.resourceClaimStatuses[2]: Duplicate value: {"name":"b"}',
    `status.resourceClaimStatuses[0].resourceClaimName: Invalid value: "%": ${SUBDOMAIN}`,
  ]);
});
