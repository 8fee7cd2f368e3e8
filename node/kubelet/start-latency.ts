/**
 * How long pods take to start, from their creation to when their node reads that all their containers run; and of that, what is neither pulling images nor init containers:
 * the part that a cluster answers for.
 *
 * Only of pods that were new when they were first seen, and that needed no other room made for them.
 *
 * Source: kubernetes v1.36 pkg/kubelet/util/pod_startup_latency_tracker.go
 */
import type { Pod, Volume } from "../../core/api/gen/core.v1.ts";
import { isTerminalPhase } from "./pod-spec.ts";

export interface Start {
  readonly totalSeconds: number;
  /** Absent for a pod with volumes that last: nothing is promised of those. */
  readonly sliSeconds: number | undefined;
}

interface Pull { readonly beganMs: number; readonly endedMs: number }

const FLEETING: readonly (keyof Volume)[] = ["secret", "configMap", "downwardAPI", "emptyDir", "projected"];

export class StartLatency {
  readonly #pulls = new Map<string, Pull[]>(); // of those that are watched, by uid

  /** For the first time. */
  seen(pod: Pod): void {
    if (!pod.status?.startTime && !isTerminalPhase(pod.status?.phase) && !isUnschedulable(pod)) this.#pulls.set(pod.metadata.uid, []);
  }

  pulled(uid: string, pull: Pull): void { this.#pulls.get(uid)?.push(pull); }

  /** As it was read again. Once, if it has started. */
  observe(pod: Pod, nowMs: number): Start | undefined {
    const { uid, creationTimestamp } = pod.metadata;
    const pulls = this.#pulls.get(uid);
    if (!pulls) return undefined;
    if (isTerminalPhase(pod.status?.phase) || isUnschedulable(pod)) return void this.#pulls.delete(uid);
    const statuses = pod.status?.containerStatuses ?? [];
    if (statuses.length < pod.spec.containers.length || statuses.some(({ state }) => !state?.running?.startedAt)) return undefined;
    this.#pulls.delete(uid);
    const totalMs = nowMs - Date.parse(creationTimestamp);
    const isStateful = (pod.spec.volumes ?? []).some((volume) => FLEETING.every((kind) => !volume[kind]));
    return { totalSeconds: totalMs / 1000, sliSeconds: isStateful ? undefined : (totalMs - union(pulls) - initMs(pod)) / 1000 };
  }

  forget(uid: string): void { this.#pulls.delete(uid); }
}

function isUnschedulable({ status }: Pod): boolean { return status?.conditions?.some(({ type, status: is }) => type === "PodScheduled" && is === "False") ?? false; }

/** What overlaps counts once. */
function union(pulls: readonly Pull[]): number {
  let ms = 0, untilMs = Number.NEGATIVE_INFINITY;
  for (const { beganMs, endedMs } of pulls.toSorted((a, b) => a.beganMs - b.beganMs)) {
    ms += Math.max(0, endedMs - Math.max(beganMs, untilMs));
    untilMs = Math.max(untilMs, endedMs);
  }
  return ms;
}

function initMs({ status }: Pod): number {
  return (status?.initContainerStatuses ?? []).reduce((sum, { state }) => sum + (state?.terminated?.startedAt && state.terminated.finishedAt ? Date.parse(state.terminated.finishedAt) - Date.parse(state.terminated.startedAt) : 0), 0);
}
