/**
 * Which shortage the node has, and which pod ends for it. Pure.
 *
 * Ranking: first those that use more than they asked for, then lower priority, then the larger excess. Critical pods are spared.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/{eviction_manager,helpers}.go
 */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity, quantityOf } from "../../../core/api/meta/quantity.ts";
import type { PodStats } from "../kubelet-api.ts";
import type { Pressure } from "../node/node-status.ts";
import { isCriticalPod } from "../pod-spec.ts";
import { podLimits, podRequests } from "../resources/pod-resources.ts";

export type Signal = "memory.available" | "allocatableMemory.available" | "containerfs.available" | "containerfs.inodesFree" | "nodefs.available" | "nodefs.inodesFree" | "imagefs.available" | "imagefs.inodesFree" | "pid.available";
export type Starved = "memory" | "ephemeral-storage" | "pids" | "inodes";

/** Bytes (or a count), or a part of the capacity. */
export type Amount = { readonly bytes: number } | { readonly fraction: number };

export interface Threshold {
  readonly signal: Signal;
  readonly value: Amount;
  /** A soft one: it must have been crossed for this long. */
  readonly graceMs?: number | undefined;
  /** Once crossed, this much more must be free before it is over. */
  readonly minReclaim?: Amount | undefined;
}

export interface EvictionSettings {
  readonly thresholds: readonly Threshold[];
  /** A condition outlives its cause by this, so that the scheduler does not send pods back at once. */
  readonly transitionMs: number;
  /** What pods get at most when a soft threshold ends them. 0: nothing. */
  readonly maxPodGraceSeconds: number;
}

export interface Observation { readonly available: number; readonly capacity: number }

/** Upstream's hard thresholds on Linux. */
export const THRESHOLDS: readonly Threshold[] = [
  { signal: "memory.available", value: { bytes: 100 * 1024 * 1024 } }, { signal: "nodefs.available", value: { fraction: 0.1 } }, { signal: "nodefs.inodesFree", value: { fraction: 0.05 } },
  { signal: "imagefs.available", value: { fraction: 0.15 } }, { signal: "imagefs.inodesFree", value: { fraction: 0.05 } },
];

/** On Windows: it needs more memory for itself, and its file systems count no inodes. */
export const WINDOWS_THRESHOLDS: readonly Threshold[] = [
  { signal: "memory.available", value: { bytes: 500 * 1024 * 1024 } }, { signal: "nodefs.available", value: { fraction: 0.1 } }, { signal: "imagefs.available", value: { fraction: 0.15 } },
];

const CONDITION: Readonly<Record<Signal, Pressure>> = {
  "allocatableMemory.available": "MemoryPressure", "containerfs.available": "DiskPressure", "containerfs.inodesFree": "DiskPressure",
  "memory.available": "MemoryPressure", "nodefs.available": "DiskPressure", "nodefs.inodesFree": "DiskPressure", "imagefs.available": "DiskPressure", "imagefs.inodesFree": "DiskPressure", "pid.available": "PIDPressure",
};
const STARVED: Readonly<Record<Signal, Starved>> = {
  "allocatableMemory.available": "memory", "containerfs.available": "ephemeral-storage", "containerfs.inodesFree": "inodes",
  "memory.available": "memory", "nodefs.available": "ephemeral-storage", "nodefs.inodesFree": "inodes", "imagefs.available": "ephemeral-storage", "imagefs.inodesFree": "inodes", "pid.available": "pids",
};

export function isSignal(name: string): name is Signal {
  return name in CONDITION;
}

export interface Shortage { readonly signal: Signal; readonly threshold: Threshold; readonly pressure: Pressure; readonly starved: Starved; readonly quantity: number; readonly available: number }

/** Memory comes first: it is gone fastest. `met`: thresholds that were crossed before, which are over only with their minimum reclaimed. */
export function shortages(observed: ReadonlyMap<Signal, Observation>, thresholds: readonly Threshold[] = THRESHOLDS, met: ReadonlySet<Threshold> = new Set()): Shortage[] {
  const isMemory = ({ signal }: Threshold): boolean => CONDITION[signal] === "MemoryPressure";
  return thresholds.toSorted((a, b) => Number(isMemory(b)) - Number(isMemory(a))).flatMap((threshold) => {
    const { signal, value, minReclaim } = threshold;
    const seen = observed.get(signal);
    if (!seen || seen.capacity === 0) return []; // a file system that counts no inodes cannot run out of them
    const amount = (of: Amount): number => ("bytes" in of ? of.bytes : Math.floor(seen.capacity * of.fraction));
    const quantity = amount(value);
    const enough = quantity + (minReclaim && met.has(threshold) ? amount(minReclaim) : 0);
    return seen.available < enough ? [{ signal, threshold, pressure: CONDITION[signal], starved: STARVED[signal], quantity, available: seen.available }] : [];
  });
}

