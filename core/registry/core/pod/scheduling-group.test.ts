import { afterEach, expect, test } from "vitest";
import type { Pod } from "../../../api/gen/core.v1.ts";
import { created, type Given, updated } from "../../../../test/rehearse.ts";
import { jobs } from "../../batch/job.ts";
import { keepFieldsOf } from "../../generic/switched-on.ts";
import { pods } from "./pod.ts";

afterEach(() => keepFieldsOf(new Set()));

const schedulingGroup = { podGroupName: "pg" };
const make = (spec: Given = {}) => created(pods, { spec: { containers: [{ name: "c", image: "i" }], ...spec } });
const change = (old: Pod, group: Given | undefined) => updated(pods, old, { spec: { ...old.spec, schedulingGroup: group } });

test("a pod is of a group where that is switched on, and stays of it where that is switched off", () => {
  expect(make({ schedulingGroup }).object.spec.schedulingGroup).toBeUndefined();
  keepFieldsOf(new Set(["GenericWorkload"]));
  const { object } = make({ schedulingGroup });
  expect(object.spec.schedulingGroup).toEqual(schedulingGroup);
  expect(created(jobs, { spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }], schedulingGroup } } } }).object.spec.template.spec?.schedulingGroup).toEqual(schedulingGroup);
  keepFieldsOf(new Set());
  expect(change(object, schedulingGroup)).toMatchObject({ object: { spec: { schedulingGroup } }, errors: [] });
});

test("a group has a name, and a pod does not change its group", () => {
  keepFieldsOf(new Set(["GenericWorkload"]));
  expect(make({ schedulingGroup: {} }).errors).toEqual(["spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`"]);
  expect(make({ schedulingGroup: { podGroupName: ".pod_group" } }).errors[0]).toMatch(/^spec\.schedulingGroup\.podGroupName: Invalid value: "\.pod_group": a lowercase RFC 1123 subdomain must consist of/);
  const { object } = make({ schedulingGroup });
  for (const [old, group] of [[object, { podGroupName: "other" }], [object, undefined], [make().object, schedulingGroup]] as const) expect(change(old, group).errors[0]).toMatch(/^spec: Forbidden: pod updates may not change fields other than/);
});
