/** On which NUMA nodes a container could have devices. Pure. Source: kubernetes v1.36 pkg/kubelet/cm/devicemanager/topology_hints.go */
import { type Hint, isIn, masks, type NodeMask, nodesIn } from "../placement/hints.ts";
import type { KnownDevice } from "./device-choice.ts";

export interface DeviceWish {
  readonly count: number;
  readonly devices: readonly KnownDevice[];
  /** The container has them already. */
  readonly had: ReadonlySet<string>;
  readonly available: ReadonlySet<string>;
  /** Of init containers of the same pod: a hint must have all of them in it. */
  readonly reusable: ReadonlySet<string>;
  /** The machine's. */
  readonly numaNodes: readonly number[];
}

/** Undefined: where they lie does not matter, or is not known. */
export function deviceHints({ count, devices, had, available, reusable, numaNodes }: DeviceWish): readonly Hint[] | undefined {
  if (devices.every((device) => device.numaNodes.length === 0)) return undefined;
  if (had.size > 0 && had.size !== count) return [];
  const [free, kept] = had.size > 0 ? [had, new Set<string>()] : [available, reusable];
  if (free.union(kept).size < count) return [];
  const nodes = [...new Set(devices.flatMap((device) => device.numaNodes))].filter((node) => numaNodes.includes(node)).toSorted((a, b) => a - b);
  const considered = nodes.length > 0 ? nodes : numaNodes;
  let least = considered.length;
  const found: NodeMask[] = [];
  for (const mask of masks(considered)) {
    const within = devices.filter((device) => device.numaNodes.some((node) => isIn(mask, node)));
    if (within.length >= count) least = Math.min(least, nodesIn(mask).length);
    const placed = devices.filter(({ id, numaNodes: at }) => kept.has(id) && at.length > 0);
    if (placed.some((device) => !within.includes(device))) continue;
    if (placed.length + within.filter(({ id }) => free.has(id)).length >= count) found.push(mask);
  }
  return found.map((mask) => ({ nodes: mask, preferred: nodesIn(mask).length === least }));
}
