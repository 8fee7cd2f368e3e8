/**
 * How long ago something was whose time is known by the wall clock: at first as that tells, from then on by uptime. A clock that is set meanwhile, as when a network appears after the start of
 * the machine, makes nothing older, nor younger.
 */
import type { Clock } from "./clock.ts";

export class Elapsed {
  readonly #clock: Pick<Clock, "nowMs" | "uptimeMs">;
  /** `seenMs`: by uptime. */
  #first: { readonly time: string; readonly ageMs: number; readonly seenMs: number } | undefined;

  constructor(clock: Pick<Clock, "nowMs" | "uptimeMs">) { this.#clock = clock; }

  /** Milliseconds; 0 for a time to come, as one is that was before the clock was set back, and for none. Another time than before is another thing. */
  sinceMs(time: string): number {
    const uptimeMs = this.#clock.uptimeMs();
    if (this.#first?.time !== time) this.#first = { time, ageMs: Math.max(0, this.#clock.nowMs() - Date.parse(time)) || 0, seenMs: uptimeMs };
    return this.#first.ageMs + uptimeMs - this.#first.seenMs;
  }
}
