/**
 * Long work on the main thread lets others have their turn.
 *
 *   const breathe = breather(clock);
 *   for (const part of parts) { work(part); await breathe(); }
 */
import type { Clock } from "./clock.ts";

/** How long nobody else's turn comes. */
const SLICE_MS = 10;

/** Nothing to wait for until the work has taken its slice of time; then the event loop goes round once. */
export type Breathe = () => Promise<void> | undefined;

export function breather(clock: Pick<Clock, "uptimeMs">): Breathe {
  let sinceMs = clock.uptimeMs();
  return () => {
    if (clock.uptimeMs() - sinceMs < SLICE_MS) return undefined;
    return new Promise<void>((resolve) => void setImmediate(resolve)).then(() => { sinceMs = clock.uptimeMs(); });
  };
}
