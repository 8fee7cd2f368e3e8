/**
 * Keys waiting to be worked on: each at most once in the queue, and never handed out twice at the same time.
 * A key added while it is being worked on is handed out again once that work is done.
 *
 * Source: client-go util/workqueue (semantics only)
 */
import { type BackoffOptions, backoffMs } from "./backoff.ts";
import type { Clock } from "./clock.ts";

/** Is told what the queue does. Source: client-go util/workqueue/metrics.go */
export interface QueueMeter {
  /** A key is to be worked on that was not already. */
  added(): void;
  /** It is handed out, after so long. */
  waited(ms: number): void;
}

export interface WorkQueue<K> {
  add(key: K): void;
  addAfter(key: K, delayMs: number): void;
  /** Adds `key` again after a delay that doubles with every failure since the last `forget`. */
  addRateLimited(key: K): void;
  forget(key: K): void;
  /** Adds now what was to be added later. */
  hasten(): void;
  /** The next key, or undefined once `signal` has aborted. Call `done` when the work on it has ended. */
  take(signal: AbortSignal): Promise<K | undefined>;
  done(key: K): void;
  readonly size: number;
}

/** Upstream's per-item limits: 5 ms doubling to 1000 s. */
const RETRY: BackoffOptions = { minMs: 5, maxMs: 1_000_000 };

export function workQueue<K>(clock: Clock, { retry = RETRY, meter }: { readonly retry?: BackoffOptions | undefined; readonly meter?: QueueMeter | undefined } = {}): WorkQueue<K> {
  const waiting = new Map<K, number>(); // since when; insertion order is queue order
  const working = new Set<K>();
  const again = new Map<K, number>(); // added while being worked on
  const failures = new Map<K, number>();
  const takers: (() => void)[] = [];
  const delayed = new Map<K, { readonly dueMs: number; readonly timer: { cancel(): void } }>(); // the earliest add of each key

  function add(key: K): void {
    delayed.get(key)?.timer.cancel();
    delayed.delete(key);
    const queue = working.has(key) ? again : waiting;
    if (!queue.has(key)) {
      queue.set(key, clock.uptimeMs());
      meter?.added();
    }
    if (queue === waiting) takers.shift()?.();
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
    hasten() { for (const key of [...delayed.keys()]) add(key); },
    async take(signal) {
      while (!signal.aborted) {
        const [next] = waiting;
        if (next !== undefined) {
          const [key, sinceMs] = next;
          waiting.delete(key);
          working.add(key);
          meter?.waited(clock.uptimeMs() - sinceMs);
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
      const sinceMs = again.get(key);
      if (sinceMs === undefined) return;
      again.delete(key);
      delayed.get(key)?.timer.cancel();
      delayed.delete(key);
      waiting.set(key, sinceMs);
      takers.shift()?.();
    },
    get size() {
      return waiting.size;
    },
  };
}
