/** How long to leave something alone that fails again and again: the time doubles with each failure and is forgotten when all is quiet. */
import type { Clock } from "../lifecycle/clock.ts";

interface Entry { delayMs: number; readonly lastMs: number }

export class FailureBackoff {
  readonly #clock: Clock;
  readonly #minMs: number;
  readonly #maxMs: number;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock, { minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }) {
    this.#clock = clock;
    this.#minMs = minMs;
    this.#maxMs = maxMs;
  }

  /** How long `key` is still to be left alone; 0: not at all. */
  leftMs(key: string): number {
    const entry = this.#entries.get(key);
    return entry === undefined ? 0 : Math.max(0, entry.lastMs + entry.delayMs - this.#clock.uptimeMs());
  }

  failed(key: string): void {
    const nowMs = this.#clock.uptimeMs();
    for (const [other, { lastMs }] of this.#entries) if (nowMs - lastMs > 2 * this.#maxMs) this.#entries.delete(other);
    const before = this.#entries.get(key);
    this.#entries.set(key, { delayMs: before === undefined ? this.#minMs : Math.min(this.#maxMs, before.delayMs * 2), lastMs: nowMs });
  }
}
