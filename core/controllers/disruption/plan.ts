/**
 * What a PodDisruptionBudget's status says: how many of its pods are healthy, how many have to be, and so how many may be evicted now.
 *
 * Source: kubernetes v1.36 pkg/controller/disruption/disruption.go, component-helpers/apps/poddisruptionbudget
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import type { Condition } from "../../api/gen/meta.v1.ts";
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from "../../api/gen/policy.v1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { scaleIntOrPercent } from "../../api/meta/int-or-string.ts";
import { isDeleting } from "../../api/meta/object-meta.ts";
import { parseTime } from "../../api/meta/time.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { isReady, isTerminal, podCondition } from "../pod-state.ts";
import { isFarAhead } from "../wrong-clock.ts";

/** An evicted pod that is still here after this long will not go, and counts again. */
const DELETION_TIMEOUT_MS = 120_000;
/** A pod said to be disrupted that is still running after this long was not. */
const STALE_DISRUPTION_MS = 120_000;

export interface Expected { readonly expectedPods: number; readonly desiredHealthy: number }

/** Whether it takes the scale of the pods' controllers, and not just the pods, to know how many there should be. */
export function needsScale({ spec }: Readonly<PodDisruptionBudget>): boolean {
  return spec.maxUnavailable !== undefined || typeof spec.minAvailable === "string";
}

/** `scale`: pods that their controllers are to keep; the pods themselves where that is not needed. Throws for a percentage that is none. */
export function expectedPods({ spec }: Readonly<PodDisruptionBudget>, scale: number): Expected {
  if (spec.maxUnavailable !== undefined) return { expectedPods: scale, desiredHealthy: Math.max(0, scale - scaleIntOrPercent(spec.maxUnavailable, { total: scale, roundUp: true })) };
  if (spec.minAvailable === undefined) return { expectedPods: 0, desiredHealthy: 0 };
  return { expectedPods: scale, desiredHealthy: scaleIntOrPercent(spec.minAvailable, { total: scale, roundUp: true }) };
}

export interface BudgetPlan {
  readonly status: PodDisruptionBudgetStatus;
  /** Pods that were evicted long ago and are still here. */
  readonly notDeleted: readonly Readonly<Pod>[];
  /** When an eviction of before stops to count. */
  readonly againInMs: number | undefined;
}

export function planBudget(budget: Readonly<PodDisruptionBudget>, { pods, expected, nowMs }: { readonly pods: readonly Readonly<Pod>[]; readonly expected: Expected; readonly nowMs: number }): BudgetPlan {
  const disruptedPods: Record<string, string> = {};
  const notDeleted: Readonly<Pod>[] = [];
  let recheckMs: number | undefined;
  for (const pod of pods) {
    const since = budget.status?.disruptedPods?.[pod.metadata.name];
    if (since === undefined || isDeleting(pod)) continue;
    const untilMs = (parseTime(since) ?? 0) + DELETION_TIMEOUT_MS;
    if (untilMs < nowMs || isFarAhead(untilMs, nowMs)) {
      notDeleted.push(pod);
      continue;
    }
    disruptedPods[pod.metadata.name] = since;
    recheckMs = Math.min(recheckMs ?? untilMs, untilMs);
  }
  const currentHealthy = pods.filter((pod) => !isDeleting(pod) && disruptedPods[pod.metadata.name] === undefined && isReady(pod)).length;
  const disruptionsAllowed = expected.expectedPods <= 0 ? 0 : Math.max(0, currentHealthy - expected.desiredHealthy);
  const condition = disruptionsAllowed > 0 ? { status: "True", reason: "SufficientPods" } : { status: "False", reason: "InsufficientPods" };
  return {
    status: {
      ...expected, currentHealthy, disruptionsAllowed, observedGeneration: budget.metadata.generation,
      ...(Object.keys(disruptedPods).length > 0 ? { disruptedPods } : {}),
      conditions: withDisruptionAllowed(budget, { ...condition, message: "", observedGeneration: budget.metadata.generation }, nowMs),
    },
    notDeleted,
    againInMs: recheckMs === undefined ? undefined : recheckMs - nowMs + 1,
  };
}

/** When the number of pods cannot be known nothing may be evicted. */
export function failSafe(budget: Readonly<PodDisruptionBudget>, message: string, nowMs: number): PodDisruptionBudgetStatus {
  const status = budget.status ?? { currentHealthy: 0, desiredHealthy: 0, expectedPods: 0, disruptionsAllowed: 0 };
  return { ...status, disruptionsAllowed: 0, conditions: withDisruptionAllowed(budget, { status: "False", reason: "SyncFailed", message, observedGeneration: status.observedGeneration }, nowMs) };
}

function withDisruptionAllowed({ status }: Readonly<PodDisruptionBudget>, said: Pick<Condition, "status" | "reason" | "message" | "observedGeneration">, nowMs: number): Condition[] {
  const old = findCondition(status?.conditions, "DisruptionAllowed");
  const lastTransitionTime = old !== undefined && old.status === said.status ? old.lastTransitionTime : timestamp(nowMs);
  const next: Condition = { type: "DisruptionAllowed", ...said, lastTransitionTime };
  return old === undefined ? [...(status?.conditions ?? []), next] : (status?.conditions ?? []).map((one) => (one.type === next.type ? next : one));
}

/** In how long the pod's DisruptionTarget condition is stale; undefined: it has none that could be. */
export function staleDisruptionInMs(pod: Readonly<Pod>, nowMs: number): number | undefined {
  const condition = podCondition(pod, "DisruptionTarget");
  if (isDeleting(pod) || isTerminal(pod) || condition?.status !== "True" || condition.reason === "TerminationByKubelet") return undefined;
  const staleMs = (parseTime(condition.lastTransitionTime ?? "") ?? 0) + STALE_DISRUPTION_MS;
  return isFarAhead(staleMs, nowMs) ? 0 : Math.max(0, staleMs - nowMs);
}