export interface Candidate { readonly pod: Pod; readonly stats: PodStats | undefined }

/** The pods that may be ended for it, the first one first. */
export function ranked(starved: Starved, candidates: readonly Candidate[]): Candidate[] {
  const scored = candidates.filter(({ pod }) => !isCriticalPod(pod)).map((candidate) => {
    const usage = usageOf(starved, candidate.stats);
    const request = starved === "memory" || starved === "ephemeral-storage" ? podRequests(candidate.pod).get(starved)?.number() ?? 0 : 0;
    return { candidate, excess: usage - request, exceeds: usage > request, priority: candidate.pod.spec.priority ?? 0 };
  });
  return scored.toSorted((a, b) => Number(b.exceeds) - Number(a.exceeds) || a.priority - b.priority || b.excess - a.excess).map(({ candidate }) => candidate);
}

function usageOf(starved: Starved, stats: PodStats | undefined): number {
  switch (starved) {
    case "memory": return stats?.memory?.workingSetBytes ?? 0;
    case "ephemeral-storage": return stats?.["ephemeral-storage"]?.usedBytes ?? 0;
    case "pids": return stats?.process_stats?.process_count ?? 0;
    case "inodes": return [...(stats?.containers ?? []).flatMap(({ rootfs, logs }) => [rootfs?.inodesUsed ?? 0, logs?.inodesUsed ?? 0]), ...(stats?.volume ?? []).map(({ inodesUsed = 0 }) => inodesUsed)].reduce((sum, count) => sum + count, 0);
  }
}

export function evictionMessage({ starved, quantity, available }: Shortage, { pod, stats }: Candidate): string {
  const inBytes = starved === "memory" || starved === "ephemeral-storage";
  const show = (amount: number): string => quantityOf(Math.floor(amount), inBytes ? "BinarySI" : "DecimalSI").toString();
  const greedy = (stats?.containers ?? []).flatMap(({ name, memory, rootfs, logs }) => {
    const spec = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((container) => container.name === name);
    const usage = starved === "memory" ? memory?.workingSetBytes : starved === "ephemeral-storage" ? (rootfs?.usedBytes ?? 0) + (logs?.usedBytes ?? 0) : undefined;
    const request = spec?.resources?.requests?.[starved] ?? "0";
    return spec && usage !== undefined && usage > parseQuantity(request).number() ? [`Container ${name} was using ${show(usage)}, request is ${request}, has larger consumption of ${starved}. `] : [];
  });
  return `The node was low on resource: ${starved}. Threshold quantity: ${show(quantity)}, available: ${show(available)}. ${greedy.join("")}`;
}

/** Why a pod must end although the node has enough: it uses more disk than it may. */
export function localStorageExcess({ pod, stats }: Candidate): string | undefined {
  for (const { name, emptyDir } of pod.spec.volumes ?? []) {
    const used = stats?.volume?.find((volume) => volume.name === name)?.usedBytes ?? 0;
    if (emptyDir?.sizeLimit && emptyDir.medium !== "Memory" && limited(emptyDir.sizeLimit, used)) return `Usage of EmptyDir volume "${name}" exceeds the limit "${emptyDir.sizeLimit}". `;
  }
  const total = limitsStorage(pod) ? podLimits(pod).get("ephemeral-storage") : undefined; // of those containers that have one
  if (total && (stats?.["ephemeral-storage"]?.usedBytes ?? 0) > total.number()) return `Pod ephemeral local storage usage exceeds the total limit of containers ${total.toString()}. `;
  for (const container of stats?.containers ?? []) {
    const limit = pod.spec.containers.find(({ name }) => name === container.name)?.resources?.limits?.["ephemeral-storage"];
    if (limit && limited(limit, (container.rootfs?.usedBytes ?? 0) + (container.logs?.usedBytes ?? 0))) return `Container ${container.name} exceeded its local ephemeral storage limit "${limit}". `;
  }
  return undefined;
}

export function limitsStorage({ spec }: Pod): boolean {
  return [...spec.containers, ...(spec.initContainers ?? [])].some(({ resources }) => resources?.limits?.["ephemeral-storage"] !== undefined);
}

function limited(limit: string, used: number): boolean {
  const bytes = parseQuantity(limit).number();
  return bytes > 0 && used > bytes;
}
