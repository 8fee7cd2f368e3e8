/**
 * Long work on the main thread lets others have their turn.
 *
 *   const breathe = breather(clock);
 *   for (const part of parts) { work(part); await breathe(); }
 *
 * A slice begins with the first work after others had their turn. Several that work at the same time share one: those that wait for the next go on one after another, each with a turn of others before it.
 */
import type { Clock } from "./clock.ts";

/** How long nobody else's turn comes. */
const SLICE_MS = 10;

/** Nothing to wait for until the work has taken its slice of time; then the event loop goes round once. */
export type Breathe = () => Promise<void> | undefined;

export function breather(clock: Pick<Clock, "uptimeMs">): Breathe {
  const waiting: (() => void)[] = [];
  let sinceMs = 0;
  let isBegun = false; // nobody else has had a turn since `sinceMs`
  begin();
  function begin(): void {
    sinceMs = clock.uptimeMs();
    isBegun = true;
    setImmediate(() => { isBegun = false; });
  }
  function goOn(): void {
    begin();
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(goOn); // what the first does now may take all of the slice
  }
  return () => {
    if (!isBegun) begin();
    return clock.uptimeMs() - sinceMs < SLICE_MS ? undefined : new Promise((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(goOn);
    });
  };
}
