/**
 * Volatile writes that are not on disk yet: which keys, and when each must go there.
 *
 * Only the newest value of a key is written, however often it changed. A heartbeat (a row that is on disk already and was overwritten) can
 * wait much longer than a row that is new or gone: what a crash takes away then is the age of a lease, not an event somebody may look for.
 */
import type { StoreClock } from "../engine.ts";

export interface WriteBehindOptions {
  /** How long a volatile row that is new, or was deleted, may be missing on disk. */
  readonly flushEveryMs?: number;
  /** How long a volatile row may lie on disk with an old value. */
  readonly heartbeatFlushEveryMs?: number;
}

/** A lease of 10 nodes renewed every 10 s makes 60 writes a minute; written behind every 10 minutes it makes one. */
const TIMES: Required<WriteBehindOptions> = { flushEveryMs: 60_000, heartbeatFlushEveryMs: 600_000 };

export class WriteBehind {
  readonly #clock: StoreClock;
  readonly #times: Required<WriteBehindOptions>;
  readonly #onDue: () => void;
  readonly #dueMs = new Map<string, number>();
  #timer: { readonly atMs: number; readonly timer: { cancel(): void } } | undefined; // runs no later than the earliest due key, while there is any

  constructor(options: { clock: StoreClock; onDue: () => void } & WriteBehindOptions) {
    this.#clock = options.clock;
    this.#onDue = options.onDue;
    this.#times = { flushEveryMs: options.flushEveryMs ?? TIMES.flushEveryMs, heartbeatFlushEveryMs: options.heartbeatFlushEveryMs ?? TIMES.heartbeatFlushEveryMs };
  }

  get size(): number {
    return this.#dueMs.size;
  }

  /** The row of `key` differs from what is on disk. */
  mark(key: string, { heartbeat }: { readonly heartbeat: boolean }): void {
    const dueMs = this.#clock.uptimeMs() + (heartbeat ? this.#times.heartbeatFlushEveryMs : this.#times.flushEveryMs);
    const before = this.#dueMs.get(key);
    if (before !== undefined && before <= dueMs) return;
    this.#dueMs.set(key, dueMs);
    this.#arm(dueMs);
  }

  /** The row of `key` is on disk as it is. */
  forget(key: string): void {
    this.#dueMs.delete(key);
  }

  /** Keys to write now: what is due, and what would be due before the next time. */
  due(): string[] {
    const untilMs = this.#clock.uptimeMs() + this.#times.flushEveryMs / 2;
    return [...this.#dueMs].flatMap(([key, dueMs]) => (dueMs <= untilMs ? [key] : []));
  }

  all(): string[] {
    return [...this.#dueMs.keys()];
  }

  /** Calls `onDue` when the next key is due; after a flush that failed, not before `flushEveryMs` have passed. */
  rearm({ failed }: { readonly failed: boolean }): void {
    let nextMs = Infinity;
    for (const dueMs of this.#dueMs.values()) nextMs = Math.min(nextMs, dueMs);
    this.stop();
    if (nextMs !== Infinity) this.#arm(Math.max(nextMs, failed ? this.#clock.uptimeMs() + this.#times.flushEveryMs : 0));
  }

  stop(): void {
    this.#timer?.timer.cancel();
    this.#timer = undefined;
  }

  #arm(atMs: number): void {
    if (this.#timer && this.#timer.atMs <= atMs) return;
    this.stop();
    const timer = this.#clock.after(Math.max(0, atMs - this.#clock.uptimeMs()), () => {
      this.#timer = undefined;
      this.#onDue();
    });
    this.#timer = { atMs, timer };
  }
}
