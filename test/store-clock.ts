/** A store's clock that stands still until a test moves it. */
import type { StoreClock } from "../storage/engine.ts";

export class TestStoreClock implements StoreClock {
  #nowMs = 0;
  readonly #timers = new Set<{ atMs: number; work: () => void }>();
  uptimeMs(): number { return this.#nowMs; }
  after(ms: number, work: () => void): { cancel(): void } {
    const timer = { atMs: this.#nowMs + ms, work };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Begins what is due by then. */
  pass(ms: number): void {
    this.#nowMs += ms;
    for (const timer of [...this.#timers]) {
      if (timer.atMs > this.#nowMs) continue;
      this.#timers.delete(timer);
      timer.work();
    }
  }

  /** And lets it happen. */
  async advance(ms: number): Promise<void> {
    this.pass(ms);
    await settle();
  }
}

/** Lets everything that needs no time happen. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 100; i++) await Promise.resolve();
}
