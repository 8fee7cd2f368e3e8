/**
 * The node's conditions MemoryPressure, DiskPressure and PIDPressure. Each outlives its cause for a while, so that the scheduler does not send pods back at once;
 * its begin and its end are logged, and once that there is nobody to evict for it.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/helpers.go (nodeConditionsObservedSince)
 */
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Pressure } from "../node/pressure.ts";
import type { Shortage } from "./plan.ts";

interface Deps {
  readonly transitionMs: number;
  readonly clock: Pick<Clock, "uptimeMs">;
  readonly log: Log;
  /** They changed. */
  readonly onPressure: () => void;
}

export interface Pressures {
  readonly current: () => ReadonlySet<Pressure>;
  /** What the node is short of now, whether it counts yet or not. */
  note(short: readonly Shortage[]): void;
  /** Nobody can be evicted for it. */
  helpless(shortage: Shortage): void;
}

export function pressures({ transitionMs, clock, log, onPressure }: Deps): Pressures {
  const lastSeenMs = new Map<Pressure, number>();
  const told = new Set<Pressure>(); // of which it was told that there is nobody to evict; subset of `current`
  let current: ReadonlySet<Pressure> = new Set();

  return {
    current: () => current,
    note(short) {
      const nowMs = clock.uptimeMs();
      for (const { pressure } of short) lastSeenMs.set(pressure, nowMs);
      const next = new Set([...lastSeenMs].filter(([, seenMs]) => nowMs - seenMs < transitionMs).map(([pressure]) => pressure));
      const begun = short.filter(({ pressure }, at) => !current.has(pressure) && short.findIndex((other) => other.pressure === pressure) === at);
      const over = [...current].filter((pressure) => !next.has(pressure));
      current = next;
      for (const { pressure, signal, available, quantity } of begun) log.warn("the node is short of a resource", { pressure, signal, available, threshold: quantity });
      for (const pressure of over) {
        told.delete(pressure);
        log.info("the node has enough of a resource again", { pressure });
      }
      if (begun.length > 0 || over.length > 0) onPressure();
    },
    helpless({ pressure, starved }) {
      if (!told.has(pressure)) log.error("the node is short of a resource and there is no pod to evict", { resource: starved });
      told.add(pressure);
    },
  };
}
