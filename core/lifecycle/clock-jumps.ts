/**
 * Tells when the wall clock was set: a machine without a battery starts in 1970 or when it was switched off, and is told the time later; one that was suspended has slept through its timers.
 *
 * Timers count uptime. Whoever waits with one for a time of day looks again when he hears of it.
 */
import type { Clock } from "./clock.ts";
import type { Runnable } from "./run-all.ts";

export interface ClockJumps {
  /** Returns how it ends. */
  subscribe(jumped: () => void): () => void;
  /** Looks at the clock for as long as it runs. */
  readonly watch: Runnable;
}

const LOOK_MS = 5_000;
/** Times of day are seconds. What a clock that is being slewed gathers is told once it is as much. */
const JUMP_MS = 1_000;

export function clockJumps(clock: Pick<Clock, "nowMs" | "uptimeMs" | "every">): ClockJumps {
  const listeners = new Set<() => void>();
  return {
    subscribe(jumped) {
      listeners.add(jumped);
      return () => void listeners.delete(jumped);
    },
    watch: {
      name: "clock jumps",
      async run(signal, ready) {
        ready();
        const aheadMs = (): number => clock.nowMs() - clock.uptimeMs();
        let knownMs = aheadMs();
        for await (const _ of clock.every(LOOK_MS, signal)) {
          const nowMs = aheadMs();
          if (Math.abs(nowMs - knownMs) < JUMP_MS) continue;
          knownMs = nowMs;
          for (const jumped of listeners) jumped();
        }
      },
    },
  };
}
