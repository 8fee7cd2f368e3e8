import { afterAwake, type Clock } from "../lifecycle/clock.ts";

/**
 * Calls `work` once nothing has been heard of somebody for `ms`: `heard` counts what has. Who was asked for a sign of life may have the answer waiting behind all that is under way
 * on a slow link; whatever else comes from there meanwhile says the same.
 */
export function unlessHeard(clock: Pick<Clock, "after">, ms: number, heard: () => number, work: () => void): { cancel(): void } {
  let seen = heard();
  let timer = next();
  function next(): { cancel(): void } {
    return afterAwake(clock, ms, () => {
      const now = heard();
      if (now === seen) return work();
      seen = now;
      timer = next();
    });
  }
  return { cancel: () => timer.cancel() };
}
