/**
 * How processors and memory lie together on this machine: threads in cores, cores in sockets and NUMA nodes, which share a last-level cache; from sysfs.
 *
 * A kernel without NUMA has one node with everything.
 *
 * Source: cadvisor v0.56 machine/topology, utils/sysinfo (which files; a cache that all of a node share is the node's, and tells nothing)
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface CpuPlace {
  readonly cpu: number;
  /** Its lowest thread: unlike the kernel's numbers, no two cores of the machine share it. */
  readonly core: number;
  readonly socket: number;
  readonly numaNode: number;
  /** The last-level cache, where a node has several; else the socket. */
  readonly uncoreCache: number;
}

export interface NumaNode {
  readonly id: number;
  readonly memoryBytes: number;
  /** To each node, in the order of their ids. */
  readonly distances: readonly number[];
  readonly hugepages: readonly { readonly pageBytes: number; readonly bytes: number }[];
}

export interface MachineTopology { readonly cpus: readonly CpuPlace[]; readonly nodes: readonly NumaNode[] }

interface Thread { readonly cpu: number; readonly coreId: number; readonly socket: number; readonly numaNode: number; readonly cache: { readonly id: number; readonly cpus: number } | undefined }

/** `memoryBytes`: of the whole machine, where the kernel has no nodes. */
export function machineTopology({ sysfs = "/sys", memoryBytes }: { readonly sysfs?: string; readonly memoryBytes: number }): MachineTopology {
  const system = join(sysfs, "devices/system");
  const nodeIds = numbered(join(system, "node"), "node");
  const nodeOf = new Map(nodeIds.flatMap((node) => numbered(join(system, "node", `node${node}`), "cpu").map((cpu) => [cpu, node] as const)));
  const threads = numbered(join(system, "cpu"), "cpu").flatMap((cpu) => threadOf(join(system, "cpu", `cpu${cpu}`), cpu, nodeOf.get(cpu) ?? 0));
  return { cpus: placesOf(threads), nodes: nodeIds.length === 0 ? [{ id: 0, memoryBytes, distances: [10], hugepages: hugepagesIn(join(sysfs, "kernel/mm/hugepages")) }] : nodeIds.map((id) => nodeAt(join(system, "node", `node${id}`), id)) };
}

/** A processor that is offline has no topology. */
function threadOf(directory: string, cpu: number, numaNode: number): Thread[] {
  const coreId = read(join(directory, "topology/core_id"));
  if (coreId === undefined || read(join(directory, "online")) === "0") return [];
  const caches = numbered(join(directory, "cache"), "index").map((index) => join(directory, "cache", `index${index}`)).filter((path) => Number(read(join(path, "level")) ?? 0) > 2);
  const cache = caches[0];
  return [{
    cpu, coreId: Number(coreId), socket: Math.max(0, Number(read(join(directory, "topology/physical_package_id")) ?? 0)), numaNode,
    cache: cache === undefined ? undefined : { id: Number(read(join(cache, "id")) ?? 0), cpus: bitsIn(read(join(cache, "shared_cpu_map")) ?? "") },
  }];
}

function placesOf(threads: readonly Thread[]): CpuPlace[] {
  const lowest = new Map<string, number>();
  const coreOf = ({ numaNode, socket, coreId }: Thread): string => `${numaNode}/${socket}/${coreId}`;
  for (const thread of threads) lowest.set(coreOf(thread), Math.min(thread.cpu, lowest.get(coreOf(thread)) ?? thread.cpu));
  return threads.map((thread) => {
    const ofNode = threads.filter(({ numaNode }) => numaNode === thread.numaNode).length;
    return { cpu: thread.cpu, core: lowest.get(coreOf(thread))!, socket: thread.socket, numaNode: thread.numaNode, uncoreCache: thread.cache && thread.cache.cpus !== ofNode ? thread.cache.id : thread.socket };
  });
}

function nodeAt(directory: string, id: number): NumaNode {
  const kilobytes = /MemTotal:\s+(\d+) kB/.exec(read(join(directory, "meminfo")) ?? "")?.[1] ?? "0";
  return { id, memoryBytes: Number(kilobytes) * 1024, distances: (read(join(directory, "distance")) ?? "").split(/\s+/).filter(Boolean).map(Number), hugepages: hugepagesIn(join(directory, "hugepages")) };
}

function hugepagesIn(directory: string): { pageBytes: number; bytes: number }[] {
  return entries(directory).flatMap((name) => {
    const kilobytes = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0);
    return kilobytes === 0 ? [] : [{ pageBytes: kilobytes * 1024, bytes: Number(read(join(directory, name, "nr_hugepages")) ?? 0) * kilobytes * 1024 }];
  });
}

/** In hexadecimal words, separated by commas. */
function bitsIn(map: string): number {
  return [...map.replaceAll(",", "")].reduce((sum, digit) => sum + (Number.parseInt(digit, 16) || 0).toString(2).replaceAll("0", "").length, 0);
}

function numbered(directory: string, prefix: string): number[] {
  return entries(directory).flatMap((name) => (name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)) ? [Number(name.slice(prefix.length))] : [])).toSorted((a, b) => a - b);
}

function entries(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined; // another kernel or architecture: it has no such file
  }
}
