/**
 * Audit events sent on, in lists: when there are many, or when the oldest has waited long enough. What cannot be delivered is tried a few times; what
 * does not fit into the buffer is lost, and counted.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/audit/{buffered/buffered,webhook/webhook}.go, apiserver/pkg/server/options/audit.go
 */
import type { Clock } from "../../lifecycle/clock.ts";
import { until } from "../../lifecycle/until.ts";
import type { Log } from "../../observe/log.ts";
import type { Counter, Metrics } from "../../observe/metrics.ts";
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
  readonly metrics: Metrics;
}

/** Source: webhook.WithExponentialBackoff, Steps 5, Factor 1.5 */
const ATTEMPTS = 5;
const FACTOR = 1.5;
/** For all that is left when the server ends: a receiver that says nothing is not waited for, as the store is closed only after this. */
const LAST_MS = 10_000;

export function webhookSink(options: WebhookSinkOptions): AuditSink {
  const { post, batchSizeMax, batchWaitMs, bufferSize, initialBackoffMs, clock, log } = options;
  const errors: Counter = options.metrics.counter("apiserver_audit_error_total", "[ALPHA] Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.");
  let buffer: AuditEvent[] = [];
  let wake: () => void = () => undefined;
  const throttle = tokens(options);

  async function deliver(items: readonly AuditEvent[], signal: AbortSignal): Promise<void> {
    const list = { kind: "EventList", apiVersion: "audit.k8s.io/v1", metadata: {}, items };
    for (let attempt = 1; ; attempt++) {
      try {
        return await post(list, signal);
      } catch (error) {
        if (signal.aborted) {
          buffer = [...items, ...buffer]; // with the last ones
          return;
        }
        if (attempt < ATTEMPTS) {
          await clock.sleep(initialBackoffMs * FACTOR ** (attempt - 1), signal);
          continue;
        }
        errors.inc({ plugin: "webhook" }, items.length);
        log.error("audit events could not be delivered", { events: items.length, error });
        return;
      }
    }
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
        errors.inc({ plugin: "webhook" });
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
        const stopped = new AbortController(); // the last lists go out after the end has begun
        while (!signal.aborted) {
          await filled(signal);
          await throttle(signal);
          const items = buffer.slice(0, batchSizeMax);
          buffer = buffer.slice(batchSizeMax);
          if (items.length > 0) await deliver(items, signal);
        }
        const late = clock.after(LAST_MS, () => stopped.abort());
        while (buffer.length > 0 && !stopped.signal.aborted) {
          const items = buffer.splice(0, batchSizeMax);
          await post({ kind: "EventList", apiVersion: "audit.k8s.io/v1", metadata: {}, items }, stopped.signal).catch((error: unknown) => log.error("audit events could not be delivered", { events: items.length, error }));
        }
        if (buffer.length > 0) log.error("audit events could not be delivered in time", { events: buffer.length });
        late.cancel();
      },
    },
  };
}

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
