/**
 * The order in which pods are given up, the cheapest to lose first:
 *
 *   on no node · pending, then unknown, then running · not ready · lower controller.kubernetes.io/pod-deletion-cost · on a node with more of its kind ·
 *   ready for a shorter time · more restarts · younger
 *
 * Times are compared by their order of magnitude, so that among pods of about the same age it is chance (their uid) that decides.
 *
 * Source: kubernetes v1.36 pkg/controller/controller_utils.go ActivePodsWithRanks
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import { annotationsOf } from "../../api/meta/object-meta.ts";
import { parseTime } from "../../api/meta/time.ts";
import { isActive, isReady, readySinceMs, restartsMax } from "../pod-state.ts";

const COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost";
const PHASE_ORDER: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 };

export function deletionOrder(pods: readonly Readonly<Pod>[], related: readonly Readonly<Pod>[], nowMs: number): Readonly<Pod>[] {
  const onNode = new Map<string, number>();
  for (const pod of related) if (isActive(pod)) onNode.set(pod.spec.nodeName ?? "", (onNode.get(pod.spec.nodeName ?? "") ?? 0) + 1);
  const crowd = (pod: Readonly<Pod>): number => onNode.get(pod.spec.nodeName ?? "") ?? 0;

  return pods.toSorted((a, b) => {
    const byPlace = Number(Boolean(a.spec.nodeName)) - Number(Boolean(b.spec.nodeName));
    const byPhase = phaseOf(a) - phaseOf(b);
    const byReadiness = Number(isReady(a)) - Number(isReady(b));
    return byPlace || byPhase || byReadiness || costOf(a) - costOf(b) || crowd(b) - crowd(a) || byReadyTime(a, b, nowMs) || byRestarts(a, b) || byAge(a, b, nowMs);
  });
}

function phaseOf(pod: Readonly<Pod>): number { return PHASE_ORDER[pod.status?.phase ?? ""] ?? 0; }

/** Only what the API would accept counts: an int32 without a plus sign or leading zeros. */
function costOf(pod: Readonly<Pod>): number {
  const text = annotationsOf(pod)[COST_ANNOTATION] ?? "";
  if (!/^(0|-?[1-9]\d{0,9})$/.test(text)) return 0;
  const cost = Number(text);
  return cost > 2 ** 31 - 1 || cost < -(2 ** 31) ? 0 : cost;
}

function byReadyTime(a: Readonly<Pod>, b: Readonly<Pod>, nowMs: number): number {
  const [aMs, bMs] = [readySinceMs(a), readySinceMs(b)];
  return aMs === undefined || bMs === undefined ? 0 : byTime(aMs, bMs, a, b, nowMs);
}

function byAge(a: Readonly<Pod>, b: Readonly<Pod>, nowMs: number): number {
  return byTime(parseTime(a.metadata.creationTimestamp) ?? 0, parseTime(b.metadata.creationTimestamp) ?? 0, a, b, nowMs);
}

/** The later of two times comes first. Equal times decide nothing; times of the same magnitude leave it to the uids. */
function byTime(aMs: number, bMs: number, a: Readonly<Pod>, b: Readonly<Pod>, nowMs: number): number {
  if (aMs === bMs) return 0;
  if (aMs === 0 || bMs === 0) return aMs === 0 ? -1 : 1;
  return magnitude(nowMs - aMs) - magnitude(nowMs - bMs) || (a.metadata.uid < b.metadata.uid ? -1 : 1);
}

function magnitude(ms: number): number { return ms > 0 ? Math.floor(Math.log2(ms * 1e6)) : -1; } // of nanoseconds, as upstream

function byRestarts(a: Readonly<Pod>, b: Readonly<Pod>): number {
  const [ra, rb] = [restartsMax(a), restartsMax(b)];
  return rb.containers - ra.containers || rb.sidecars - ra.sidecars;
}
