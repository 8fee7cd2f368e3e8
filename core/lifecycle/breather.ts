/**
 * Long work on the main thread lets others have their turn.
 *
 *   const breathe = breather(clock);
 *   for (const part of parts) { work(part); await breathe(); }
 *
 * Several that work on it at the same time share one: they wait together, and their slice is one.
 */
import type { Clock } from "./clock.ts";

/** How long nobody else's turn comes. */
const SLICE_MS = 10;

/** Nothing to wait for until the work has taken its slice of time; then the event loop goes round once. */
export type Breathe = () => Promise<void> | undefined;

export function breather(clock: Pick<Clock, "uptimeMs">): Breathe {
  let sinceMs = clock.uptimeMs();
  let waiting: Promise<void> | undefined;
  return () => {
    if (waiting || clock.uptimeMs() - sinceMs < SLICE_MS) return waiting;
    return (waiting = new Promise<void>((resolve) => void setImmediate(resolve)).then(() => {
      sinceMs = clock.uptimeMs();
      waiting = undefined;
    }));
  };
}
