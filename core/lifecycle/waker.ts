/** A sleep that another part of the same component can end. One sleeps at a time. */
import type { Clock } from "./clock.ts";

export class Waker {
  readonly #clock: Clock;
  #wake: () => void = () => {};

  constructor(clock: Clock) { this.#clock = clock; }

  /** Whoever sleeps wakes. Not remembered if nobody does. */
  wake(): void { this.#wake(); }

  /** Resolves to true when woken, or at once if `isDue`; to false after `ms`, or when `signal` aborts. Never rejects. */
  async sleep(ms: number, { isDue, signal }: { readonly isDue: boolean; readonly signal: AbortSignal }): Promise<boolean> {
    const woken = Promise.withResolvers<boolean>();
    this.#wake = () => woken.resolve(true);
    const stop = (): void => woken.resolve(false);
    const alarm = this.#clock.after(ms, stop);
    signal.addEventListener("abort", stop, { once: true });
    if (isDue) this.#wake();
    if (signal.aborted) stop();
    const isWoken = await woken.promise;
    alarm.cancel();
    signal.removeEventListener("abort", stop);
    return isWoken;
  }
}
