/**
 * Audit events sent on, in lists: when there are many, or when the oldest has waited long enough. What cannot be delivered is tried a few times; what
 * does not fit into the buffer is lost, and counted.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/audit/{buffered/buffered,webhook/webhook}.go, apiserver/pkg/server/options/audit.go
 */
import type { Clock } from "../../lifecycle/clock.ts";
import { until } from "../../lifecycle/until.ts";
import type { Log } from "../../observe/log.ts";
import type { Counter } from "../../observe/metrics.ts";
import type { AuditSink } from "./auditor.ts";
import type { AuditEvent } from "./event.ts";

export interface WebhookSinkOptions {
  /** Delivers one list. Throws when it was not taken. */
  readonly post: (list: object, signal: AbortSignal) => Promise<void>;
  readonly batchSizeMax: number;
  readonly batchWaitMs: number;
  readonly bufferSize: number;
  readonly initialBackoffMs: number;
  /** Lists a second, and how many may be sent at once before that counts. 0: as many as there are. */
  readonly throttleQps: number;
  readonly throttleBurst: number;
  readonly clock: Clock;
  readonly log: Log;
  /** By plugin: "webhook", and "buffered" for what does not fit in. */
  readonly errors: Counter;
}

/** Source: webhook.WithExponentialBackoff, Steps 5, Factor 1.5 */
const ATTEMPTS = 5;
const FACTOR = 1.5;
/** For all that is left when the server ends: a receiver that says nothing is not waited for, as the store is closed only after this. */
const LAST_MS = 10_000;

export function webhookSink(options: WebhookSinkOptions): AuditSink {
  const { post, batchSizeMax, batchWaitMs, bufferSize, initialBackoffMs, clock, log, errors } = options;
  let buffer: AuditEvent[] = [];
  let wake: () => void = () => undefined;
  const throttle = tokens(options);

  /** `last`: until then what is under way goes on when the server ends. What would be tried again is not lost, and is tried with the last ones. */
  async function deliver(items: readonly AuditEvent[], signal: AbortSignal, last: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await post(listOf(items), last);
      } catch (error) {
        if (attempt === ATTEMPTS && !signal.aborted) return lost(items, error);
        await clock.sleep(initialBackoffMs * FACTOR ** (attempt - 1), signal);
        if (!signal.aborted) continue;
        buffer.unshift(...items);
        return;
      }
    }
  }

  function lost(items: readonly AuditEvent[], error: unknown): void {
    errors.inc({ plugin: "webhook" }, items.length);
    log.error("audit events could not be delivered", { events: items.length, error });
  }

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
      name: "audit webhook",
      async run(signal, ready) {
        ready();
        const last = new AbortController();
        let late: { cancel(): void } | undefined;
        signal.addEventListener("abort", () => { late = clock.after(LAST_MS, () => last.abort()); }, { once: true });
        while (!signal.aborted) {
          await filled(signal);
          await throttle(signal);
          const items = buffer.slice(0, batchSizeMax);
          buffer = buffer.slice(batchSizeMax);
          if (items.length > 0) await deliver(items, signal, last.signal);
        }
        while (buffer.length > 0 && !last.signal.aborted) {
          const items = buffer.splice(0, batchSizeMax);
          await post(listOf(items), last.signal).catch((error: unknown) => lost(items, error));
        }
        if (buffer.length > 0) lost(buffer, new Error("the server has ended"));
        late?.cancel();
      },
    },
  };
}

function listOf(items: readonly AuditEvent[]): object { return { kind: "EventList", apiVersion: "audit.k8s.io/v1", metadata: {}, items }; }

/** A bucket of `burst` tokens that fills at `qps`. */
function tokens({ throttleQps, throttleBurst, clock }: WebhookSinkOptions): (signal: AbortSignal) => Promise<void> {
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
