/**
 * The Static policy of the memory manager: the memory and huge pages of a container of a Guaranteed pod come from as few NUMA nodes as can be, and nobody else is
 * promised them. Nodes that serve one container together are a group, and serve no other group. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/memorymanager/{policy_static,memory_manager}.go
 */
import type { Container, Pod, ResourceList } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity, quantityOf } from "../../../core/api/meta/quantity.ts";
import type { NumaNode } from "../../os/cpu-topology.ts";
import { isSidecar } from "../pod-spec.ts";
import { qosClass } from "../resources/pod-resources.ts";
import { type Hint, type Hints, isNarrower, maskOf, masks, type NodeMask, nodesIn } from "./hints.ts";

/** In the form, and by the names, that they are kept on disk with. */
export interface MemoryTable { readonly total: number; readonly systemReserved: number; readonly allocatable: number; reserved: number; free: number }
export interface NodeState { numberOfAssignments: number; readonly memoryMap: Record<string, MemoryTable>; cells: readonly number[] }
export interface Block { readonly numaAffinity: readonly number[]; readonly type: string; size: number }

export interface MemoryState {
  readonly machineState: Record<string, NodeState>;
  /** By pod, then by container. */
  readonly entries: Record<string, Record<string, Block[]>>;
}

/** What init containers of the pod that is admitted leave to those after them: by set of nodes and resource. */
export type Reusable = Map<string, number>;

export interface Reservation { readonly numaNode?: number | undefined; readonly limits?: Readonly<Record<string, string>> | undefined }

export function isMemory(resource: string): boolean {
  return resource === "memory" || resource.startsWith("hugepages-");
}

/** All there is, with nothing given out. */
export function freshMachine(nodes: readonly NumaNode[], reserved: readonly Reservation[]): Record<string, NodeState> {
  const kept = (node: number, resource: string): number => reserved.filter(({ numaNode = 0 }) => numaNode === node).reduce((sum, { limits = {} }) => sum + parseQuantity(limits[resource] ?? "0").number(), 0);
  return Object.fromEntries(nodes.map(({ id, memoryBytes, hugepages }) => {
    const huge = hugepages.map(({ pageBytes, bytes }) => [`hugepages-${quantityOf(pageBytes, "BinarySI").toString()}`, table(bytes, kept(id, `hugepages-${quantityOf(pageBytes, "BinarySI").toString()}`))] as const);
    const ofHuge = hugepages.reduce((sum, { bytes }) => sum + bytes, 0);
    return [String(id), { numberOfAssignments: 0, memoryMap: { ...Object.fromEntries(huge), memory: table(memoryBytes, kept(id, "memory"), ofHuge) }, cells: [id] }];
  }));
}

function table(total: number, systemReserved: number, elsewhere = 0): MemoryTable {
  const allocatable = total - systemReserved - elsewhere;
  return { total, systemReserved, allocatable, reserved: 0, free: allocatable };
}

/** What is reserved node by node must be what is kept from pods altogether. Throws an Error for the user. */
export function checkReserved(nodes: readonly NumaNode[], reserved: readonly Reservation[], reservation: ResourceList): void {
  const sums = new Map<string, number>();
  for (const { numaNode = 0, limits = {} } of reserved) {
    if (!nodes.some(({ id }) => id === numaNode)) throw new Error(`the reserved memory configuration references a NUMA node ${numaNode} that does not exist on this machine`);
    for (const [name, text] of Object.entries(limits)) sums.set(name, (sums.get(name) ?? 0) + parseQuantity(text).number());
  }
  for (const name of new Set([...sums.keys(), ...Object.keys(reservation).filter(isMemory)])) {
    const [ours, kept] = [sums.get(name) ?? 0, parseQuantity(reservation[name] ?? "0").number()];
    if (ours !== kept) throw new Error(`the total amount "${quantityOf(ours, "BinarySI").toString()}" of type "${name}" is not equal to the value "${quantityOf(kept, "BinarySI").toString()}" determined by Node Allocatable feature`);
  }
  if ((sums.get("memory") ?? 0) <= 0) throw new Error("[memorymanager] you should specify the system reserved memory");
}

