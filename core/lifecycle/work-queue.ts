/**
 * Keys waiting to be worked on: each at most once in the queue, and never handed out twice at the same time.
 * A key added while it is being worked on is handed out again once that work is done.
 *
 * Source: client-go util/workqueue (semantics only)
 */
import { type BackoffOptions, backoffMs } from "./backoff.ts";
import type { Clock } from "./clock.ts";

export interface WorkQueue<K> {
  add(key: K): void;
  addAfter(key: K, delayMs: number): void;
  /** Adds `key` again after a delay that doubles with every failure since the last `forget`. */
  addRateLimited(key: K): void;
  forget(key: K): void;
  /** The next key, or undefined once `signal` has aborted. Call `done` when the work on it has ended. */
  take(signal: AbortSignal): Promise<K | undefined>;
  done(key: K): void;
  readonly size: number;
}

/** Upstream's per-item limits: 5 ms doubling to 1000 s. */
const RETRY: BackoffOptions = { minMs: 5, maxMs: 1_000_000 };

export function workQueue<K>(clock: Clock, retry: BackoffOptions = RETRY): WorkQueue<K> {
  const waiting = new Set<K>(); // insertion order is queue order
  const working = new Set<K>();
  const again = new Set<K>(); // added while being worked on
  const failures = new Map<K, number>();
  const takers: (() => void)[] = [];
  const delayed = new Map<K, { readonly dueMs: number; readonly timer: { cancel(): void } }>(); // the earliest add of each key

  function add(key: K): void {
    delayed.get(key)?.timer.cancel();
    delayed.delete(key);
    if (working.has(key)) {
      again.add(key);
      return;
    }
    waiting.add(key);
    takers.shift()?.();
  }

  function addAfter(key: K, delayMs: number): void {
    if (delayMs <= 0) return add(key);
    const dueMs = clock.uptimeMs() + delayMs;
    const before = delayed.get(key);
    if (before && before.dueMs <= dueMs) return;
    before?.timer.cancel();
    delayed.set(key, { dueMs, timer: clock.after(delayMs, () => add(key)) });
  }

  return {
    add,
    addAfter,
    addRateLimited(key) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      addAfter(key, backoffMs(count, retry));
    },
    forget: (key) => void failures.delete(key),
    async take(signal) {
      while (!signal.aborted) {
        const [key] = waiting;
        if (key !== undefined) {
          waiting.delete(key);
          working.add(key);
          return key;
        }
        await new Promise<void>((resolve) => {
          const wake = (): void => {
            signal.removeEventListener("abort", wake);
            resolve();
          };
          takers.push(wake);
          signal.addEventListener("abort", wake, { once: true });
        });
      }
      return undefined;
    },
    done(key) {
      working.delete(key);
      if (again.delete(key)) add(key);
    },
    get size() {
      return waiting.size;
    },
  };
}
