/**
 * The managers' state files, cpu_manager_state and memory_manager_state, as upstream writes them: who takes a node over from a stock kubelet, or gives it back, loses nothing.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/{cpumanager,memorymanager}/state/{checkpoint,state_checkpoint}.go
 */
import { compareText } from "../../../core/api/meta/compare-text.ts";
import { parseStateFile } from "../../os/state-file.ts";
import { byNumber, checksumOf, dumpList, dumpMap, verifyChecksum } from "../go-dump.ts";
import type { CpuState } from "./cpu-policy.ts";
import { formatCpuSet, parseCpuSet } from "./cpu-set.ts";
import type { Block, MemoryState, MemoryTable, NodeState } from "./memory-policy.ts";

export interface CpuCheckpoint extends Written { readonly policy: string; readonly state: CpuState }
export interface MemoryCheckpoint extends Written { readonly policy: string; readonly state: MemoryState }

interface Written {
  /** In which life of the machine (boot-id.ts). Upstream neither writes nor reads it. */
  readonly boot?: string | undefined;
}

interface StoredCpus { readonly policyName: string; readonly defaultCpuSet: string; readonly entries?: Readonly<Record<string, Readonly<Record<string, string>>>>; readonly checksum: number; readonly boot?: string }
interface StoredMemory { readonly policyName: string; readonly machineState: Record<string, NodeState>; readonly entries?: Record<string, Record<string, Block[]>>; readonly checksum: number; readonly boot?: string }

/** Undefined: there is none. Throws CorruptStateError when it was not written whole. */
export function readCpus(path: string): CpuCheckpoint | undefined {
  const stored = parseStateFile<StoredCpus>(path);
  if (!stored) return undefined;
  const { policyName, defaultCpuSet, entries = {}, checksum, boot } = stored;
  verifyChecksum(checksum, dumpCpus({ policyName, defaultCpuSet, entries }));
  const owned = new Map(Object.entries(entries).map(([pod, containers]) => [pod, new Map(Object.entries(containers).map(([name, text]) => [name, parseCpuSet(text)]))]));
  return { policy: policyName, state: { shared: parseCpuSet(defaultCpuSet), owned }, boot };
}

/** What the file is to hold. */
export function storedCpus({ policy, state, boot }: CpuCheckpoint): object {
  const entries = Object.fromEntries([...state.owned].toSorted(byFirst).map(([pod, containers]) => [pod, Object.fromEntries([...containers].toSorted(byFirst).map(([name, cpus]) => [name, formatCpuSet(cpus)]))]));
  const body = { policyName: policy, defaultCpuSet: formatCpuSet(state.shared), entries };
  const { entries: _, ...bare } = body;
  return { ...(state.owned.size > 0 ? body : bare), checksum: checksumOf(dumpCpus(body)), ...(boot === undefined ? {} : { boot }) };
}

export function readMemory(path: string): MemoryCheckpoint | undefined {
  const stored = parseStateFile<StoredMemory>(path);
  if (!stored) return undefined;
  const { policyName, machineState, entries = {}, checksum, boot } = stored;
  verifyChecksum(checksum, dumpMemory({ policyName, machineState, entries }));
  return { policy: policyName, state: { machineState, entries }, boot };
}

/** What the file is to hold. */
export function storedMemory({ policy, state: { machineState, entries }, boot }: MemoryCheckpoint): object {
  const checksum = checksumOf(dumpMemory({ policyName: policy, machineState, entries }));
  return { policyName: policy, machineState, ...(Object.keys(entries).length > 0 ? { entries } : {}), checksum, ...(boot === undefined ? {} : { boot }) };
}

/** Whether something that runs may rely on what the file says; if not, what of it does not fit the machine, or the policy, is no reason not to start. `isEmpty`: nothing is given out. */
export function isReliedOn(found: Written | undefined, { boot, isEmpty }: { readonly boot: string; readonly isEmpty: boolean }): boolean {
  return found === undefined || (!isEmpty && (found.boot === undefined || found.boot === boot));
}

function byFirst([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number { return compareText(a, b); }

function dumpCpus({ policyName, defaultCpuSet, entries }: Omit<Required<StoredCpus>, "checksum" | "boot">): string {
  const pods = dumpMap(entries, (containers) => dumpMap(containers, (cpus) => cpus));
  return `(*state.CPUManagerCheckpoint){PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} Entries:(map[string]map[string]string)${pods} Checksum:(checksum.Checksum)0}`;
}

function dumpMemory({ policyName, machineState, entries }: Omit<Required<StoredMemory>, "checksum" | "boot">): string {
  const nodes = dumpMap(machineState, dumpNode, byNumber);
  return `(*state.MemoryManagerCheckpoint){PolicyName:(string)${policyName} MachineState:(state.NUMANodeMap)${nodes} Entries:(state.ContainerMemoryAssignments)${dumpMap(entries, (containers) => dumpMap(containers, (blocks) => dumpList(blocks.map(dumpBlock))))} Checksum:(checksum.Checksum)0}`;
}

function dumpNode({ numberOfAssignments, memoryMap, cells }: NodeState): string {
  return `<*>{NumberOfAssignments:(int)${numberOfAssignments} MemoryMap:(map[v1.ResourceName]*state.MemoryTable)${dumpMap(memoryMap, dumpTable)} Cells:([]int)${dumpList(cells)}}`;
}

function dumpTable({ total, systemReserved, allocatable, reserved, free }: MemoryTable): string {
  return `<*>{TotalMemSize:(uint64)${total} SystemReserved:(uint64)${systemReserved} Allocatable:(uint64)${allocatable} Reserved:(uint64)${reserved} Free:(uint64)${free}}`;
}

function dumpBlock({ numaAffinity, type, size }: Block): string {
  return `{NUMAAffinity:([]int)${dumpList(numaAffinity)} Type:(v1.ResourceName)${type} Size:(uint64)${size}}`;
}
