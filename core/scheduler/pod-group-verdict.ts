/**
 * What becomes of a group, from what was found for each of its pods in turn. No I/O.
 *
 * One pod that Permit lets pass stands for the whole: enough of the group have a place by then. If any up to it needs others to leave, the whole group waits for that. An error ends it.
 *
 * Source: kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go podGroupSchedulingDefaultAlgorithm, submitPodGroupAlgorithmResult
 */
import { type Permit, WAITS_FOR_OTHERS } from "./pod-groups.ts";

export type PodFinding =
  /** It has a place, or would once others have left it. */
  | { readonly type: "placed" | "preempts"; readonly permit: Exclude<Permit, object> }
  | { readonly type: "rejected" }
  | { readonly type: "error"; readonly message: string };

export type GroupVerdict =
  | { readonly type: "scheduled" }
  /** `waits`: it would be, once those have left that are told to. */
  | { readonly type: "unschedulable"; readonly waits: boolean; readonly message: string }
  | { readonly type: "error"; readonly message: string };

const UNSCHEDULABLE = "pod group is unschedulable";

export function verdictOf(findings: Iterable<PodFinding>): GroupVerdict {
  let preempts = false;
  let verdict: GroupVerdict = { type: "unschedulable", waits: false, message: UNSCHEDULABLE };
  for (const finding of findings) {
    if (finding.type === "error") return { type: "error", message: `failed to schedule other pod from a pod group: ${finding.message}` };
    if (finding.type === "rejected") continue;
    preempts ||= finding.type === "preempts";
    if (finding.permit === "wait") continue;
    verdict = preempts ? { type: "unschedulable", waits: true, message: `${UNSCHEDULABLE}, pod group is waiting for preemption to complete` } : { type: "scheduled" };
  }
  return verdict;
}

export type Told =
  | "bind"
  /** What was found for it alone. */
  | "own"
  /** It is held up by its group. `keepsPlace`: the place it was found is kept for it. */
  | { readonly type: "held up"; readonly message: string; readonly keepsPlace: boolean }
  | { readonly type: "error"; readonly message: string };

/** What follows for one pod. Undefined as `finding`: its turn did not come. */
export function toldTo(finding: PodFinding | undefined, verdict: GroupVerdict): Told {
  if (verdict.type === "error") return { type: "error", message: finding?.type === "error" ? finding.message : verdict.message };
  if (finding?.type === "error") return { type: "error", message: finding.message };
  if (finding === undefined) return { type: "held up", message: verdict.type === "scheduled" ? UNSCHEDULABLE : verdict.message, keepsPlace: false };
  if (finding.type === "rejected") return "own";
  if (verdict.type === "scheduled") return finding.type === "placed" ? "bind" : "own";
  if (verdict.waits) return finding.type === "preempts" ? "own" : { type: "held up", message: verdict.message, keepsPlace: true };
  return { type: "held up", message: finding.permit === "wait" ? `${UNSCHEDULABLE}, ${WAITS_FOR_OTHERS}` : UNSCHEDULABLE, keepsPlace: false };
}
