/** Cases: kubernetes v1.36 pkg/scheduler/schedule_one_podgroup_test.go TestUpdatePodGroupCondition */
import { expect, test } from "vitest";
import type { Condition } from "../api/gen/meta.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { stored } from "../../test/static-informer.ts";
import { groupCondition } from "./pod-group-status.ts";
import type { GroupVerdict } from "./pod-group-verdict.ts";

const BEFORE = "2026-01-01T00:00:00Z", NOW = "2026-01-02T00:00:00Z";
const condition = (status: string, reason: string, message: string, lastTransitionTime: string, more: object = {}): Condition => ({ type: "PodGroupScheduled", status, reason, message, lastTransitionTime, ...more });
const group = (known?: Condition, metadata: object = {}): PodGroup => stored("scheduling.k8s.io/v1alpha2", "PodGroup", "ns/pg", { metadata, spec: { schedulingPolicy: { basic: {} } }, ...(known && { status: { conditions: [{ ...known, type: "Other" }, known] } }) });
const SCHEDULED: GroupVerdict = { type: "scheduled" }, NOT: GroupVerdict = { type: "unschedulable", waits: false, message: "no" }, ERROR: GroupVerdict = { type: "error", message: "boom" };

test.each<[string, PodGroup, GroupVerdict, Condition | undefined]>([
  ["nothing is known, it is scheduled", group(), SCHEDULED, condition("True", "Scheduled", "", NOW)],
  ["nothing is known, it is not", group(), NOT, condition("False", "Unschedulable", "no", NOW)],
  ["nothing is known, there was an error", group(), ERROR, condition("False", "SchedulerError", "boom", NOW)],
  ["it was not, and is", group(condition("False", "Unschedulable", "no", BEFORE)), SCHEDULED, condition("True", "Scheduled", "", NOW)],
  ["there was an error, and it is", group(condition("False", "SchedulerError", "boom", BEFORE)), SCHEDULED, condition("True", "Scheduled", "", NOW)],
  ["it was, and some of it are not", group(condition("True", "Scheduled", "", BEFORE)), NOT, undefined],
  ["it was, and there was an error", group(condition("True", "Scheduled", "", BEFORE)), ERROR, undefined],
  ["it is still not, for another reason: since when stays", group(condition("False", "Unschedulable", "no", BEFORE)), ERROR, condition("False", "SchedulerError", "boom", BEFORE)],
  ["it is still not, with other words", group(condition("False", "Unschedulable", "never", BEFORE)), NOT, condition("False", "Unschedulable", "no", BEFORE)],
  ["it is as it was", group(condition("False", "Unschedulable", "no", BEFORE)), NOT, undefined],
  ["it is as it was, of a later generation", group(condition("False", "Unschedulable", "no", BEFORE, { observedGeneration: 1 }), { generation: 2 }), NOT, condition("False", "Unschedulable", "no", BEFORE, { observedGeneration: 2 })],
])("%s", (_name, podGroup, verdict, expected) => expect(groupCondition(podGroup, verdict, Date.parse(NOW))).toEqual(expected));
