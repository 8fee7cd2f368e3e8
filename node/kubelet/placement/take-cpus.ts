/**
 * Chooses processors that lie well together. Pure.
 *
 *   packed        whole sockets or NUMA nodes, then (if asked) whole and parts of last-level caches, then whole cores, then single ones; where less is left first
 *   distributed   the same number from each of as few NUMA nodes as will do, what is over where it leaves the machine best balanced
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/cpumanager/cpu_assignment.go
 */
import { type CpuSet, NO_CPUS, sorted } from "./cpu-set.ts";
import { type CpuMachine, cpusIn, type Level, unitsOf } from "./cpu-machine.ts";
import { combinations } from "./hints.ts";

export interface TakeOptions {
  /** One thread of many cores, rather than all of few. */
  readonly acrossCores?: boolean | undefined;
  readonly acrossNuma?: boolean | undefined;
  readonly fullCores?: boolean | undefined;
  readonly byUncoreCache?: boolean | undefined;
}

/** Throws an Error in upstream's words when it cannot. */
export function takeCpus(machine: CpuMachine, available: CpuSet, count: number, options: TakeOptions): CpuSet {
  return options.acrossNuma ? distributed(machine, available, count, options) : packed(machine, available, count, options);
}

function packed(machine: CpuMachine, available: CpuSet, count: number, { acrossCores = false, byUncoreCache = false }: TakeOptions): CpuSet {
  if (count < 1) return NO_CPUS;
  checkEnough(available, count);
  const taking = new Taking(machine, available, count);
  const levels: readonly Level[] = taking.numaFirst ? ["numaNode", "socket"] : ["socket", "numaNode"];
  for (const level of levels) if (!taking.satisfied) taking.takeWhole(level);
  if (byUncoreCache && !taking.satisfied) taking.takeCaches();
  if (!acrossCores && !taking.satisfied) taking.takeWhole("core");
  for (const cpu of taking.satisfied ? [] : taking.singles(acrossCores)) {
    taking.take(new Set([cpu]));
    if (taking.satisfied) break;
  }
  if (!taking.satisfied) throw new Error("failed to allocate cpus");
  return taking.taken;
}

function checkEnough(available: CpuSet, count: number): void {
  if (count > available.size) throw new Error(`not enough cpus available to satisfy request: requested=${count}, available=${available.size}`);
}

class Taking {
  readonly #machine: CpuMachine;
  /** Sockets lie within NUMA nodes here, or are the same; else nodes within sockets. */
  readonly numaFirst: boolean;
  #free: CpuSet;
  #taken: CpuSet = NO_CPUS;
  #needed: number;

  constructor(machine: CpuMachine, available: CpuSet, count: number) {
    this.#machine = machine;
    this.#free = available;
    this.#needed = count;
    this.numaFirst = machine.sockets >= machine.numaNodes.length;
  }

