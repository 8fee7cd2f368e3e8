/** What is told of mirrored Endpoints. Source: kubernetes v1.36 pkg/controller/endpointslicemirroring/metrics */
import type { Endpoint, EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { ObjectKey } from "../../api/meta/object-meta.ts";
import { doubling, type Metrics } from "../../observe/metrics.ts";
import { type Group, identity, portsKey, sameEndpoint, type SlicePlan } from "../endpointslice/plan.ts";

export interface MirrorMeter {
  skipped(addresses: number): void;
  /** Endpoints are brought from what `families` have to what they are to have. */
  synced(key: ObjectKey, families: readonly Family[]): void;
  gone(key: ObjectKey): void;
  changed(plan: SlicePlan): void;
  ended(seconds: number): void;
}

/** The endpoints of one address type: in the slices there are, and as they should be. */
export interface Family { readonly existing: readonly Readonly<EndpointSlice>[]; readonly groups: readonly Group[] }

interface Share { readonly endpoints: number; readonly slices: number }

const COUNTS = doubling(2, 15);

export function mirrorMeter(metrics: Metrics): MirrorMeter {
  const name = (of: string): string => `endpoint_slice_mirroring_controller_${of}`;
  const shares = new Map<ObjectKey, Share>();
  const sum = (of: string, help: string, read: (share: Share) => number): void =>
    metrics.gaugeFrom(name(of), `[ALPHA] ${help}`, () => [[{}, [...shares.values()].reduce((total, share) => total + read(share), 0)]]);
  sum("endpoints_desired", "Number of endpoints desired", ({ endpoints }) => endpoints);
  sum("num_endpoint_slices", "Number of EndpointSlices", ({ slices }) => slices);
  sum("desired_endpoint_slices", "Number of EndpointSlices that would exist with perfect endpoint allocation", ({ slices }) => slices); // one slice holds all of a subset
  const perSync = (of: string) => metrics.histogram(name(`endpoints_${of}_per_sync`), `[ALPHA] Number of endpoints ${of} on each Endpoints sync`, COUNTS);
  const [added, updated, removed] = [perSync("added"), perSync("updated"), perSync("removed")];
  const took = metrics.histogram(name("endpoints_sync_duration"), "[ALPHA] Duration of syncEndpoints() in seconds", doubling(0.001, 15));
  const skips = metrics.histogram(name("addresses_skipped_per_sync"), "[ALPHA] Number of addresses skipped on each Endpoints sync due to being invalid or exceeding MaxEndpointsPerSubset", COUNTS);
  const changes = metrics.counter(name("changes"), "[ALPHA] Number of EndpointSlice changes");
  return {
    skipped: (addresses) => skips.observe(addresses),
    synced(key, families) {
      const totals = families.map(difference);
      added.observe(totals.reduce((total, one) => total + one.added, 0));
      updated.observe(totals.reduce((total, one) => total + one.updated, 0));
      removed.observe(totals.reduce((total, one) => total + one.removed, 0));
      const groups = families.flatMap((family) => family.groups);
      shares.set(key, { endpoints: groups.reduce((total, { endpoints }) => total + endpoints.length, 0), slices: groups.length });
    },
    gone: (key) => void shares.delete(key),
    changed({ create, update, remove }) { for (const [operation, { length }] of [["create", create], ["update", update], ["delete", remove]] as const) if (length > 0) changes.inc({ operation }, length); },
    ended: (seconds) => took.observe(seconds),
  };
}

function difference({ existing, groups }: Family): { readonly added: number; readonly updated: number; readonly removed: number } {
  const before = new Map(existing.flatMap(({ ports, endpoints }) => (endpoints ?? []).map((endpoint) => [keyFor(ports ?? [], endpoint), endpoint] as const)));
  const after = new Map(groups.flatMap(({ ports, endpoints }) => endpoints.map((endpoint) => [keyFor(ports, endpoint), endpoint] as const)));
  const kept = [...after].flatMap(([key, endpoint]) => { const old = before.get(key); return old === undefined ? [] : [sameEndpoint(old, endpoint)]; });
  return { added: after.size - kept.length, updated: kept.filter((same) => !same).length, removed: before.size - kept.length };
}

function keyFor(ports: Group["ports"], endpoint: Endpoint): string { return `${portsKey(ports)} ${identity(endpoint)}`; }
