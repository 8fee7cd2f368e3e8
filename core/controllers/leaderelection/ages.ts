/**
 * How long ago others did what they tell the time of. One that was there before us is as old as its time says; from then on it counts when we saw that they told another: what their clocks say, or
 * ours once it was set, makes nobody look dead who is not.
 */
import type { ObjectKey } from "../../api/meta/object-meta.ts";
import type { Clock } from "../../lifecycle/clock.ts";

export class Ages {
  readonly #clock: Pick<Clock, "nowMs" | "uptimeMs">;
  /** `seenMs`: by uptime. */
  readonly #known = new Map<ObjectKey, { readonly time: string | undefined; readonly ageMs: number; readonly seenMs: number }>();

  constructor(clock: Pick<Clock, "nowMs" | "uptimeMs">) { this.#clock = clock; }

  note(key: ObjectKey, time: string | undefined): void {
    const known = this.#known.get(key);
    if (known && known.time === time) return;
    const ageMs = known || time === undefined ? 0 : Math.max(0, this.#clock.nowMs() - Date.parse(time));
    this.#known.set(key, { time, ageMs, seenMs: this.#clock.uptimeMs() });
  }

  forget(key: ObjectKey): void { this.#known.delete(key); }

  /** Milliseconds; Infinity: never. */
  ofMs(key: ObjectKey): number {
    const known = this.#known.get(key);
    return known?.time === undefined ? Infinity : known.ageMs + this.#clock.uptimeMs() - known.seenMs;
  }
}
