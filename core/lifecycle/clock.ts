/**
 * Time as a value that is passed in, so a test (or the simulator) can own it.
 *
 * Wall time (`nowMs`) is for what users read and what is compared with other machines; it may jump in either
 * direction on a device without a battery-backed clock. Everything that waits or measures uses `uptimeMs`.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. May jump. */
  nowMs(): number;
  /** Milliseconds since some fixed moment. Never goes backwards. */
  uptimeMs(): number;
  /** Resolves after `ms`, or at once (not rejecting) when `signal` aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Ticks every `periodMs`, first tick at once; ends when `signal` aborts. A slow consumer gets one tick late, not several at once. */
  every(periodMs: number, signal: AbortSignal): AsyncIterable<void>;
  /** Calls `work` once after `ms` unless cancelled first. */
  after(ms: number, work: () => void): { cancel(): void };
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  uptimeMs: () => performance.now(),

  sleep(ms, signal) {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener("abort", done, { once: true });
    });
  },

  async *every(periodMs, signal) {
    while (!signal.aborted) {
      const startMs = performance.now();
      yield;
      await systemClock.sleep(Math.max(0, periodMs - (performance.now() - startMs)), signal);
    }
  },

  after(ms, work) {
    const timer = setTimeout(work, ms);
    return { cancel: () => clearTimeout(timer) };
  },
};

/** An RFC 3339 timestamp in seconds, the form of metav1.Time. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** An RFC 3339 timestamp in microseconds, the form of metav1.MicroTime. */
export function microTimestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 23)}000Z`;
}
