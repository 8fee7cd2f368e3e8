/**
 * Audit events that nobody waits for: kept for a while, and handed on in lists when there are many, or when the oldest has waited long enough. What does not fit in is lost, and counted.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/audit/buffered/buffered.go
 */
import type { Clock } from "../../lifecycle/clock.ts";
import { until } from "../../lifecycle/until.ts";
import type { Counter } from "../../observe/metrics.ts";
import type { AuditSink } from "./auditor.ts";
import type { AuditEvent } from "./event.ts";

export interface Batching {
  readonly batchSizeMax: number;
  readonly batchWaitMs: number;
  readonly bufferSize: number;
  /** Lists a second, and how many may be sent at once before that counts. 0: as many as there are. */
  readonly throttleQps: number;
  readonly throttleBurst: number;
}

/** "lost": it was given up, and counted. "interrupted": it had not been taken yet when the server was to end. */
export type Outcome = "taken" | "lost" | "interrupted";

/** Where lists of events go. */
export interface Delivery {
  readonly name: string;
  /** Must not throw. After `signal` nothing is tried again; what is under way goes on until `last`. */
  deliver(items: readonly AuditEvent[], signals: { readonly signal: AbortSignal; readonly last: AbortSignal }): Promise<Outcome>;
  /** Counts what was interrupted and is not tried again. */
  lost(items: readonly AuditEvent[], error: unknown): void;
  /** Once nothing more comes. */
  close?(): Promise<void>;
}

/** For all that is left when the server ends: a receiver that says nothing is not waited for, as the store is closed only after this. */
const LAST_MS = 10_000;

/** `errors`: by plugin, "buffered" for what does not fit in. */
export function bufferedSink(delivery: Delivery, { batchSizeMax, batchWaitMs, bufferSize, clock, errors, ...limits }: Batching & { readonly clock: Clock; readonly errors: Counter }): AuditSink {
  let buffer: AuditEvent[] = [];
  let wake: () => void = () => undefined;
  const throttle = tokens({ ...limits, clock });

  async function filled(signal: AbortSignal): Promise<void> {
    if (buffer.length === 0) await until(signal, (done) => { wake = done; });
    if (signal.aborted || buffer.length >= batchSizeMax) return;
    let alarm: { cancel(): void } | undefined;
    await until(signal, (done) => {
      alarm = clock.after(batchWaitMs, done);
      wake = () => { if (buffer.length >= batchSizeMax) done(); };
    });
    alarm?.cancel();
  }

  return {
    write(event) {
      if (buffer.length >= bufferSize) {
        errors.inc({ plugin: "buffered" });
        return undefined;
      }
      buffer.push(event);
      wake();
      return undefined;
    },
    part: {
      name: delivery.name,
      async run(signal, ready) {
        ready();
        const { last, end } = lastMoments(signal, clock);
        while (!signal.aborted) {
          await filled(signal);
          await throttle(signal);
          const items = buffer.slice(0, batchSizeMax);
          buffer = buffer.slice(batchSizeMax);
          if (items.length > 0 && (await delivery.deliver(items, { signal, last })) === "interrupted") buffer.unshift(...items);
        }
        while (buffer.length > 0 && !last.aborted) {
          const items = buffer.splice(0, batchSizeMax);
          if ((await delivery.deliver(items, { signal, last })) === "interrupted") delivery.lost(items, new Error("it was not taken, and the server ends"));
        }
        if (buffer.length > 0) delivery.lost(buffer, new Error("the server has ended"));
        end();
        await delivery.close?.();
      },
    },
  };
}

/** `last` aborts a while after `signal`. */
export function lastMoments(signal: AbortSignal, clock: Clock): { readonly last: AbortSignal; end(): void } {
  const last = new AbortController();
  let late: { cancel(): void } | undefined;
  signal.addEventListener("abort", () => { late = clock.after(LAST_MS, () => last.abort()); }, { once: true });
  return { last: last.signal, end: () => late?.cancel() };
}

/** A bucket of `burst` tokens that fills at `qps`. */
function tokens({ throttleQps, throttleBurst, clock }: Pick<Batching, "throttleQps" | "throttleBurst"> & { readonly clock: Clock }): (signal: AbortSignal) => Promise<void> {
  let left = throttleBurst;
  let atMs = clock.uptimeMs();
  return async (signal) => {
    if (throttleQps <= 0) return;
    const nowMs = clock.uptimeMs();
    left = Math.min(throttleBurst, left + ((nowMs - atMs) / 1000) * throttleQps);
    atMs = nowMs;
    if (left < 1) {
      await clock.sleep(((1 - left) / throttleQps) * 1000, signal);
      left = 1;
      atMs = clock.uptimeMs();
    }
    left--;
  };
}