  get satisfied(): boolean { return this.#needed < 1; }
  get taken(): CpuSet { return this.#taken; }
  get needed(): number { return this.#needed; }

  take(cpus: CpuSet): void {
    this.#taken = this.#taken.union(cpus);
    this.#free = this.#free.difference(cpus);
    this.#needed -= cpus.size;
  }

  freeIn(level: Level, id: number): CpuSet {
    return cpusIn(this.#machine, this.#free, level, [id]);
  }

  /** Units of `level` among these processors, the one with the fewest free processors first. */
  #order(level: Level, cpus: CpuSet): number[] {
    return unitsOf(this.#machine, cpus, level).map((id) => ({ id, size: this.freeIn(level, id).size })).toSorted((a, b) => a.size - b.size || a.id - b.id).map(({ id }) => id);
  }

  /** Units of `level`, by the unit they lie in first: where less is left, there we begin. */
  units(level: Level): number[] {
    const top: Level = this.numaFirst ? "numaNode" : "socket";
    if (level === top) return this.#order(level, this.#free);
    const above: Level = level === "uncoreCache" ? "numaNode" : level === "core" ? (this.numaFirst ? "socket" : "numaNode") : top;
    return this.units(above).flatMap((id) => this.#order(level, this.freeIn(above, id)));
  }

  /** Processors one by one: core by core, or one after the other within a socket. */
  singles(acrossCores: boolean): number[] {
    const level: Level = acrossCores ? "socket" : "core";
    return this.units(level).flatMap((id) => sorted(this.freeIn(level, id)));
  }

  takeWhole(level: Level): void {
    const wholes = this.units(level).map((id) => ({ free: this.freeIn(level, id), whole: cpusIn(this.#machine, this.#machine.all, level, [id]) }));
    // Units are taken to be alike, as upstream takes them; where they are not, one with a processor of somebody else's may look free, and is not.
    const isFree = (free: number, whole: number): boolean => free === whole && free === (level === "socket" ? this.#machine.cpusPerSocket : level === "core" ? this.#machine.cpusPerCore : whole);
    for (const { whole } of wholes.filter((one) => isFree(one.free.size, one.whole.size))) if (this.#needed >= whole.size) this.take(whole);
  }

  takeCaches(): void {
    for (const id of this.units("uncoreCache")) {
      if (this.#needed >= this.#machine.cpusPerUncoreCache) this.takeWhole("uncoreCache");
      if (!this.satisfied) this.#takePartOfCache(id);
      if (this.satisfied) return;
    }
  }

  /** Only if what is needed still fits into this cache as a whole. */
  #takePartOfCache(id: number): void {
    const { cpusPerCore } = this.#machine;
    const cores = unitsOf(this.#machine, this.freeIn("uncoreCache", id), "core").slice(0, Math.ceil(this.#needed / cpusPerCore));
    let cpus = sorted(cpusIn(this.#machine, this.#free, "core", cores));
    if (this.#needed % 2 !== 0 && cpusPerCore > 1 && cpus.length > this.#needed) cpus = cpus.slice(0, -1); // an odd number needs one thread less of its last core
    if (cpus.length === this.#needed) this.take(new Set(cpus));
  }
}

/** A way to spread a request: so many from each of `nodes`, the rest group by group from `rest`. */
interface Spread { readonly nodes: readonly number[]; readonly rest: readonly number[]; readonly imbalance: number }

function distributed(machine: CpuMachine, available: CpuSet, count: number, options: TakeOptions): CpuSet {
  const group = options.fullCores ? machine.cpusPerCore : 1;
  const plainly = { acrossCores: options.acrossCores };
  if (count % group !== 0) return packed(machine, available, count, plainly);
  if (count < 1) return NO_CPUS;
  checkEnough(available, count);
  const taking = new Taking(machine, available, count);
  const nodes = taking.units("numaNode");
  const groupsPerNode = Math.ceil(Math.ceil(machine.all.size / group) / machine.numaNodes.length);
  const groups = Math.ceil(count / group);
  for (let size = Math.ceil(groups / groupsPerNode); size <= Math.min(groups, unitsOf(machine, available, "numaNode").length); size++) {
    const spread = bestSpread(nodes, size, { count, group, free: (node) => taking.freeIn("numaNode", node).size });
    if (!spread) continue;
    const even = evenShare(count, size, group);
    for (const node of spread.nodes) taking.take(packed(machine, taking.freeIn("numaNode", node), even, plainly));
    while (taking.needed > 0) {
      const before = taking.needed;
      for (const node of spread.rest) {
        if (taking.needed <= 0) break;
        const free = taking.freeIn("numaNode", node);
        if (free.size >= group) taking.take(packed(machine, free, group, plainly));
      }
      if (taking.needed === before) throw new Error(`accounting error, not enough CPUs allocated, remaining: ${before}`);
    }
    return taking.taken;
  }
  return packed(machine, available, count, plainly);
}

function evenShare(count: number, nodes: number, group: number): number {
  return Math.floor(Math.floor(count / nodes) / group) * group;
}

interface Request { readonly count: number; readonly group: number; readonly free: (node: number) => number }

function bestSpread(nodes: readonly number[], size: number, { count, group, free }: Request): Spread | undefined {
  let best: Spread | undefined;
  for (const combination of combinations(nodes, size)) {
    if (best?.imbalance === 0) break;
    const even = evenShare(count, size, group);
    const groups = combination.reduce((sum, node) => sum + Math.floor(free(node) / group), 0);
    if (groups * group < count || combination.some((node) => free(node) < even)) continue;
    const left = new Map(nodes.map((node) => [node, free(node) - (combination.includes(node) ? even : 0)]));
    const spread = withRest(combination, left, { rest: count - even * size, group });
    if (spread && spread.imbalance < (best?.imbalance ?? Number.MAX_VALUE)) best = spread;
  }
  return best;
}

/** From where what cannot be shared evenly is taken best. */
function withRest(nodes: readonly number[], left: ReadonlyMap<number, number>, { rest, group }: { readonly rest: number; readonly group: number }): Spread | undefined {
  if (rest === 0) return { nodes, rest: [], imbalance: deviation([...left.values()]) };
  const able = nodes.filter((node) => left.get(node)! >= group);
  let best: Spread | undefined;
  for (let size = able.length; size >= 1; size--) {
    for (const subset of combinations(able, size)) {
      if (subset.reduce((sum, node) => sum + left.get(node)!, 0) < rest) continue;
      const after = new Map(left);
      for (let open = rest; open > 0;) {
        const before = open;
        for (const node of subset) {
          if (open <= 0 || after.get(node)! < group) continue;
          after.set(node, after.get(node)! - group);
          open -= group;
        }
        if (open === before) break; // threads of broken cores are left, but no whole group
      }
      const imbalance = deviation([...after.values()]);
      if (imbalance < (best?.imbalance ?? Number.MAX_VALUE)) best = { nodes, rest: subset, imbalance };
    }
  }
  return best;
}

/** In thousandths, as upstream compares it. */
function deviation(values: readonly number[]): number {
  const rounded = (value: number): number => Math.round(value * 1000) / 1000;
  const mean = rounded(values.reduce((sum, value) => sum + value, 0) / values.length);
  return rounded(Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length));
}
