/** A number that changes now and then, weighted by how long it stayed: its mean, deviation and peak over a period. */
import type { Observations } from "../../observe/metrics.ts";

export interface Period { readonly average: number; readonly deviation: number; readonly peak: number; readonly elapsedMs: number }

const NANOSECONDS = 1e6;

export class TimeWeighted {
  #value = 0;
  #sinceMs: number;
  #elapsed = 0;
  #sum = 0;
  #squares = 0;
  #peak = 0;
  /** With a histogram of the shares of `denominator`, in nanoseconds spent at each. */
  readonly histogram: Observations | undefined;
  denominator = 1;

  constructor(nowMs: number, histogram?: Observations) {
    this.#sinceMs = nowMs;
    this.histogram = histogram;
  }

  add(by: number, nowMs: number): void {
    this.#flush(nowMs);
    this.#value += by;
    if (this.#value > this.#peak) this.#peak = this.#value;
  }

  /** The histogram, until now. */
  observed(nowMs: number): Observations {
    this.#flush(nowMs);
    return this.histogram!;
  }

  /** What was since the last call. */
  period(nowMs: number): Period {
    this.#flush(nowMs);
    const average = this.#elapsed > 0 ? this.#sum / this.#elapsed : this.#value;
    const deviation = this.#elapsed > 0 ? Math.sqrt(Math.max(0, this.#squares / this.#elapsed - average * average)) : 0;
    const found = { average, deviation, peak: this.#peak, elapsedMs: this.#elapsed };
    this.#elapsed = this.#sum = this.#squares = 0;
    this.#peak = this.#value;
    return found;
  }

  #flush(nowMs: number): void {
    const passed = nowMs - this.#sinceMs;
    if (passed <= 0) return;
    this.#sinceMs = nowMs;
    this.#elapsed += passed;
    this.#sum += this.#value * passed;
    this.#squares += this.#value * this.#value * passed;
    this.histogram?.observe(this.denominator > 0 ? this.#value / this.denominator : 0, Math.round(passed * NANOSECONDS));
  }
}
