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

/** Work that yields where others may have their turn. */
export type Pausing<T> = Generator<undefined, T>;

export async function inSlices<T>(work: Pausing<T>, breathe: Breathe): Promise<T> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    const turn = breathe();
    if (turn) await turn;
  }
}

/** For who cannot wait. */
export function atOnce<T>(work: Pausing<T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

export function breather(clock: Pick<Clock, "uptimeMs">): Breathe { return breathers(clock)(); }

/**
 * For pieces of work that come and go, perhaps a hundred at a time: each gets its own from what this returns, and all share one slice. Every other turn is that of one
 * that has not waited before, so that short work does not wait for all that is long.
 */
export function breathers(clock: Pick<Clock, "uptimeMs">): () => Breathe {
  const fresh: (() => void)[] = [], waiting: (() => void)[] = [];
  let isFreshNext = true;
  let sinceMs = 0;
  let isBegun = false; // nobody else has had a turn since `sinceMs`
  function begin(): void {
    sinceMs = clock.uptimeMs();
    isBegun = true;
    setImmediate(() => { isBegun = false; });
  }
  function goOn(): void {
    begin();
    const next = (isFreshNext ? fresh.shift() ?? waiting.shift() : waiting.shift() ?? fresh.shift());
    isFreshNext = !isFreshNext;
    next?.();
    if (fresh.length + waiting.length > 0) setImmediate(goOn); // what the first does now may take all of the slice
  }
  return () => {
    let hasWaited = false;
    if (!isBegun) begin();
    return () => {
      if (!isBegun) begin();
      if (clock.uptimeMs() - sinceMs < SLICE_MS) return undefined;
      const queue = hasWaited ? waiting : fresh;
      hasWaited = true;
      return new Promise((resolve) => {
        queue.push(resolve);
        if (fresh.length + waiting.length === 1) setImmediate(goOn);
      });
    };
  };
}
