/**
 * What there is of everything that a node can run short of, now.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/helpers.go (makeSignalObservations)
 */
import { processCount } from "../../os/machine.ts";
import type { Stats } from "../stats/stats.ts";
import type { Observation, Signal } from "./plan.ts";

interface Deps {
  readonly stats: Pick<Stats, "memory" | "nodeDisk" | "imageDisk">;
  readonly memoryBytes: number;
  /** What all pods together may still have; undefined: that is not limited. */
  readonly podsMemory: () => Observation | undefined;
}

export async function observeSignals({ stats, memoryBytes, podsMemory }: Deps, signal: AbortSignal): Promise<ReadonlyMap<Signal, Observation>> {
  const [node, images] = await Promise.all([stats.nodeDisk(), stats.imageDisk(signal)]);
  const { current: processes, max } = processCount();
  return new Map<Signal, Observation>([
    ["memory.available", { available: stats.memory().availableBytes, capacity: memoryBytes }],
    ["allocatableMemory.available", podsMemory() ?? { available: 0, capacity: 0 }],
    ["nodefs.available", { available: node.availableBytes, capacity: node.capacityBytes }],
    ["nodefs.inodesFree", { available: node.inodesFree, capacity: node.inodes }],
    ["imagefs.available", { available: images.availableBytes, capacity: images.capacityBytes }],
    ["imagefs.inodesFree", { available: images.inodesFree, capacity: images.inodes }],
    ["pid.available", { available: max - processes, capacity: max }],
  ]);
}
