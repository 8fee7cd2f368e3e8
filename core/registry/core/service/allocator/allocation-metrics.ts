/** What services have been given, and what is left. Source: kubernetes v1.36 pkg/registry/core/service/{ipallocator,portallocator}/metrics.go */
import type { Clock } from "../../../../lifecycle/clock.ts";
import { DEFAULT_BUCKETS, type Metrics } from "../../../../observe/metrics.ts";

/** `static`: the service has named it. */
export type Scope = "static" | "dynamic";

export interface Usage {
  readonly ranges: readonly { readonly cidr: string; readonly allocated: number; readonly available: number }[];
  readonly ports: { readonly allocated: number; readonly available: number };
}

export interface AllocationMeter {
  nowMs(): number;
  address(cidr: string, scope: Scope, how: { readonly failed: boolean; readonly sinceMs: number }): void;
  port(scope: Scope, failed: boolean): void;
  /** Where it is told from, when asked. */
  follow(usage: () => Usage): void;
}

export function allocationMeter(metrics: Metrics, clock: Clock): AllocationMeter {
  let usage: () => Usage = () => ({ ranges: [], ports: { allocated: 0, available: 0 } });
  const addresses = metrics.counter("kube_apiserver_clusterip_allocator_allocation_total", "[ALPHA] Number of Cluster IPs allocations");
  const addressErrors = metrics.counter("kube_apiserver_clusterip_allocator_allocation_errors_total", "[ALPHA] Number of errors trying to allocate Cluster IPs");
  const took = metrics.histogram("kube_apiserver_clusterip_allocator_allocation_duration_seconds", "[ALPHA] Duration in seconds to allocate a Cluster IP by ServiceCIDR", DEFAULT_BUCKETS);
  const ports = metrics.counter("kube_apiserver_nodeport_allocator_allocation_total", "[ALPHA] Number of NodePort allocations");
  const portErrors = metrics.counter("kube_apiserver_nodeport_allocator_allocation_errors_total", "[ALPHA] Number of errors trying to allocate NodePort");
  for (const [name, help, value] of [
    ["allocated_ips", "Gauge measuring the number of allocated IPs for Services", "allocated"], ["available_ips", "Gauge measuring the number of available IPs for Services", "available"],
  ] as const) metrics.gaugeFrom(`kube_apiserver_clusterip_allocator_${name}`, `[ALPHA] ${help}`, () => usage().ranges.map((range) => [{ cidr: range.cidr }, range[value]]));
  for (const [name, help, value] of [
    ["allocated_ports", "Gauge measuring the number of allocated NodePorts for Services", "allocated"], ["available_ports", "Gauge measuring the number of available NodePorts for Services", "available"],
  ] as const) metrics.gaugeFrom(`kube_apiserver_nodeport_allocator_${name}`, `[ALPHA] ${help}`, () => [[{}, usage().ports[value]]]);
  return {
    nowMs: () => clock.uptimeMs(),
    address(cidr, scope, { failed, sinceMs }) {
      if (failed) return addressErrors.inc({ cidr, scope });
      addresses.inc({ cidr, scope });
      took.observe((clock.uptimeMs() - sinceMs) / 1000, { cidr });
    },
    port: (scope, failed) => (failed ? portErrors : ports).inc({ scope }),
    follow: (source) => void (usage = source),
  };
}
