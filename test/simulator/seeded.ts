/** Randomness and time that a seed decides: the same seed, the same run. */
import { type Clock, everyBy, sleepBy } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import { mulberry32 } from "../mulberry32.ts";

export interface SeededRandom extends Random {
  /** A whole number in [low, high]. */
  integer(low: number, high: number): number;
  chance(probability: number): boolean;
  pick<T>(from: readonly T[]): T;
  /** One of its own: what is drawn from it changes nothing here. */
  fork(): SeededRandom;
}

export function seededRandom(seed: number): SeededRandom {
  const next = mulberry32(seed);
  const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, () => Math.floor(next() * 256));
  const integer = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next, bytes, integer,
    chance: (probability) => next() < probability,
    pick: (from) => from[integer(0, from.length - 1)]!,
    fork: () => seededRandom(Math.floor(next() * 4_294_967_296)),
    uuid() {
      const hex = Buffer.from(bytes(16)).toString("hex");
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  };
}

interface Timer { readonly atMs: number; readonly order: number; readonly work: () => void; cancelled: boolean }

const EPOCH_MS = Date.parse("2026-01-01T00:00:00Z");

/** Time passes only in `run`, from one timer to the next, and only once nobody has anything left to do. */
export class SimulatedClock implements Clock {
  #elapsedMs = 0;
  #timers: Timer[] = []; // a heap: the next one first
  #order = 0;

  nowMs(): number { return EPOCH_MS + this.#elapsedMs; }
  uptimeMs(): number { return this.#elapsedMs; }

  after(ms: number, work: () => void): { cancel(): void } {
    const timer: Timer = { atMs: this.#elapsedMs + Math.max(0, ms), order: this.#order++, work, cancelled: false };
    this.#push(timer);
    return { cancel: () => { timer.cancelled = true; } };
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> { return sleepBy(this, ms, signal); }
  every(periodMs: number, signal: AbortSignal): AsyncIterable<void> { return everyBy(this, periodMs, signal); }

  /** Lets `ms` pass. */
  async run(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms;
    for (;;) {
      await settled();
      const next = this.#timers[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#elapsedMs = Math.max(this.#elapsedMs, next.atMs);
      for (let due = this.#timers[0]; due !== undefined && due.atMs <= this.#elapsedMs; due = this.#timers[0]) {
        this.#pop();
        if (!due.cancelled) due.work();
      }
    }
    this.#elapsedMs = untilMs;
  }

  #push(timer: Timer): void {
    const heap = this.#timers;
    let at = heap.push(timer) - 1;
    for (let above = (at - 1) >> 1; at > 0 && before(timer, heap[above]!); above = (at - 1) >> 1) {
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = timer;
  }

  #pop(): void {
    const heap = this.#timers;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && before(heap[below + 1]!, heap[below]!)) below++;
      if (!before(heap[below]!, last)) break;
      heap[at] = heap[below]!;
      at = below;
    }
    heap[at] = last;
  }
}

function before(a: Timer, b: Timer): boolean { return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order); }

/** Resolves when everything that waits for nothing but promises has been done. */
function settled(): Promise<void> { return new Promise((resolve) => { setImmediate(resolve); }); }
