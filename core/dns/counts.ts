/**
 * What the DNS server counts, by CoreDNS's names and labels, which its dashboards and alerts read.
 *
 * Source: coredns v1.12 plugin/metrics/vars/vars.go, plugin/cache/metrics.go, plugin/pkg/proxy/metrics.go
 */
import type { Metrics } from "../observe/metrics.ts";
import { RCODE, TYPE } from "./wire.ts";

const SECONDS = [0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192];
const BYTES = [0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16_000, 32_000, 48_000, 64_000];
const TYPE_NAMES: Readonly<Record<number, string>> = Object.fromEntries(Object.entries(TYPE).map(([name, number]) => [number, name]));
const RCODE_NAMES: Readonly<Record<number, string>> = Object.fromEntries(Object.entries(RCODE).map(([name, number]) => [number, name]));
/** As CoreDNS calls itself in each cluster, whatever port it is really asked at. */
const SERVER = "dns://:53";

export interface Counted {
  readonly proto: "udp" | "tcp";
  /** With its final dot. */
  readonly zone: string;
  readonly type: number;
  readonly requestBytes: number;
  readonly dnssecOk: boolean;
  readonly rcode: number;
  readonly responseBytes: number;
  readonly seconds: number;
}

export interface DnsCounts {
  answered(counted: Counted): void;
  /** A question for others: `kept` "success" or "denial" if it was answered without asking. */
  forwarded(kept: "success" | "denial" | undefined): void;
  asked(server: string, seconds: number, rcode: string): void;
}

/** `entries`: of the cache. */
export function dnsCounts(metrics: Metrics, entries: () => { readonly success: number; readonly denial: number }): DnsCounts {
  const requests = metrics.counter("coredns_dns_requests_total", "Counter of DNS requests made per zone, protocol and family.");
  const doRequests = metrics.counter("coredns_dns_do_requests_total", "Counter of DNS requests with DO bit set per zone.");
  const responses = metrics.counter("coredns_dns_responses_total", "Counter of response status codes.");
  const durations = metrics.histogram("coredns_dns_request_duration_seconds", "Histogram of the time (in seconds) each request took per zone.", SECONDS);
  const requestSizes = metrics.histogram("coredns_dns_request_size_bytes", "Size of the EDNS0 UDP buffer in bytes (64K for TCP) per zone and protocol.", BYTES);
  const responseSizes = metrics.histogram("coredns_dns_response_size_bytes", "Size of the returned response in bytes.", BYTES);
  const forwards = metrics.histogram("coredns_proxy_request_duration_seconds", "Histogram of the time each request took.", SECONDS);
  const cacheRequests = metrics.counter("coredns_cache_requests_total", "The count of cache requests.");
  const hits = metrics.counter("coredns_cache_hits_total", "The count of cache hits.");
  const misses = metrics.counter("coredns_cache_misses_total", "The count of cache misses. Deprecated, derive misses from cache hits/requests counters.");
  const server = { server: SERVER }, cached = { ...server, zones: "." };
  metrics.gaugeFrom("coredns_cache_entries", "The number of elements in the cache.", () => Object.entries(entries()).map(([type, count]) => [{ ...cached, type }, count] as const));

  function seriesOf(proto: string, zone: string) {
    const at = { ...server, zone };
    return {
      at, durations: durations.with(at), requestSizes: requestSizes.with({ ...at, proto }), responseSizes: responseSizes.with({ ...at, proto }),
      doRequests: doRequests.with(at), requests: new Map<number, { inc(): void }>(), responses: new Map<number, { inc(): void }>(),
    };
  }
  const series = { udp: new Map<string, ReturnType<typeof seriesOf>>(), tcp: new Map<string, ReturnType<typeof seriesOf>>() };

  return {
    answered({ proto, zone, type, requestBytes, dnssecOk, rcode, responseBytes, seconds }) {
      let of = series[proto].get(zone);
      if (!of) series[proto].set(zone, (of = seriesOf(proto, zone)));
      const kind = TYPE_NAMES[type] === undefined ? 0 : type, code = RCODE_NAMES[rcode] === undefined ? -1 : rcode; // anyone can make up types; not so series
      if (!of.requests.has(kind)) of.requests.set(kind, requests.with({ ...of.at, proto, type: TYPE_NAMES[kind] ?? "other" }));
      if (!of.responses.has(code)) of.responses.set(code, responses.with({ ...of.at, rcode: RCODE_NAMES[code] ?? "other" }));
      of.requests.get(kind)!.inc();
      of.responses.get(code)!.inc();
      if (dnssecOk) of.doRequests.inc();
      of.durations.observe(seconds);
      of.requestSizes.observe(requestBytes);
      of.responseSizes.observe(responseBytes);
    },
    forwarded(kept) {
      cacheRequests.inc(cached);
      if (kept) hits.inc({ ...cached, type: kept });
      else misses.inc(cached);
    },
    asked: (to, seconds, rcode) => forwards.observe(seconds, { proxy_name: "forward", to, rcode }),
  };
}
