/** What several want at once is done once. Who no longer wants it waits no longer; once nobody does, it is told to end. */
import { until } from "../../../core/lifecycle/until.ts";

interface Run<T> { readonly result: Promise<T>; readonly end: AbortController; waiting: number }

export class SharedRuns<T> {
  readonly #runs = new Map<string, Run<T>>();

  /** What `run` answers, or the one under way with that key. Throws what it throws, and the signal's reason. */
  async do(key: string, run: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const shared = this.#runs.get(key) ?? this.#begin(key, run);
    shared.waiting++;
    try {
      await until(signal, (done) => void shared.result.then(done, done));
      signal.throwIfAborted();
      return await shared.result;
    } finally {
      shared.waiting--;
      if (shared.waiting === 0) this.#forget(key, shared);
    }
  }

  #begin(key: string, run: (signal: AbortSignal) => Promise<T>): Run<T> {
    const end = new AbortController();
    const shared: Run<T> = { result: run(end.signal), end, waiting: 0 };
    this.#runs.set(key, shared);
    const over = (): void => this.#forget(key, shared);
    shared.result.then(over, over);
    return shared;
  }

  /** Who comes after its end, or after everybody has gone, begins another. */
  #forget(key: string, shared: Run<T>): void {
    if (this.#runs.get(key) === shared) this.#runs.delete(key);
    shared.end.abort();
  }
}
