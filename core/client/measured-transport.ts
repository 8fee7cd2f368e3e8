/**
 * A transport whose requests are counted as client-go's clients count theirs: how many, with which code, how long they took, and how large they are where they are encoded.
 *
 * Without an answer the code is "<error>".
 *
 * Source: kubernetes v1.36 component-base/metrics/prometheus/restclient/metrics.go, client-go/rest/request.go
 */
import { StatusError } from "../api/meta/status-error.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { type Metrics, seriesOf } from "../observe/metrics.ts";
import type { ApiRequest, Transport } from "./transport.ts";

const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

const BYTES = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

interface Deps {
  readonly metrics: Metrics;
  readonly clock: Pick<Clock, "uptimeMs">;
  /** Whom it asks. */
  readonly host: () => string;
}

export function measuredTransport(transport: Transport, { metrics, clock, host }: Deps): Transport {
  const requests = metrics.counter("rest_client_requests_total", "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.");
  const seconds = metrics.histogram("rest_client_request_duration_seconds", "[ALPHA] Request latency in seconds. Broken down by verb, and host.", SECONDS);
  const sent = metrics.histogram("rest_client_request_size_bytes", "[ALPHA] Request size in bytes. Broken down by verb and host.", BYTES);
  const received = metrics.histogram("rest_client_response_size_bytes", "[ALPHA] Response size in bytes. Broken down by verb and host.", BYTES);
  const ended = seriesOf((host) => seriesOf((method) => seriesOf((code) => requests.with({ code, method, host }))));
  const took = seriesOf((host) => seriesOf((verb) => seconds.with({ verb, host })));
  const sizes = seriesOf((host) => seriesOf((verb) => ({ sent: sent.with({ verb, host }), received: received.with({ verb, host }) })));
  const count = ({ method }: ApiRequest, code: string): void => ended(host())(method)(code).inc();

  return {
    async call(request) {
      const startMs = clock.uptimeMs();
      try {
        let code = 200;
        const answer = await transport.call({ ...request, answered: (told) => { code = told; }, sized(bytes) {
          const of = sizes(host())(request.method);
          of.sent.observe(bytes.sent);
          of.received.observe(bytes.received);
        } });
        count(request, String(code));
        return answer;
      } catch (error) {
        count(request, codeOf(error));
        throw error;
      } finally {
        took(host())(request.method).observe((clock.uptimeMs() - startMs) / 1000);
      }
    },
    watch: (request) => ({ [Symbol.asyncIterator]: () => counting(transport.watch(request)[Symbol.asyncIterator](), (code) => count(request, code)) }),
  };
}

/** Counts how it begins, and stands in nobody's way afterwards: events are many. */
function counting<T>(events: AsyncIterator<T>, count: (code: string) => void): AsyncIterator<T> {
  let isCounted = false;
  async function first(): Promise<IteratorResult<T>> {
    isCounted = true;
    try {
      const found = await events.next();
      count("200");
      return found;
    } catch (error) {
      count(codeOf(error));
      throw error;
    }
  }
  return {
    next: () => (isCounted ? events.next() : first()),
    return: async () => (await events.return?.()) ?? { done: true, value: undefined },
  };
}

/** A StatusError with a cause was made here, for want of an answer. */
function codeOf(error: unknown): string {
  return error instanceof StatusError && error.cause === undefined ? String(error.code) : "<error>";
}
