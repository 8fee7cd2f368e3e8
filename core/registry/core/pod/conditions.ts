/** One condition of a pod's status. Source: kubernetes v1.36 pkg/api/pod/util.go UpdatePodCondition */
import type { PodCondition, PodStatus } from "../../../api/gen/core.v1.ts";
import { timestamp } from "../../../lifecycle/clock.ts";

/** Adds the condition or replaces the one of its type; the transition time moves only if the status does. Mutates `status`. */
export function setPodCondition(status: PodStatus, condition: Omit<PodCondition, "lastTransitionTime">, nowMs: number): void {
  const conditions = [...(status.conditions ?? [])];
  const at = conditions.findIndex(({ type }) => type === condition.type);
  const before = conditions[at];
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : timestamp(nowMs);
  const next: PodCondition = { ...condition, lastTransitionTime };
  if (at < 0) conditions.push(next);
  else conditions[at] = next;
  status.conditions = conditions;
}
