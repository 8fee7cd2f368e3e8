/** Upstream's kubeproxy_* metrics. Source: kubernetes v1.36 pkg/proxy/metrics/metrics.go */
import { type Counter, doubling, type Metrics } from "../../core/observe/metrics.ts";
import type { Family } from "../../core/net/cidr.ts";
import type { PortPlan } from "./desired.ts";
import type { SyncOutcome } from "./nftables/nftables.ts";

const SYNC_BUCKETS = doubling(0.001, 15);
const PROGRAMMING_BUCKETS = [0.25, 0.5, ...range(1, 1, 59), ...range(60, 5, 12), ...range(120, 30, 7)];

/** A change of endpoints, and when what made it happened. */
export interface Trigger { readonly family: Family; readonly ms: number }

export interface ProxyMetrics {
  readonly serviceChanges: Counter;
  readonly endpointChanges: Counter;
  readonly failures: Counter;
  /** What was emptied could not be deleted. */
  readonly cleanupFailures: Counter;
  readonly healthz: Counter;
  readonly livez: Counter;
  queued(nowMs: number): void;
  /** So many Services and EndpointSlices have changed that rules do not show yet. */
  pending(changes: { readonly services: number; readonly slices: number }): void;
  synced(family: Family, outcome: SyncOutcome, seconds: number): void;
  /** Of a family's flows to lost endpoints, how many kinds were forgotten, and how long that took. */
  forgot(family: Family, flows: number, seconds: number): void;
  finished(state: { readonly nowMs: number; readonly triggered: readonly Trigger[]; readonly ports: readonly PortPlan[] }): void;
}

export function proxyMetrics(metrics: Metrics): ProxyMetrics {
  const all = metrics.histogram("kubeproxy_sync_proxy_rules_duration_seconds", "[ALPHA] SyncProxyRules latency in seconds", SYNC_BUCKETS);
  const full = metrics.histogram("kubeproxy_sync_full_proxy_rules_duration_seconds", "[ALPHA] SyncProxyRules latency in seconds for full resyncs", SYNC_BUCKETS);
  const partial = metrics.histogram("kubeproxy_sync_partial_proxy_rules_duration_seconds", "[ALPHA] SyncProxyRules latency in seconds for partial resyncs", SYNC_BUCKETS);
  const programming = metrics.histogram("kubeproxy_network_programming_duration_seconds", "[ALPHA] In Cluster Network Programming Latency in seconds", PROGRAMMING_BUCKETS);
  const reconciled = metrics.histogram("kubeproxy_conntrack_reconciler_sync_duration_seconds", "[ALPHA] ReconcileConntrackFlowsLatency latency in seconds", SYNC_BUCKETS);
  const forgotten = metrics.counter("kubeproxy_conntrack_reconciler_deleted_entries_total", "[ALPHA] Cumulative conntrack flows deleted by conntrack reconciler");
  const last = metrics.gauge("kubeproxy_sync_proxy_rules_last_timestamp_seconds", "[ALPHA] The last time proxy rules were successfully synced");
  const lastQueued = metrics.gauge("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", "[ALPHA] The last time a sync of proxy rules was queued");
  const noLocal = metrics.gauge("kubeproxy_sync_proxy_rules_no_local_endpoints_total", "[ALPHA] Number of services with a Local traffic policy and no endpoints");
  const servicesPending = metrics.gauge("kubeproxy_sync_proxy_rules_service_changes_pending", "[ALPHA] Pending proxy rules Service changes");
  const slicesPending = metrics.gauge("kubeproxy_sync_proxy_rules_endpoint_changes_pending", "[ALPHA] Pending proxy rules Endpoint changes");
  const pending = ({ services, slices }: Parameters<ProxyMetrics["pending"]>[0]): void => {
    servicesPending.set(services);
    slicesPending.set(slices);
  };
  pending({ services: 0, slices: 0 });
  return {
    pending,
    serviceChanges: metrics.counter("kubeproxy_sync_proxy_rules_service_changes_total", "[ALPHA] Cumulative proxy rules Service changes"),
    endpointChanges: metrics.counter("kubeproxy_sync_proxy_rules_endpoint_changes_total", "[ALPHA] Cumulative proxy rules Endpoint changes"),
    failures: metrics.counter("kubeproxy_sync_proxy_rules_nftables_sync_failures_total", "[ALPHA] Cumulative proxy nftables sync failures"),
    cleanupFailures: metrics.counter("kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total", "[ALPHA] Cumulative proxy nftables cleanup failures"),
    healthz: metrics.counter("kubeproxy_proxy_healthz_total", "[ALPHA] Cumulative proxy healthz HTTP status"),
    livez: metrics.counter("kubeproxy_proxy_livez_total", "[ALPHA] Cumulative proxy livez HTTP status"),
    queued(nowMs) { for (const ip_family of ["IPv4", "IPv6"]) lastQueued.set(nowMs / 1000, { ip_family }); },
    synced(family, outcome, seconds) {
      const labels = { ip_family: `IPv${family}` };
      all.observe(seconds, labels);
      (outcome === "full" ? full : partial).observe(seconds, labels);
    },
    forgot(family, flows, seconds) {
      reconciled.observe(seconds, { ip_family: `IPv${family}` });
      forgotten.inc({ ip_family: `IPv${family}` }, flows);
    },
    finished({ nowMs, triggered, ports }) {
      for (const family of [4, 6] as const) {
        const ip_family = `IPv${family}`;
        last.set(nowMs / 1000, { ip_family });
        const without = ports.filter((port) => port.family === family && port.anyBackend && port.localBackends.length === 0);
        noLocal.set(without.filter(({ internalLocal }) => internalLocal).length, { traffic_policy: "internal", ip_family });
        noLocal.set(without.filter(({ externalLocal }) => externalLocal).length, { traffic_policy: "external", ip_family });
      }
      for (const { family, ms } of triggered) programming.observe((nowMs - ms) / 1000, { ip_family: `IPv${family}` });
    },
  };
}

function range(start: number, step: number, count: number): number[] { return Array.from({ length: count }, (_, i) => start + step * i); }
