/**
 * The questions controllers ask of a pod.
 *
 * Source: kubernetes v1.36 pkg/api/v1/pod/util.go, pkg/controller/controller_utils.go
 */
import type { Pod, PodCondition } from "../api/gen/core.v1.ts";
import { namespaceOf, objectKey, type ObjectKey } from "../api/meta/object-meta.ts";
import { parseTime } from "../api/meta/time.ts";
import { isFarAhead } from "./wrong-clock.ts";

export function podCondition(pod: Readonly<Pod>, type: string): Readonly<PodCondition> | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}

export function isReady(pod: Readonly<Pod>): boolean { return podCondition(pod, "Ready")?.status === "True"; }

/** Milliseconds since 1970 of when the pod became ready; undefined if it is not. */
export function readySinceMs(pod: Readonly<Pod>): number | undefined {
  const ready = podCondition(pod, "Ready");
  return ready?.status === "True" ? parseTime(ready.lastTransitionTime ?? "") ?? 0 : undefined;
}

/** Ready for at least `minReadySeconds`, as far as clocks tell. */
export function isAvailable(pod: Readonly<Pod>, minReadySeconds: number, nowMs: number): boolean {
  const sinceMs = readySinceMs(pod);
  return sinceMs !== undefined && (minReadySeconds === 0 || (sinceMs > 0 && (sinceMs + minReadySeconds * 1000 <= nowMs || isFarAhead(sinceMs, nowMs))));
}

/** How long until the next of these becomes available by time alone; undefined: none will. Of one that is ready since nobody knows when, time says nothing. */
export function nextAvailableInMs(pods: readonly Readonly<Pod>[], minReadySeconds: number, nowMs: number): number | undefined {
  let next: number | undefined;
  if (minReadySeconds === 0) return next;
  for (const pod of pods) {
    const sinceMs = readySinceMs(pod);
    if (sinceMs === undefined || sinceMs === 0 || isAvailable(pod, minReadySeconds, nowMs)) continue;
    const inMs = sinceMs + minReadySeconds * 1000 - nowMs;
    if (next === undefined || inMs < next) next = inMs;
  }
  return next;
}

/** It has run and will not run again. */
export function isTerminal(pod: Readonly<Pod>): boolean { return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed"; }

/** It counts as a replica. */
export function isActive(pod: Readonly<Pod>): boolean { return !isTerminal(pod) && pod.metadata.deletionTimestamp == null; }

/** It is on its way out, and may still be running. */
export function isTerminating(pod: Readonly<Pod>): boolean { return !isTerminal(pod) && pod.metadata.deletionTimestamp != null; }

/** The most restarts of any of its containers: sidecars count, ordinary init containers do not. */
export function restartsMax(pod: Readonly<Pod>): { readonly containers: number; readonly sidecars: number } {
  const sidecars = new Set((pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always").map(({ name }) => name));
  const most = (counts: readonly number[]): number => Math.max(0, ...counts);
  return {
    containers: most((pod.status?.containerStatuses ?? []).map(({ restartCount }) => restartCount ?? 0)),
    sidecars: most((pod.status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)).map(({ restartCount }) => restartCount ?? 0)),
  };
}

/** Keys of the claims it uses, those made for its ephemeral volumes among them. */
export function claimsOf(pod: Readonly<Pod>): ObjectKey[] {
  return (pod.spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    const claim = persistentVolumeClaim?.claimName ?? (ephemeral ? `${pod.metadata.name}-${name}` : undefined);
    return claim === undefined ? [] : [objectKey(namespaceOf(pod), claim)];
  });
}