/** A state as it was found, made usable. Throws an Error for the user when it does not fit this machine. */
export function validMemory(fresh: Record<string, NodeState>, { machineState, entries }: MemoryState): MemoryState {
  if (Object.keys(machineState).length === 0) {
    if (Object.keys(entries).length > 0) throw new Error("[memorymanager] machine state can not be empty when it has memory assignments");
    return { machineState: fresh, entries: {} };
  }
  const expected = structuredClone(fresh);
  for (const [pod, containers] of Object.entries(entries)) {
    for (const [container, blocks] of Object.entries(containers)) {
      for (const { numaAffinity, type, size } of blocks) {
        if (numaAffinity.some((node) => !expected[node])) throw new Error(`[memorymanager] (pod: ${pod}, container: ${container}) the memory assignment uses the NUMA that does not exist`);
        if (numaAffinity.some((node) => !expected[node]!.memoryMap[type])) throw new Error(`[memorymanager] (pod: ${pod}, container: ${container}) the memory assignment uses memory resource that does not exist`);
        occupy(expected, { nodes: numaAffinity, resource: type, bytes: size });
      }
    }
  }
  if (!sameMachine(machineState, expected)) throw new Error("[memorymanager] the expected machine state is different from the real one");
  return { machineState, entries };
}

/** What is free may lie elsewhere within a group, but not be more or less. */
function sameMachine(a: Record<string, NodeState>, b: Record<string, NodeState>): boolean {
  if (Object.keys(a).length !== Object.keys(b).length) return false;
  return Object.entries(a).every(([id, x]) => {
    const y = b[id];
    if (!y || x.numberOfAssignments !== y.numberOfAssignments || maskOf(x.cells) !== maskOf(y.cells) || Object.keys(x.memoryMap).length !== Object.keys(y.memoryMap).length) return false;
    return Object.entries(x.memoryMap).every(([resource, one]) => {
      const other = y.memoryMap[resource];
      const sum = (machine: Record<string, NodeState>, field: "free" | "reserved"): number => x.cells.reduce((total, cell) => total + (machine[cell]?.memoryMap[resource]?.[field] ?? 0), 0);
      return other && one.total === other.total && one.systemReserved === other.systemReserved && one.allocatable === other.allocatable && sum(a, "free") === sum(b, "free") && sum(a, "reserved") === sum(b, "reserved");
    });
  });
}

/** Whether the memory manager has a say about the pod's containers. */
export function isPinned(pod: Pod): boolean {
  return !pod.spec.resources && qosClass(pod) === "Guaranteed";
}

export type Wishes = ReadonlyMap<string, number>;

/** In bytes. Throws an Error where a part of one is asked for, which no state file can hold. */
export function wantedMemory({ resources }: Pick<Container, "resources">): Wishes {
  return new Map(Object.entries(resources?.requests ?? {}).filter(([name]) => isMemory(name)).map(([name, text]) => {
    const quantity = parseQuantity(text);
    if (!quantity.isWhole) throw new Error("[memorymanager] failed to represent quantity as int64");
    return [name, quantity.number()];
  }));
}

/** At the pod's busiest time. */
export function memoryOfPod({ spec }: Pod): Wishes {
  const [init, sidecars, apps] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  const add = (to: Map<string, number>, name: string, bytes: number): void => void to.set(name, (to.get(name) ?? 0) + bytes);
  for (const container of spec.initContainers ?? []) {
    for (const [name, bytes] of wantedMemory(container)) {
      if (isSidecar(container)) add(sidecars, name, bytes);
      else init.set(name, Math.max(init.get(name) ?? 0, (sidecars.get(name) ?? 0) + bytes));
    }
  }
  for (const container of spec.containers) for (const [name, bytes] of wantedMemory(container)) add(apps, name, bytes);
  return new Map([...apps].map(([name, bytes]) => [name, Math.max(bytes + (sidecars.get(name) ?? 0), init.get(name) ?? 0)]));
}

