/**
 * The managers' state files, cpu_manager_state and memory_manager_state, as upstream writes them: who takes a node over from a stock kubelet, or gives it back, loses nothing.
 *
 * Their checksum is FNV-1a of how a Go library (spew) prints the struct, names of its types and all; so that is what is printed here.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/{cpumanager,memorymanager}/state/{checkpoint,state_checkpoint}.go, pkg/kubelet/checkpointmanager/checksum; k8s.io/utils/dump
 */
import { CorruptStateError, parseStateFile } from "../../os/state-file.ts";
import type { CpuState } from "./cpu-policy.ts";
import { formatCpuSet, parseCpuSet } from "./cpu-set.ts";
import type { Block, MemoryState, MemoryTable, NodeState } from "./memory-policy.ts";

export interface CpuCheckpoint { readonly policy: string; readonly state: CpuState }
export interface MemoryCheckpoint { readonly policy: string; readonly state: MemoryState }

interface StoredCpus { readonly policyName: string; readonly defaultCpuSet: string; readonly entries?: Readonly<Record<string, Readonly<Record<string, string>>>>; readonly checksum: number }
interface StoredMemory { readonly policyName: string; readonly machineState: Record<string, NodeState>; readonly entries?: Record<string, Record<string, Block[]>>; readonly checksum: number }

/** Undefined: there is none. Throws CorruptStateError when it was not written whole. */
export function readCpus(path: string): CpuCheckpoint | undefined {
  const stored = parseStateFile<StoredCpus>(path);
  if (!stored) return undefined;
  const { policyName, defaultCpuSet, entries = {}, checksum } = stored;
  verify(checksum, dumpCpus({ policyName, defaultCpuSet, entries }));
  const owned = new Map(Object.entries(entries).map(([pod, containers]) => [pod, new Map(Object.entries(containers).map(([name, text]) => [name, parseCpuSet(text)]))]));
  return { policy: policyName, state: { shared: parseCpuSet(defaultCpuSet), owned } };
}

/** What the file is to hold. */
export function storedCpus({ policy, state }: CpuCheckpoint): object {
  const entries = Object.fromEntries([...state.owned].toSorted(byName).map(([pod, containers]) => [pod, Object.fromEntries([...containers].toSorted(byName).map(([name, cpus]) => [name, formatCpuSet(cpus)]))]));
  const body = { policyName: policy, defaultCpuSet: formatCpuSet(state.shared), entries };
  const { entries: _, ...bare } = body;
  return { ...(state.owned.size > 0 ? body : bare), checksum: fnv32a(dumpCpus(body)) };
}

export function readMemory(path: string): MemoryCheckpoint | undefined {
  const stored = parseStateFile<StoredMemory>(path);
  if (!stored) return undefined;
  const { policyName, machineState, entries = {}, checksum } = stored;
  verify(checksum, dumpMemory({ policyName, machineState, entries }));
  return { policy: policyName, state: { machineState, entries } };
}

/** What the file is to hold. */
export function storedMemory({ policy, state: { machineState, entries } }: MemoryCheckpoint): object {
  const checksum = fnv32a(dumpMemory({ policyName: policy, machineState, entries }));
  return { policyName: policy, machineState, ...(Object.keys(entries).length > 0 ? { entries } : {}), checksum };
}

function verify(checksum: number, text: string): void {
  const actual = fnv32a(text);
  if (checksum !== 0 && checksum !== actual) throw new CorruptStateError(`checkpoint is corrupted: actualCS ${actual}, expectedCS ${checksum}`);
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function dumpCpus({ policyName, defaultCpuSet, entries }: Omit<Required<StoredCpus>, "checksum">): string {
  const pods = map(entries, (containers) => map(containers, (cpus) => cpus));
  return `(*state.CPUManagerCheckpoint){PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} Entries:(map[string]map[string]string)${pods} Checksum:(checksum.Checksum)0}`;
}

function dumpMemory({ policyName, machineState, entries }: Omit<Required<StoredMemory>, "checksum">): string {
  const nodes = map(machineState, dumpNode, (a, b) => Number(a) - Number(b));
  return `(*state.MemoryManagerCheckpoint){PolicyName:(string)${policyName} MachineState:(state.NUMANodeMap)${nodes} Entries:(state.ContainerMemoryAssignments)${map(entries, (containers) => map(containers, (blocks) => list(blocks.map(dumpBlock))))} Checksum:(checksum.Checksum)0}`;
}

function dumpNode({ numberOfAssignments, memoryMap, cells }: NodeState): string {
  return `<*>{NumberOfAssignments:(int)${numberOfAssignments} MemoryMap:(map[v1.ResourceName]*state.MemoryTable)${map(memoryMap, dumpTable)} Cells:([]int)${list(cells)}}`;
}

function dumpTable({ total, systemReserved, allocatable, reserved, free }: MemoryTable): string {
  return `<*>{TotalMemSize:(uint64)${total} SystemReserved:(uint64)${systemReserved} Allocatable:(uint64)${allocatable} Reserved:(uint64)${reserved} Free:(uint64)${free}}`;
}

function dumpBlock({ numaAffinity, type, size }: Block): string {
  return `{NUMAAffinity:([]int)${list(numaAffinity)} Type:(v1.ResourceName)${type} Size:(uint64)${size}}`;
}

function map<T>(values: Readonly<Record<string, T>>, dump: (value: T) => string, order: (a: string, b: string) => number = (a, b) => byName([a, 0], [b, 0])): string {
  return `map[${Object.entries(values).toSorted(([a], [b]) => order(a, b)).map(([name, value]) => `${name}:${dump(value)}`).join(" ")}]`;
}

function list(items: readonly (string | number)[]): string {
  return `[${items.join(" ")}]`;
}

function fnv32a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

