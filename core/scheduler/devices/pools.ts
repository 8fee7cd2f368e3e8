/**
 * The pools of devices that a node can reach. A driver publishes a pool as several slices of one generation; while it is changing them, the pool is
 * incomplete and nothing is taken from it, nor from one whose slices contradict each other.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go
 */
import type { Node, NodeSelector } from "../../api/gen/core.v1.ts";
import type { Counter, Device, ResourceSlice } from "../../api/gen/resource.v1.ts";
import { compareText } from "../../api/meta/compare-text.ts";
import { matchesNodeSelector } from "../node-selector.ts";
import { type DeviceId, deviceId } from "./allocated.ts";

export interface PoolDevice {
  readonly device: Device;
  readonly slice: Readonly<ResourceSlice>;
}

/** Of a pool that something can be taken from. */
export interface NamedDevice extends PoolDevice { readonly id: DeviceId }

export interface Pool {
  readonly driver: string;
  readonly name: string;
  /** Why nothing can be taken from it. */
  readonly state: "usable" | "incomplete" | "invalid";
  /** In slices that are meant for the node, in the order of their names. */
  readonly devices: readonly NamedDevice[];
  /** All of the pool: what is taken of counters elsewhere counts here. */
  readonly everywhere: readonly NamedDevice[];
  readonly counters: ReadonlyMap<string, Readonly<Record<string, Counter>>>;
}

/** `everyNodes`: pools that each node has alike, by their first slices; with one map for several nodes they are put together once. */
export function poolsFor(node: Readonly<Node>, slices: Iterable<Readonly<ResourceSlice>>, everyNodes = new Map<Readonly<ResourceSlice>, Pool>()): Pool[] {
  const byPool = Map.groupBy(slices, ({ spec }) => JSON.stringify([spec.driver, spec.pool.name]));
  const pools = [...byPool.values()].flatMap((all): Pool[] => {
    const before = everyNodes.get(all[0]!);
    if (before) return [before];
    const meant = all.filter((slice) => isMeantFor(slice, node));
    if (meant.length === 0) return [];
    const generation = newestOf(meant);
    const known = meant.filter(({ spec }) => spec.pool.generation === generation);
    let pool: Pool;
    if (known.length === known[0]!.spec.pool.resourceSliceCount) pool = poolOf(known, known); // whatever others there are, of other nodes or newer: drivers may call the pools of all nodes the same
    else if (newestOf(all) > generation) return []; // the generation that has devices for this node is being replaced
    else pool = poolOf(all.filter(({ spec }) => spec.pool.generation === generation), known);
    if (all.every(({ spec }) => spec.allNodes === true || (spec.sharedCounters ?? []).length > 0)) everyNodes.set(all[0]!, pool);
    return [pool];
  });
  return pools.sort((a, b) => Number(needsBinding(a)) - Number(needsBinding(b)) || compareText(a.driver, b.driver) || compareText(a.name, b.name));
}

/** A driver may count in nanoseconds, which no double holds. */
function newestOf(slices: readonly Readonly<ResourceSlice>[]): number {
  return slices.reduce((most, { spec: { pool } }) => (pool.generation > most ? pool.generation : most), 0);
}

/** Pools whose devices have to be made ready come last. */
function needsBinding({ devices }: Pool): boolean {
  return devices.some(({ device }) => device.bindingConditions !== undefined);
}

function poolOf(current: readonly Readonly<ResourceSlice>[], meant: readonly Readonly<ResourceSlice>[]): Pool {
  const { driver, pool } = meant[0]!.spec;
  const head = { driver, name: pool.name, devices: [], everywhere: [], counters: new Map<string, Readonly<Record<string, Counter>>>() };
  if (current.length !== pool.resourceSliceCount) return { ...head, state: "incomplete" };
  const devices = devicesOf(meant);
  const everywhere = devicesOf(current);
  const sets = current.flatMap(({ spec }) => spec.sharedCounters ?? []);
  const counters = new Map(sets.map((set) => [set.name, set.counters ?? {}]));
  const names = new Set(devices.map(({ device }) => device.name));
  const known = everywhere.every(({ device }) => (device.consumesCounters ?? []).every(({ counterSet, counters: used }) => Object.keys(used ?? {}).every((name) => counters.get(counterSet)?.[name] !== undefined) && counters.has(counterSet)));
  if (names.size !== devices.length || counters.size !== sets.length || !known) return { ...head, state: "invalid" };
  return { ...head, state: "usable", devices, everywhere, counters };
}

function devicesOf(slices: readonly Readonly<ResourceSlice>[]): NamedDevice[] {
  return slices.toSorted((a, b) => compareText(a.metadata.name, b.metadata.name)).flatMap((slice) => (slice.spec.devices ?? []).map((device) => ({ device, slice, id: deviceId(slice.spec.driver, slice.spec.pool.name, device.name) })));
}

function isMeantFor({ spec }: Readonly<ResourceSlice>, node: Readonly<Node>): boolean {
  if ((spec.sharedCounters ?? []).length > 0) return true;
  if (spec.nodeName || spec.allNodes || spec.nodeSelector) return reaches(spec, node);
  return spec.perDeviceNodeSelection === true && (spec.devices ?? []).some((device) => reaches(device, node));
}

/** Whether what says so can be used on the node. */
export function reaches({ nodeName, allNodes, nodeSelector }: { readonly nodeName?: string | undefined; readonly allNodes?: boolean | undefined; readonly nodeSelector?: NodeSelector | undefined }, node: Readonly<Node>): boolean {
  if (nodeName) return nodeName === node.metadata.name;
  return allNodes === true || (nodeSelector !== undefined && matchesNodeSelector(nodeSelector, node));
}