/** Blocks a container has already, as hints. No entries: they are not what it asks for now. */
export function hintsOfBlocks(blocks: readonly Block[], wishes: Wishes): Hints {
  if (blocks.length !== wishes.size || blocks.some(({ type, size }) => wishes.get(type) !== size)) return new Map();
  return new Map(blocks.map(({ type, numaAffinity }) => [type, [{ nodes: maskOf(numaAffinity), preferred: true }]]));
}

export function memoryHints(machine: Record<string, NodeState>, wishes: Wishes, reusable: Reusable): Hints {
  const nodes = Object.keys(machine).map(Number).toSorted((a, b) => a - b);
  let least = nodes.length;
  const found: NodeMask[] = [];
  for (const mask of masks(nodes)) {
    const members = nodesIn(mask);
    const sum = (resource: string, field: "free" | "allocatable"): number => members.reduce((total, node) => total + (machine[node]!.memoryMap[resource]?.[field] ?? 0), 0);
    if ([...wishes].some(([resource, bytes]) => sum(resource, "allocatable") < bytes)) continue;
    least = Math.min(least, members.length);
    if (members.length === 1 && machine[members[0]!]!.cells.length > 1) continue; // it serves a group
    if (members.length > 1 && violates(machine, mask)) continue;
    if ([...wishes].some(([resource, bytes]) => sum(resource, "free") + (reusable.get(reuseKey(mask, resource)) ?? 0) < bytes)) continue;
    found.push(mask);
  }
  if (found.length === 0) return new Map();
  return new Map([...wishes.keys()].map((resource) => [resource, found.map((mask): Hint => ({ nodes: mask, preferred: nodesIn(mask).length === least }))]));
}

/** Some node of this group serves alone, or another group. */
function violates(machine: Record<string, NodeState>, mask: NodeMask): boolean {
  const members = nodesIn(mask);
  return members.length > 1 && members.some((node) => machine[node]!.numberOfAssignments > 0 && (machine[node]!.cells.length === 1 || maskOf(machine[node]!.cells) !== mask));
}

function reuseKey(mask: NodeMask, resource: string): string {
  return `${mask}/${resource}`;
}

export interface MemoryRequest { readonly pod: Pod; readonly container: Container; readonly hint: Hint; readonly reusable: Reusable }

/** With the container's memory set aside; notes in `reusable` what others of the pod may use again. Throws an Error that says why not. */
export function withMemory(state: MemoryState, { pod, container, hint, reusable }: MemoryRequest): MemoryState {
  const { uid } = pod.metadata;
  const mine = state.entries[uid]?.[container.name];
  if (mine) {
    noteReusable(reusable, pod, container, mine);
    return state;
  }
  const wishes = wantedMemory(container);
  const { machineState, entries } = structuredClone(state);
  const nodes = nodesFor(machineState, { wishes, hint, reusable });
  const members = nodesIn(nodes);
  const blocks = [...wishes].map(([type, size]): Block => ({ numaAffinity: members, type, size }));
  for (const { type, size } of blocks) occupy(machineState, { nodes: members, resource: type, bytes: Math.max(0, size - (reusable.get(reuseKey(nodes, type)) ?? 0)) });
  noteReusable(reusable, pod, container, blocks);
  entries[uid] = { ...entries[uid], [container.name]: blocks };
  takeFromInit(entries[uid], pod, container, blocks);
  return { machineState, entries };
}

function nodesFor(machine: Record<string, NodeState>, { wishes, hint, reusable }: { readonly wishes: Wishes; readonly hint: Hint; readonly reusable: Reusable }): NodeMask {
  const possible = memoryHints(machine, wishes, reusable);
  let best = hint;
  if (best.nodes === undefined) {
    if (possible.size === 0) throw new Error("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available");
    const usual = bestOf(possible.get("memory") ?? []);
    if (!usual.preferred && hint.preferred) throw new Error("[memorymanager] failed to find the default preferred hint");
    best = usual;
  }
  const nodes = best.nodes ?? 0n;
  if (!satisfies(machine, nodes, wishes)) {
    const wider = (possible.get("memory") ?? []).filter((one) => one.nodes !== undefined && (one.nodes & nodes) === nodes);
    if (wider.length === 0) throw new Error("[memorymanager] failed to find NUMA nodes to extend the current topology hint");
    const extended = bestOf(wider);
    if (!extended.preferred && best.preferred) throw new Error("[memorymanager] failed to find the extended preferred hint");
    best = extended;
  }
  if (violates(machine, best.nodes ?? 0n)) throw new Error("[memorymanager] preferred hint violates NUMA node allocation");
  return best.nodes ?? 0n;
}

