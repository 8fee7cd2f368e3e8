/**
 * Audit events sent on: in lists (batch), or each while who asked waits (blocking, blocking-strict). What cannot be delivered is tried a few times.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/audit/webhook/webhook.go, apiserver/pkg/server/options/audit.go
 */
import { aborted } from "../../lifecycle/aborted.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Log } from "../../observe/log.ts";
import type { Counter } from "../../observe/metrics.ts";
import type { AuditSink } from "./auditor.ts";
import { type Batching, bufferedSink, type Delivery, lastMoments } from "./buffered-sink.ts";
import type { AuditEvent } from "./event.ts";

export interface WebhookDeps {
  /** Delivers one list. Throws when it was not taken. */
  readonly post: (list: object, signal: AbortSignal) => Promise<void>;
  readonly initialBackoffMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** By plugin: "webhook", and "buffered" for what does not fit in. */
  readonly errors: Counter;
}

export type WebhookSinkOptions = WebhookDeps & Batching;

/** Source: webhook.WithExponentialBackoff, Steps 5, Factor 1.5 */
const ATTEMPTS = 5;
const FACTOR = 1.5;

export function webhookSink(options: WebhookSinkOptions): AuditSink { return bufferedSink(webhookDelivery(options), options); }

/** Each event is sent before its request goes on. `isStrict`: a request goes on only if its first event was taken. */
export function waitingWebhookSink(deps: WebhookDeps, { isStrict }: { readonly isStrict: boolean }): AuditSink {
  const delivery = webhookDelivery(deps);
  const underWay = new Set<Promise<boolean>>();
  const ended = new AbortController(), gone = new AbortController();
  return {
    comesFirst: true,
    write(event) {
      const sent = send(event).finally(() => underWay.delete(sent));
      underWay.add(sent);
      return sent;
    },
    part: {
      name: delivery.name,
      async run(signal, ready) {
        ready();
        const { last, end } = lastMoments(signal, deps.clock);
        last.addEventListener("abort", () => gone.abort(), { once: true });
        await aborted(signal);
        ended.abort();
        await Promise.all(underWay);
        end();
      },
    },
  };

  async function send(event: AuditEvent): Promise<boolean> {
    const outcome = await delivery.deliver([event], { signal: ended.signal, last: gone.signal });
    if (outcome === "interrupted") delivery.lost([event], new Error("it was not taken, and the server ends"));
    return !isStrict || outcome === "taken";
  }
}

function webhookDelivery({ post, initialBackoffMs, clock, log, errors }: WebhookDeps): Delivery {
  function lost(items: readonly AuditEvent[], error: unknown): void {
    errors.inc({ plugin: "webhook" }, items.length);
    log.error("audit events could not be delivered", { events: items.length, error });
  }

  return {
    name: "audit webhook", lost,
    async deliver(items, { signal, last }) {
      for (let attempt = 1; ; attempt++) {
        try {
          await post({ kind: "EventList", apiVersion: "audit.k8s.io/v1", metadata: {}, items }, last);
          return "taken";
        } catch (error) {
          if (attempt === ATTEMPTS && !signal.aborted) {
            lost(items, error);
            return "lost";
          }
          await clock.sleep(initialBackoffMs * FACTOR ** (attempt - 1), signal);
          if (signal.aborted) return "interrupted";
        }
      }
    },
  };
}
