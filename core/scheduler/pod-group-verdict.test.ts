/** Cases: kubernetes v1.36 pkg/scheduler/schedule_one_podgroup_test.go TestPodGroupSchedulingAlgorithm, TestSubmitPodGroupAlgorithmResult */
import { expect, test } from "vitest";
import { WAITS_FOR_OTHERS } from "./pod-groups.ts";
import { type GroupVerdict, type PodFinding, toldTo, verdictOf } from "./pod-group-verdict.ts";

const FITS: PodFinding = { type: "placed", permit: undefined }, FITS_WAITS: PodFinding = { type: "placed", permit: "wait" };
const PREEMPTS: PodFinding = { type: "preempts", permit: undefined }, PREEMPTS_WAITS: PodFinding = { type: "preempts", permit: "wait" };
const NO: PodFinding = { type: "rejected" }, FAULT: PodFinding = { type: "error", message: "boom" };
const SCHEDULED: GroupVerdict = { type: "scheduled" };
const NOT: GroupVerdict = { type: "unschedulable", waits: false, message: "pod group is unschedulable" };
const WAITS: GroupVerdict = { type: "unschedulable", waits: true, message: "pod group is unschedulable, pod group is waiting for preemption to complete" };
const ERROR: GroupVerdict = { type: "error", message: "failed to schedule other pod from a pod group: boom" };

test.each<[string, PodFinding[], GroupVerdict]>([
  ["all fit", [FITS, FITS, FITS], SCHEDULED],
  ["all fit, and all wait", [FITS_WAITS, FITS_WAITS, FITS_WAITS], NOT],
  ["all fit, the last may", [FITS_WAITS, FITS_WAITS, FITS], SCHEDULED],
  ["all fit, the last waits", [FITS, FITS, FITS_WAITS], SCHEDULED],
  ["one waits, one fits nowhere, one may", [FITS_WAITS, NO, FITS], SCHEDULED],
  ["others have to leave for all", [PREEMPTS, PREEMPTS, PREEMPTS], WAITS],
  ["others would have to leave, and all wait", [PREEMPTS_WAITS, PREEMPTS_WAITS, PREEMPTS_WAITS], NOT],
  ["others have to leave for one that waits", [PREEMPTS_WAITS, FITS_WAITS, FITS], WAITS],
  ["enough fit, others have to leave for one more", [FITS_WAITS, FITS, PREEMPTS], WAITS],
  ["others have to leave for one, one fits nowhere, one fits", [PREEMPTS, NO, FITS], WAITS],
  ["none fits", [NO, NO, NO], NOT],
  ["an error", [FITS, FAULT], ERROR],
  ["an error while others have to leave", [PREEMPTS, FAULT], ERROR],
  ["nobody", [], NOT],
])("a group: %s", (_name, findings, verdict) => expect(verdictOf(findings)).toEqual(verdict));

test.each<[PodFinding | undefined, GroupVerdict, ReturnType<typeof toldTo>]>([
  [FITS, SCHEDULED, "bind"], [FITS_WAITS, SCHEDULED, "bind"], [NO, SCHEDULED, "own"],
  [FITS_WAITS, NOT, { type: "held up", message: `pod group is unschedulable, ${WAITS_FOR_OTHERS}`, keepsPlace: false }],
  [PREEMPTS_WAITS, NOT, { type: "held up", message: `pod group is unschedulable, ${WAITS_FOR_OTHERS}`, keepsPlace: false }], [NO, NOT, "own"],
  [FITS, WAITS, { type: "held up", message: "pod group is unschedulable, pod group is waiting for preemption to complete", keepsPlace: true }], [PREEMPTS, WAITS, "own"], [NO, WAITS, "own"],
  [FITS, ERROR, { type: "error", message: "failed to schedule other pod from a pod group: boom" }], [NO, ERROR, { type: "error", message: "failed to schedule other pod from a pod group: boom" }], [undefined, ERROR, { type: "error", message: "failed to schedule other pod from a pod group: boom" }], [undefined, NOT, { type: "held up", message: "pod group is unschedulable", keepsPlace: false }], [FAULT, ERROR, { type: "error", message: "boom" }],
])("a pod: %j of %j", (finding, verdict, told) => expect(toldTo(finding, verdict)).toEqual(told));
