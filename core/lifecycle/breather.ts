/**
 * Long work on the main thread lets others have their turn.
 *
 *   const breathe = breather(clock);
 *   for (const part of parts) { work(part); await breathe(); }
 *
 * A slice begins with the first work after others had their turn. Several that work at the same time share one, and so do those that wait for the next.
 */
import type { Clock } from "./clock.ts";

/** How long nobody else's turn comes. */
const SLICE_MS = 10;
/** A longer slice is such a part of the turn of the event loop before. */
const SLICE_OF_TURN = 0.2;
/** What goes on has done its piece of work after so many: those of the functions that await one another above it. */
const MICROTASKS_MAX = 4;

/** Nothing to wait for until the work has taken its slice of time; then the event loop goes round once. */
export type Breathe = () => Promise<void> | undefined;

/** Work that yields where others may have their turn: between parts of microseconds, as the rows of a Table are. */
export type Pausing<T> = Generator<undefined, T>;

/** A look at the clock costs as much as a small part. */
const PARTS_BETWEEN_LOOKS = 16;

export async function inSlices<T>(work: Pausing<T>, breathe: Breathe): Promise<T> {
  for (let parts = 1; ; parts++) {
    const { done, value } = work.next();
    if (done) return value;
    const turn = parts % PARTS_BETWEEN_LOOKS === 0 ? breathe() : undefined;
    if (turn) await turn;
  }
}

/** As inSlices, of parts that take as long as a slice may last, each of them. */
export async function inPieces<T>(work: Pausing<T>, breathe: Breathe): Promise<T> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    const turn = breathe();
    if (turn) await turn;
  }
}

/** What becomes of each of them, with a pause after it. */
export function* each<S, T>(all: Iterable<S>, of: (one: S) => T): Pausing<T[]> {
  const made: T[] = [];
  for (const one of all) {
    made.push(of(one));
    yield;
  }
  return made;
}

/** For who cannot wait. */
export function atOnce<T>(work: Pausing<T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

export function breather(clock: Pick<Clock, "uptimeMs">): Breathe { return breathers(clock)(); }

interface Slices {
  /**
   * How long a slice may be where a turn of all takes long: on a slow machine, or one that others keep busy, requests are served all that have come, and who got the same few milliseconds
   * between them would fall behind for as long as more come. For one alone in the process: five would each take the others' slices for such a turn, and take longer ones for it.
   */
  readonly sliceMsMax?: number;
}

/**
 * For pieces of work that come and go, perhaps a thousand at a time: each gets its own from what this returns, and all share one slice. What waits goes on one after another
 * as long as a slice lasts, and every other of them is one that has not waited before, so that short work does not wait for all that is long, nor small pieces for a turn each.
 */
export function breathers(clock: Pick<Clock, "uptimeMs">, { sliceMsMax = SLICE_MS }: Slices = {}): () => Breathe {
  const fresh: (() => void)[] = [], waiting: (() => void)[] = [];
  let isFreshNext = true;
  let isWoken = false; // somebody will let those who wait go on
  let sinceMs = 0, sliceMs = SLICE_MS;
  let isBegun = false; // nobody else has had a turn since `sinceMs`
  function begin(turnMs: number): void {
    sinceMs = clock.uptimeMs();
    sliceMs = Math.min(sliceMsMax, Math.max(SLICE_MS, turnMs * SLICE_OF_TURN));
    isBegun = true;
    setImmediate(() => { isBegun = false; });
  }
  function isOver(): boolean { return clock.uptimeMs() - sinceMs >= sliceMs; }
  function wake(): void {
    isWoken = true;
    setImmediate(() => {
      begin(clock.uptimeMs() - sinceMs);
      next();
    });
  }
  function next(): void {
    const one = isFreshNext ? fresh.shift() ?? waiting.shift() : waiting.shift() ?? fresh.shift();
    isFreshNext = !isFreshNext;
    one?.();
    after(MICROTASKS_MAX);
  }
  /** Once what has gone on has worked: it may have taken all of the slice. */
  function after(microtasks: number): void {
    if (microtasks > 0) queueMicrotask(() => after(microtasks - 1));
    else if (fresh.length + waiting.length === 0) isWoken = false;
    else if (isOver()) wake();
    else next();
  }
  return () => {
    let hasWaited = false;
    if (!isBegun) begin(0);
    return () => {
      if (!isBegun) begin(0);
      if (!isOver()) return undefined;
      const queue = hasWaited ? waiting : fresh;
      hasWaited = true;
      return new Promise((resolve) => {
        queue.push(resolve);
        if (!isWoken) wake();
      });
    };
  };
}