function satisfies(machine: Record<string, NodeState>, mask: NodeMask, wishes: Wishes): boolean {
  return [...wishes].every(([resource, bytes]) => nodesIn(mask).reduce((sum, node) => sum + (machine[node]?.memoryMap[resource]?.free ?? 0), 0) >= bytes);
}

function bestOf(hints: readonly Hint[]): Hint {
  let best: Hint = { nodes: undefined, preferred: false };
  for (const hint of hints) {
    if (best.nodes === undefined || (hint.preferred && !best.preferred) || (hint.preferred === best.preferred && isNarrower(hint.nodes!, best.nodes))) best = hint;
  }
  return best;
}

function occupy(machine: Record<string, NodeState>, { nodes, resource, bytes }: { readonly nodes: readonly number[]; readonly resource: string; readonly bytes: number }): void {
  let left = bytes;
  for (const node of nodes) {
    const state = machine[node]!;
    state.numberOfAssignments++;
    state.cells = nodes;
    const memory = state.memoryMap[resource];
    if (!memory || memory.free <= 0) continue;
    const part = Math.min(left, memory.free);
    memory.reserved += part;
    memory.free -= part;
    left -= part;
  }
}

function vacate(machine: Record<string, NodeState>, { numaAffinity, type, size }: Block): void {
  let left = size;
  for (const node of numaAffinity) {
    const state = machine[node];
    if (!state) continue;
    state.numberOfAssignments--;
    if (state.numberOfAssignments === 0) state.cells = [node];
    const memory = state.memoryMap[type];
    if (!memory) continue;
    const part = Math.min(left, memory.reserved);
    memory.reserved -= part;
    memory.free += part;
    left -= part;
  }
}

function isPlainInit({ spec }: Pod, { name }: Container): boolean {
  return (spec.initContainers ?? []).some((container) => container.name === name && !isSidecar(container));
}

function noteReusable(reusable: Reusable, pod: Pod, container: Container, blocks: readonly Block[]): void {
  const lends = isPlainInit(pod, container);
  for (const { numaAffinity, type, size } of blocks) {
    const key = reuseKey(maskOf(numaAffinity), type);
    const before = reusable.get(key) ?? 0;
    reusable.set(key, lends ? Math.max(before, size) : Math.max(0, before - size));
  }
}

/** What a later container uses again is counted as its own. */
function takeFromInit(entries: Record<string, Block[]>, { spec }: Pod, container: Container, blocks: readonly Block[]): void {
  for (const block of blocks) {
    let left = block.size;
    for (const init of spec.initContainers ?? []) {
      if (init.name === container.name || left === 0) break;
      if (isSidecar(init)) continue;
      for (const lent of entries[init.name] ?? []) {
        if (lent.type !== block.type || maskOf(lent.numaAffinity) !== maskOf(block.numaAffinity)) continue;
        const part = Math.min(lent.size, left);
        lent.size -= part;
        left -= part;
      }
    }
  }
}

/** What these containers of the pod had is free again; all of them: where no names are given. */
export function withoutMemory(state: MemoryState, podUid: string, names?: readonly string[]): MemoryState {
  const mine = state.entries[podUid];
  if (!mine || (names && !names.some((name) => mine[name]))) return state;
  const { machineState, entries } = structuredClone(state);
  const left = { ...entries[podUid] };
  for (const [name, blocks] of Object.entries(mine)) {
    if (names && !names.includes(name)) continue;
    for (const block of blocks) vacate(machineState, block);
    delete left[name];
  }
  if (Object.keys(left).length > 0) entries[podUid] = left;
  else delete entries[podUid];
  return { machineState, entries };
}
