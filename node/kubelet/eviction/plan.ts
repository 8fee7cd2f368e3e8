/**
 * Which shortage the node has, and what can be done about it before a pod has to end. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/helpers.go
 */
import type { Pressure } from "../node/pressure.ts";
import type { DiskLayout } from "../stats/disk-usage.ts";

export type Signal = "memory.available" | "allocatableMemory.available" | "containerfs.available" | "containerfs.inodesFree" | "nodefs.available" | "nodefs.inodesFree" | "imagefs.available" | "imagefs.inodesFree" | "pid.available";
export type Starved = "memory" | "ephemeral-storage" | "pids" | "inodes";

/** Bytes (or a count), or a part of the capacity. `isDecimal`: it was written in powers of ten, and is shown so. */
export type Amount = { readonly bytes: number; readonly isDecimal?: true } | { readonly fraction: number };

/** With upstream's precision, which shows in what a node has to give: of 62725623808 bytes a tenth is 6272562474. */
export function percent(number: number): Amount {
  return { fraction: Math.fround(Math.fround(number) / 100) };
}

export interface Threshold {
  readonly signal: Signal;
  readonly value: Amount;
  /** A soft one: it must have been crossed for this long. With 0 it ends pods as a hard one does. */
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
  { signal: "memory.available", value: { bytes: 100 * 1024 * 1024 } }, { signal: "nodefs.available", value: percent(10) }, { signal: "nodefs.inodesFree", value: percent(5) },
  { signal: "imagefs.available", value: percent(15) }, { signal: "imagefs.inodesFree", value: percent(5) },
];

/** On Windows: it needs more memory for itself, and its file systems count no inodes. */
export const WINDOWS_THRESHOLDS: readonly Threshold[] = [
  { signal: "memory.available", value: { bytes: 500 * 1024 * 1024 } }, { signal: "nodefs.available", value: percent(10) }, { signal: "imagefs.available", value: percent(15) },
];

/** What is looked at of what is set: what all pods together have of memory, too; containerfs is one of the others' file systems, with their thresholds. */
export function effectiveThresholds(set: readonly Threshold[], os: "linux" | "windows"): { readonly thresholds: readonly Threshold[]; readonly ignored: readonly Threshold[] } {
  const given = set === THRESHOLDS && os === "windows" ? WINDOWS_THRESHOLDS : set;
  const ignored = given.filter(({ signal }) => signal.startsWith("containerfs."));
  const taken = given.filter((threshold) => !ignored.includes(threshold));
  const memory = taken.filter(({ signal, graceMs }) => signal === "memory.available" && !graceMs);
  return { thresholds: [...taken, ...memory.map((threshold) => ({ ...threshold, signal: "allocatableMemory.available" as const }))], ignored };
}

const CONDITION: Readonly<Record<Signal, Pressure>> = {
  "allocatableMemory.available": "MemoryPressure", "containerfs.available": "DiskPressure", "containerfs.inodesFree": "DiskPressure",
  "memory.available": "MemoryPressure", "nodefs.available": "DiskPressure", "nodefs.inodesFree": "DiskPressure", "imagefs.available": "DiskPressure", "imagefs.inodesFree": "DiskPressure", "pid.available": "PIDPressure",
};
const STARVED: Readonly<Record<Signal, Starved>> = {
  "allocatableMemory.available": "memory", "containerfs.available": "ephemeral-storage", "containerfs.inodesFree": "inodes",
  "memory.available": "memory", "nodefs.available": "ephemeral-storage", "nodefs.inodesFree": "inodes", "imagefs.available": "ephemeral-storage", "imagefs.inodesFree": "inodes", "pid.available": "pids",
};

export function isSignal(name: string): name is Signal {
  return Object.hasOwn(CONDITION, name);
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

/** What the kubelet may take away first. */
export type Reclaim = "containers" | "images";

/** On the disk that is full, as it is laid out: dead containers lie where those that run write, images where images lie. */
export function reclaims({ signal, pressure }: Pick<Shortage, "signal" | "pressure">, layout: DiskLayout): readonly Reclaim[] {
  if (pressure !== "DiskPressure") return [];
  const isImageDisk = signal.startsWith("imagefs.");
  switch (layout) {
    case "one": return ["containers", "images"];
    case "images and containers apart": return isImageDisk ? ["containers", "images"] : [];
    case "images apart": return isImageDisk ? ["images"] : ["containers"];
  }
}
