/**
 * The order in which pods are given up, the cheapest to lose first:
 *
 *   on no node · pending, then unknown, then running · not ready · lower controller.kubernetes.io/pod-deletion-cost · on a node with more of its kind ·
 *   ready for a shorter time · more restarts · younger
 *
 * Of a ReplicaSet times are compared by their order of magnitude, so that among pods of about the same age it is chance (their uid) that decides. Of a Job they are compared as
 * they are, and neither cost nor company counts.
 *
 * Source: kubernetes v1.36 pkg/controller/controller_utils.go ActivePodsWithRanks, ActivePods
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import { annotationsOf } from "../../api/meta/object-meta.ts";
import { parseTime } from "../../api/meta/time.ts";
import { isActive, isReady, readySinceMs, restartsMax } from "../pod-state.ts";

const COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost";
const PHASE_ORDER: ReadonlyMap<string, number> = new Map([["Pending", 0], ["Unknown", 1], ["Running", 2]]);

export function deletionOrder(pods: readonly Readonly<Pod>[], related: readonly Readonly<Pod>[], nowMs: number): Readonly<Pod>[] {
  const onNode = new Map<string, number>();
  for (const pod of related) if (isActive(pod)) onNode.set(pod.spec.nodeName ?? "", (onNode.get(pod.spec.nodeName ?? "") ?? 0) + 1);
  const crowd = (pod: Readonly<Pod>): number => onNode.get(pod.spec.nodeName ?? "") ?? 0;

  const later: Later = (aMs, bMs, a, b) => magnitude(nowMs - aMs) - magnitude(nowMs - bMs) || (a.metadata.uid < b.metadata.uid ? -1 : 1);
  return pods.toSorted((a, b) => byState(a, b) || costOf(a) - costOf(b) || crowd(b) - crowd(a) || byReadyTime(a, b, later) || byRestarts(a, b) || byAge(a, b, later));
}

export function jobDeletionOrder(pods: readonly Readonly<Pod>[]): Readonly<Pod>[] {
  const later: Later = (aMs, bMs) => bMs - aMs;
  return pods.toSorted((a, b) => byState(a, b) || byReadyTime(a, b, later) || byRestarts(a, b) || byAge(a, b, later));
}

/** Which of two different times, neither of them 0, is the later: below 0, the first. */
type Later = (aMs: number, bMs: number, a: Readonly<Pod>, b: Readonly<Pod>) => number;

function byState(a: Readonly<Pod>, b: Readonly<Pod>): number {
  const byPlace = Number(Boolean(a.spec.nodeName)) - Number(Boolean(b.spec.nodeName));
  return byPlace || phaseOf(a) - phaseOf(b) || Number(isReady(a)) - Number(isReady(b));
}

function phaseOf(pod: Readonly<Pod>): number { return PHASE_ORDER.get(pod.status?.phase ?? "") ?? 0; }

/** Only what the API would accept counts: an int32 without a plus sign or leading zeros. */
function costOf(pod: Readonly<Pod>): number {
  const text = annotationsOf(pod)[COST_ANNOTATION] ?? "";
  if (!/^(0|-?[1-9]\d{0,9})$/.test(text)) return 0;
  const cost = Number(text);
  return cost > 2 ** 31 - 1 || cost < -(2 ** 31) ? 0 : cost;
}

function byReadyTime(a: Readonly<Pod>, b: Readonly<Pod>, later: Later): number {
  const [aMs, bMs] = [readySinceMs(a), readySinceMs(b)];
  return aMs === undefined || bMs === undefined ? 0 : byTime(aMs, bMs, a, b, later);
}

function byAge(a: Readonly<Pod>, b: Readonly<Pod>, later: Later): number {
  return byTime(parseTime(a.metadata.creationTimestamp) ?? 0, parseTime(b.metadata.creationTimestamp) ?? 0, a, b, later);
}

/** The later of two times comes first. Equal times decide nothing. */
function byTime(aMs: number, bMs: number, a: Readonly<Pod>, b: Readonly<Pod>, later: Later): number {
  if (aMs === bMs) return 0;
  return aMs === 0 || bMs === 0 ? (aMs === 0 ? -1 : 1) : later(aMs, bMs, a, b);
}

function magnitude(ms: number): number { return ms > 0 ? Math.floor(Math.log2(ms * 1e6)) : -1; } // of nanoseconds, as upstream

function byRestarts(a: Readonly<Pod>, b: Readonly<Pod>): number {
  const [ra, rb] = [restartsMax(a), restartsMax(b)];
  return rb.containers - ra.containers || rb.sidecars - ra.sidecars;
}
