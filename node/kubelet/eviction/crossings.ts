/**
 * Since when which threshold is crossed, and which of them count: a soft one does once its grace is over, and one that counted is over only
 * with its minimum reclaimed.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/helpers.go (thresholdsFirstObservedAt, thresholdsMetGracePeriod)
 */
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Shortage, Threshold } from "./plan.ts";

export interface Crossings {
  /** Those of the shortages that are there now that count. */
  due(short: readonly Shortage[]): readonly Shortage[];
  /** Thresholds that counted when it was looked last. */
  met(): ReadonlySet<Threshold>;
  /** For how long one that is crossed now has been. */
  ageMs(threshold: Threshold): number;
}

export function crossings(clock: Pick<Clock, "uptimeMs">): Crossings {
  const crossedMs = new Map<Threshold, number>(); // since when
  let met: ReadonlySet<Threshold> = new Set(); // subset of what is crossed

  function ageMs(threshold: Threshold): number {
    const sinceMs = crossedMs.get(threshold);
    return sinceMs === undefined ? 0 : clock.uptimeMs() - sinceMs;
  }

  return {
    ageMs,
    met: () => met,
    due(short) {
      const now = new Set(short.map(({ threshold }) => threshold));
      for (const threshold of crossedMs.keys()) if (!now.has(threshold)) crossedMs.delete(threshold);
      for (const threshold of now) if (!crossedMs.has(threshold)) crossedMs.set(threshold, clock.uptimeMs());
      const counting = short.filter(({ threshold }) => ageMs(threshold) >= (threshold.graceMs ?? 0));
      met = new Set(counting.map(({ threshold }) => threshold));
      return counting;
    },
  };
}
