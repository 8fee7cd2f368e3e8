/**
 * Watchers. None of them has a buffer: a watcher is a cursor into the history (mvcc/history.ts), which all share and which is bounded.
 *
 * So a slow watcher costs nothing, and slows down nobody; but once the history no longer reaches back to its cursor, it has missed events
 * and is told "overrun". A watch that starts in the past is the same thing with an older cursor.
 *
 * Every commit reaches every watcher that waits: with its events, or with an empty batch that moves `revision`, so that whoever keeps a copy
 * knows how fresh it is. A watcher that is busy gets it all at once with its next batch.
 */
import { StoreError, type Revision, type StoreEvent, type WatchOptions } from "../store.ts";

export interface WatchBatch {
  readonly events: readonly StoreEvent[];
  readonly revision: Revision;
}

/** What watchers read. All of it changes only when `wake` is called. */
export interface WatchSource {
  readonly revision: Revision;
  /** The oldest revision that can be watched from. */
  readonly floor: Revision;
  readonly closed: boolean;
  /** Throws unless one can watch from `revision`. */
  check(revision: Revision): void;
  after(revision: Revision, prefix: string, max: number): WatchBatch;
}

/** Events a batch carries at most, so that a watcher far behind lets others run in between. */
const BATCH_MAX = 1000;

export class Watchers {
  readonly #source: WatchSource;
  readonly #waiting = new Set<() => void>();

  constructor(source: WatchSource) {
    this.#source = source;
  }

  /** Something was committed, or the store closes. */
  wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resume of waiting) resume();
  }

  /** Resolves at the next `wake`, or when `signal` aborts. */
  async next(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const resume = (): void => resolve();
    signal.addEventListener("abort", resume, { once: true });
    this.#waiting.add(resume);
    await promise;
    this.#waiting.delete(resume);
    signal.removeEventListener("abort", resume);
  }

  async *watch({ prefix, after }: WatchOptions, signal: AbortSignal): AsyncGenerator<WatchBatch, void, void> {
    const source = this.#source;
    let sent: Revision | undefined; // every event up to here has been handed out; nothing was, before the first batch
    let resume = (): void => {};
    const onAbort = (): void => resume();
    signal.addEventListener("abort", onAbort);
    try {
      while (!signal.aborted) {
        if (source.closed) throw new StoreError("closed");
        if (sent === undefined) source.check(after);
        else if (sent < source.floor) throw new StoreError("overrun", { sent, oldest: source.floor });
        if (sent === undefined || sent < source.revision) {
          const batch = source.after(sent ?? after, prefix, BATCH_MAX);
          sent = batch.revision;
          yield batch;
        } else {
          await new Promise<void>((resolve) => this.#waiting.add((resume = resolve)));
          this.#waiting.delete(resume);
        }
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}
