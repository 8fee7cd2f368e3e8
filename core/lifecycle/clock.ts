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

/** A timer of more than 24 days would fire at once: what takes longer is waited for in pieces. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  uptimeMs: () => performance.now(),
  sleep: (ms, signal) => sleepBy(systemClock, ms, signal),
  every: (periodMs, signal) => everyBy(systemClock, periodMs, signal),

  after(ms, work) {
    let leftMs = ms;
    let timer = next();
    function next(): ReturnType<typeof setTimeout> {
      const pieceMs = Math.min(leftMs, TIMER_MS_MAX);
      leftMs -= pieceMs;
      return setTimeout(leftMs > 0 ? () => { timer = next(); } : work, pieceMs);
    }
    return { cancel: () => clearTimeout(timer) };
  },
};

/** `after` for an answer that another owes. Only time in which this process runs counts: after it was stopped, or starved of a processor, what has come meanwhile is heard first. */
export function afterAwake(clock: Pick<Clock, "after">, ms: number, work: () => void): { cancel(): void } {
  let leftParts = AWAKE_PARTS;
  let timer = next();
  function next(): { cancel(): void } {
    leftParts--;
    return clock.after(ms / AWAKE_PARTS, leftParts > 0 ? () => { timer = next(); } : work);
  }
  return { cancel: () => timer.cancel() };
}

/** A pause, however long, is taken for no more than one of these. */
const AWAKE_PARTS = 10;

/** `sleep` of a clock that has the rest. */
export function sleepBy(clock: Pick<Clock, "after">, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      timer.cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = clock.after(ms, done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** `every` of a clock that has the rest. */
export async function* everyBy(clock: Pick<Clock, "uptimeMs" | "sleep">, periodMs: number, signal: AbortSignal): AsyncIterable<void> {
  while (!signal.aborted) {
    const startMs = clock.uptimeMs();
    yield;
    await clock.sleep(Math.max(0, periodMs - (clock.uptimeMs() - startMs)), signal);
  }
}

/** An RFC 3339 timestamp in seconds, the form of metav1.Time. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** An RFC 3339 timestamp in microseconds, the form of metav1.MicroTime. */
export function microTimestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 23)}000Z`;
}
