/**
 * Which zone each endpoint is for, where a Service asks for it by `service.kubernetes.io/topology-mode: Auto`: endpoints serve their own zone, and so many of them other
 * zones that each zone has its share, by the CPUs of its nodes. No I/O.
 *
 * Where that cannot be had without overloading an endpoint by more than a fifth, there are no hints at all, and the reason is told.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/endpointslice/topologycache (rules, figures and messages)
 */
import type { Node, Service } from "../../api/gen/core.v1.ts";
import type { Endpoint, EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { parseQuantity } from "../../api/meta/quantity.ts";
import { annotationsOf, labelsOf } from "../../api/meta/object-meta.ts";
import { findCondition } from "../conditions.ts";
import { type Group, identity } from "./plan.ts";

const ZONE_LABEL = "topology.kubernetes.io/zone";
const NOT_COUNTED = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/** How much more than its share an endpoint may have to take. */
const OVERLOAD_MAX = 0.2;

export const HINTS_ENABLED = "Topology Aware Hints has been enabled";
export const HINTS_DISABLED = "Topology Aware Hints has been disabled";
const NO_NODE_INFO = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
const NO_ZONE = "One or more endpoints do not have a zone specified";

/** The annotation's old name goes first. */
export function usesTopologyMode(service: Readonly<Service>): boolean {
  const annotations = annotationsOf(service);
  const mode = annotations["service.kubernetes.io/topology-aware-hints"] ?? annotations["service.kubernetes.io/topology-mode"];
  return mode === "Auto" || mode === "auto";
}

/** All of a node that counts here: when this does not change, nor do the shares. */
export function zoneDigest(node: Readonly<Node>): string { return `${isReady(node)} ${labelsOf(node)[ZONE_LABEL] ?? ""}`; }

/** What part of the cluster's CPUs each zone has; undefined: it cannot be told, or there is only one zone. */
export function zoneShares(nodes: Iterable<Readonly<Node>>): ReadonlyMap<string, number> | undefined {
  const cpus = new Map<string, number>();
  for (const node of nodes) {
    const labels = labelsOf(node);
    if (NOT_COUNTED.some((label) => labels[label] !== undefined) || !isReady(node)) continue;
    const zone = labels[ZONE_LABEL];
    const milli = Number(parseQuantity(String(node.status?.allocatable?.["cpu"] ?? "0")).milliValue());
    if (!zone || milli === 0) return undefined;
    cpus.set(zone, (cpus.get(zone) ?? 0) + milli);
  }
  if (cpus.size < 2) return undefined;
  const total = [...cpus.values()].reduce((sum, milli) => sum + milli, 0);
  return new Map([...cpus].map(([zone, milli]) => [zone, milli / total]));
}

interface Allocation { readonly minimum: number; readonly maximum: number; readonly desired: number }

/** How many endpoints each zone should have; or why that cannot be. */
function allocationsOf(shares: ReadonlyMap<string, number> | undefined, endpoints: number): ReadonlyMap<string, Allocation> | string {
  if (shares === undefined) return NO_NODE_INFO;
  const counted = `(${endpoints} endpoints, ${shares.size} zones)`;
  if (shares.size > endpoints) return `Insufficient number of endpoints ${counted}`;
  const wanted = [...shares].map(([zone, share]) => {
    const minimum = Math.ceil((share * endpoints) / (1 + OVERLOAD_MAX));
    return { zone, minimum, desired: Math.max(share * endpoints, minimum) };
  });
  const spare = endpoints - wanted.reduce((sum, { minimum }) => sum + minimum, 0);
  if (spare < 0) return `Unable to allocate minimum required endpoints to each zone without exceeding overload threshold ${counted}`;
  return new Map(wanted.map(({ zone, minimum, desired }) => [zone, { minimum, desired, maximum: minimum + spare }]));
}

export interface Hinted {
  readonly groups: readonly Group[];
  /** Why there are no hints. */
  readonly problem: string | undefined;
}

/** Gives each ready endpoint its zone. Those that have one already keep it, as long as all zones have enough. */
export function withZoneHints(groups: readonly Group[], existing: readonly Readonly<EndpointSlice>[], shares: ReadonlyMap<string, number> | undefined): Hinted {
  const ready = groups.flatMap(({ endpoints }) => endpoints).filter(({ conditions }) => conditions?.ready === true);
  const allocations = allocationsOf(shares, ready.length);
  if (typeof allocations === "string") return { groups, problem: allocations };
  const before = new Map(existing.flatMap(({ endpoints }) => (endpoints ?? []).flatMap((endpoint) => {
    const zone = endpoint.hints?.forZones?.[0]?.name;
    return zone === undefined ? [] : [[identity(endpoint), zone] as const];
  })));
  const zones = assign(ready, allocations, (endpoint) => before.get(identity(endpoint))) ?? assign(ready, allocations, () => undefined);
  if (zones === undefined) return { groups, problem: NO_ZONE };
  const hinted = (endpoint: Endpoint): Endpoint => {
    const name = zones.get(endpoint);
    return name === undefined ? endpoint : { ...endpoint, hints: { forZones: [{ name }] } };
  };
  return { groups: groups.map(({ ports, endpoints }) => ({ ports, endpoints: endpoints.map(hinted) })), problem: undefined };
}

/** Undefined: an endpoint has no zone; or what was kept leaves some zone too few. */
function assign(ready: readonly Endpoint[], allocations: ReadonlyMap<string, Allocation>, keep: (endpoint: Endpoint) => string | undefined): Map<Endpoint, string> | undefined {
  const zones = new Map<Endpoint, string>();
  const counts = new Map<string, number>();
  const give = (endpoint: Endpoint, zone: string): void => {
    zones.set(endpoint, zone);
    counts.set(zone, (counts.get(zone) ?? 0) + 1);
  };
  const free: Endpoint[] = [];
  let keepsAny = false;
  for (const endpoint of ready) {
    const zone = keep(endpoint);
    const allocation = zone === undefined ? undefined : allocations.get(zone);
    if (zone === undefined || allocation === undefined || (counts.get(zone) ?? 0) >= allocation.maximum) free.push(endpoint);
    else {
      keepsAny = true;
      give(endpoint, zone);
    }
  }
  for (const endpoint of free) {
    if (!endpoint.zone) return undefined;
    give(endpoint, endpoint.zone);
  }
  const { giving, receiving } = exchange(allocations, counts);
  for (const endpoint of free) {
    const from = endpoint.zone ?? "";
    const to = [...receiving].find(([, left]) => left > 0)?.[0];
    if (to === undefined || (giving.get(from) ?? 0) === 0) continue;
    giving.set(from, giving.get(from)! - 1);
    receiving.set(to, receiving.get(to)! - 1);
    counts.set(from, counts.get(from)! - 1);
    give(endpoint, to);
  }
  return keepsAny && [...allocations].some(([zone, { minimum }]) => (counts.get(zone) ?? 0) < minimum) ? undefined : zones;
}

/** How many endpoints each zone gives away or gets: from who has most too many to who lacks most, until what is left is not worth it. */
function exchange(allocations: ReadonlyMap<string, Allocation>, counts: ReadonlyMap<string, number>): { giving: Map<string, number>; receiving: Map<string, number> } {
  const over = new Map<string, number>();
  const under = new Map<string, number>();
  for (const [zone, { desired }] of allocations) {
    const excess = (counts.get(zone) ?? 0) - desired;
    if (excess !== 0) (excess > 0 ? over : under).set(zone, Math.abs(excess));
  }
  const [giving, receiving] = [new Map<string, number>(), new Map<string, number>()];
  for (;;) {
    const [from, excess] = most(over);
    const [to, lack] = most(under);
    if ((excess < 1 && lack < 1) || excess < 0.5 || lack < 0.5) return { giving, receiving };
    over.set(from, excess - 1);
    under.set(to, lack - 1);
    giving.set(from, (giving.get(from) ?? 0) + 1);
    receiving.set(to, (receiving.get(to) ?? 0) + 1);
  }
}

function most(zones: ReadonlyMap<string, number>): readonly [zone: string, count: number] {
  return [...zones].reduce<readonly [string, number]>((best, one) => (one[1] > best[1] ? one : best), ["", 0]);
}

function isReady({ status }: Readonly<Node>): boolean { return findCondition(status?.conditions, "Ready")?.status === "True"; }
