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
import { isReady } from "../../api/meta/conditions.ts";
import { parseQuantity } from "../../api/meta/quantity.ts";
import { annotationsOf, labelsOf } from "../../api/meta/object-meta.ts";
import { type Layout, type SlicePlan, written } from "./plan.ts";

type Slice = Readonly<EndpointSlice>;

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
  readonly plan: SlicePlan;
  /** Why there are no hints. */
  readonly problem: string | undefined;
}

/** What is compared where hints are given afterwards: the slice without any. */
export function withoutHints(slice: Readonly<EndpointSlice>): EndpointSlice {
  return { ...slice, endpoints: slice.endpoints?.map(({ hints: _, ...endpoint }) => endpoint) };
}

/**
 * Gives each ready endpoint its zone. `plan` was made of `existing` without their hints. A slice that stays as it is keeps the hints it has, as long as all zones have
 * enough; one that is written anyway has them all anew, so that none is for another zone longer than it must.
 */
export function withZoneHints(plan: SlicePlan, existing: readonly Slice[], { shares, layout }: { readonly shares: ReadonlyMap<string, number> | undefined; readonly layout: Layout }): Hinted {
  const touched = new Set([...plan.update, ...plan.remove].map(({ metadata }) => metadata.name));
  const unchanged = existing.filter(({ metadata }) => !touched.has(metadata.name));
  const rewritten = (slice: Slice): EndpointSlice => written(slice, withoutHints(slice).endpoints ?? [], slice.ports ?? [], layout);
  const without = (problem: string): Hinted => ({ plan: { ...plan, update: [...plan.update, ...unchanged.filter(hasHints).map(rewritten)] }, problem });
  const allocations = allocationsOf(shares, [...plan.create, ...plan.update, ...unchanged].flatMap(readyOf).length);
  if (typeof allocations === "string") return without(allocations);

  const kept = keepable(unchanged, allocations);
  const attempt = (stay: ReadonlyMap<Slice, ReadonlyMap<string, number>>): Hinted | undefined => {
    const anew = unchanged.filter((slice) => !stay.has(slice)).map((slice) => ({ slice, bare: rewritten(slice) }));
    const zones = assign([...plan.create, ...plan.update, ...anew.map(({ bare }) => bare)].flatMap(readyOf), allocations, added([...stay.values()]));
    if (zones === undefined) return undefined;
    const others = anew.map(({ slice, bare }) => ({ slice, after: hinted(bare, zones) })).filter(({ slice, after }) => !Bun.deepEquals(hintsOf(slice), hintsOf(after)));
    return { plan: { ...plan, create: plan.create.map((slice) => hinted(slice, zones)), update: [...plan.update.map((slice) => hinted(slice, zones)), ...others.map(({ after }) => after)] }, problem: undefined };
  };
  return attempt(kept) ?? (kept.size > 0 ? attempt(new Map()) : undefined) ?? without(NO_ZONE);
}

function readyOf({ endpoints }: Pick<EndpointSlice, "endpoints">): readonly Endpoint[] { return (endpoints ?? []).filter(({ conditions }) => conditions?.ready === true); }

function hintsOf({ endpoints }: Slice): readonly Endpoint["hints"][] { return (endpoints ?? []).map(({ hints }) => hints); }

function hasHints(slice: Slice): boolean { return hintsOf(slice).some((hints) => hints !== undefined); }

function hinted<S extends Pick<EndpointSlice, "endpoints">>(slice: S, zones: ReadonlyMap<Endpoint, string>): S {
  const one = (endpoint: Endpoint): Endpoint => {
    const name = zones.get(endpoint);
    return name === undefined ? endpoint : { ...endpoint, hints: { forZones: [{ name }] } };
  };
  return { ...slice, endpoints: slice.endpoints?.map(one) };
}

/** The slices all of whose ready endpoints are for zones that have room for them, and how many for which. */
function keepable(slices: readonly Slice[], allocations: ReadonlyMap<string, Allocation>): Map<Slice, ReadonlyMap<string, number>> {
  const kept = new Map<Slice, ReadonlyMap<string, number>>();
  for (const slice of slices) {
    const names = readyOf(slice).map(({ hints }) => (hints?.forZones ?? []).map(({ name }) => name));
    if (names.some((own) => own.length === 0 || own.some((zone) => !allocations.has(zone)))) continue;
    const counts = new Map([...Map.groupBy(names.flat(), (zone) => zone)].map(([zone, all]) => [zone, all.length]));
    const sum = added([...kept.values(), counts]);
    if ([...counts.keys()].every((zone) => sum.get(zone)! <= allocations.get(zone)!.maximum)) kept.set(slice, counts);
  }
  return kept;
}

function added(all: readonly ReadonlyMap<string, number>[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const counts of all) for (const [zone, count] of counts) sum.set(zone, (sum.get(zone) ?? 0) + count);
  return sum;
}

/** `kept`: how many others each zone has. Undefined: an endpoint has no zone; or what was kept leaves some zone too few. */
function assign(free: readonly Endpoint[], allocations: ReadonlyMap<string, Allocation>, kept: ReadonlyMap<string, number>): Map<Endpoint, string> | undefined {
  const zones = new Map<Endpoint, string>();
  const counts = new Map(kept);
  const give = (endpoint: Endpoint, zone: string): void => {
    zones.set(endpoint, zone);
    counts.set(zone, (counts.get(zone) ?? 0) + 1);
  };
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
  return kept.size > 0 && [...allocations].some(([zone, { minimum }]) => (counts.get(zone) ?? 0) < minimum) ? undefined : zones;
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
