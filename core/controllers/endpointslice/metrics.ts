/** What is told of Services' slices. Source: kubernetes v1.36 staging/src/k8s.io/endpointslice/metrics */
import type { Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { ObjectKey } from "../../api/meta/object-meta.ts";
import { DEFAULT_BUCKETS, doubling, type Metrics } from "../../observe/metrics.ts";
import type { SlicePlan } from "./plan.ts";
import { usesTopologyMode } from "./topology-hints.ts";

export interface SliceMetrics {
  /** A Service's slices were brought from `before` to what `plans` make of them. */
  synced(key: ObjectKey, service: Readonly<Service>, before: readonly Readonly<EndpointSlice>[], plans: readonly SlicePlan[]): void;
  gone(key: ObjectKey): void;
  /** A Service has been looked at. */
  ended(result: "success" | "error"): void;
}

interface Share { readonly endpoints: number; readonly slices: number; readonly slicesWanted: number; readonly distribution: string | undefined }
type Slice = Pick<EndpointSlice, "addressType" | "endpoints" | "ports">;

const COUNTS = doubling(2, 15);

export function sliceMetrics(metrics: Metrics, { perSliceMax }: { readonly perSliceMax: number }): SliceMetrics {
  const shares = new Map<ObjectKey, Share>();
  const sum = (name: string, help: string, of: (share: Share) => number): void =>
    metrics.gaugeFrom(`endpoint_slice_controller_${name}`, `[BETA] ${help}`, () => [[{}, [...shares.values()].reduce((total, share) => total + of(share), 0)]]);
  sum("endpoints_desired", "Number of endpoints desired", ({ endpoints }) => endpoints);
  sum("num_endpoint_slices", "Number of EndpointSlices", ({ slices }) => slices);
  sum("desired_endpoint_slices", "Number of EndpointSlices that would exist with perfect endpoint allocation", ({ slicesWanted }) => slicesWanted);
  metrics.gaugeFrom("endpoint_slice_controller_services_count_by_traffic_distribution", "[BETA] Number of Services using some specific trafficDistribution", () => {
    const counts = Map.groupBy([...shares.values()].filter(({ distribution }) => distribution !== undefined), ({ distribution }) => distribution!);
    return [...counts].map(([traffic_distribution, all]) => [{ traffic_distribution }, all.length] as const);
  });
  const added = metrics.histogram("endpoint_slice_controller_endpoints_added_per_sync", "[BETA] Number of endpoints added on each Service sync", COUNTS);
  const removed = metrics.histogram("endpoint_slice_controller_endpoints_removed_per_sync", "[BETA] Number of endpoints removed on each Service sync", COUNTS);
  const changes = metrics.counter("endpoint_slice_controller_changes", "[ALPHA] Number of EndpointSlice changes");
  const changed = metrics.histogram("endpoint_slice_controller_endpointslices_changed_per_sync", "[ALPHA] Number of EndpointSlices changed on each Service sync", DEFAULT_BUCKETS);
  const syncs = metrics.counter("endpoint_slice_controller_syncs", "[ALPHA] Number of EndpointSlice syncs");
  return {
    synced(key, service, before, plans) {
      const { spec } = service;
      const made = { create: count(plans, "create"), update: count(plans, "update"), delete: count(plans, "remove") };
      for (const [operation, times] of Object.entries(made)) if (times > 0) changes.inc({ operation }, times);
      const isAuto = usesTopologyMode(service);
      changed.observe(made.create + made.update + made.delete, { topology: isAuto ? "Auto" : "Disabled", traffic_distribution: isAuto ? "" : spec.trafficDistribution ?? "" });
      const touched = new Set(plans.flatMap(({ update, remove }) => [...update, ...remove]).map(({ metadata }) => metadata.name));
      const after: Slice[] = [...before.filter(({ metadata }) => !touched.has(metadata.name)), ...plans.flatMap(({ create, update }) => [...create, ...update])];
      const [old, now] = [addressesOf(before.filter(({ metadata }) => touched.has(metadata.name))), addressesOf(plans.flatMap(({ create, update }) => [...create, ...update]))];
      added.observe(now.difference(old).size);
      removed.observe(old.difference(now).size);
      const endpoints = [...Map.groupBy(after, portsOf).values()].map((slices) => slices.reduce((total, slice) => total + (slice.endpoints ?? []).length, 0));
      const slicesWanted = endpoints.reduce((total, count) => total + Math.ceil(count / perSliceMax), 0);
      shares.set(key, { endpoints: endpoints.reduce((total, count) => total + count, 0), slices: after.length, slicesWanted: Math.max(1, slicesWanted), distribution: isAuto ? undefined : spec.trafficDistribution });
    },
    gone: (key) => void shares.delete(key),
    ended: (result) => syncs.inc({ result }),
  };
}

function count(plans: readonly SlicePlan[], what: keyof SlicePlan): number { return plans.reduce((total, plan) => total + plan[what].length, 0); }

function portsOf({ addressType, ports }: Slice): string { return JSON.stringify([addressType, ports ?? []]); }

function addressesOf(slices: readonly Slice[]): Set<string> {
  return new Set(slices.flatMap((slice) => {
    const ports = portsOf(slice);
    return (slice.endpoints ?? []).map(({ addresses }) => `${ports} ${addresses?.[0]}`);
  }));
}
