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
  const places = placesOf(devices, free, kept);
  let least = considered.length;
  const found: NodeMask[] = [];
  for (const mask of masks(considered)) {
    const within = places.filter(({ numaNodes: at }) => at.some((node) => isIn(mask, node)));
    const sum = (what: "all" | "free" | "kept", of = within): number => of.reduce((total, place) => total + place[what], 0);
    if (sum("all") >= count) least = Math.min(least, nodesIn(mask).length);
    const placed = sum("kept", places.filter(({ numaNodes: at }) => at.length > 0));
    if (placed === sum("kept") && placed + sum("free") >= count) found.push(mask);
  }
  return found.map((mask) => ({ nodes: mask, preferred: nodesIn(mask).length === least }));
}

/** Devices that lie on the same nodes, counted. */
interface Place { readonly numaNodes: readonly number[]; all: number; free: number; kept: number }

/** What is asked of each of up to 256 sets of nodes is asked of these, not of a hundred thousand devices. */
function placesOf(devices: readonly KnownDevice[], free: ReadonlySet<string>, kept: ReadonlySet<string>): readonly Place[] {
  const places = new Map<string, Place>();
  for (const { id, numaNodes } of devices) {
    const at = numaNodes.join();
    const place = places.get(at) ?? { numaNodes, all: 0, free: 0, kept: 0 };
    places.set(at, place);
    place.all++;
    if (free.has(id)) place.free++;
    if (kept.has(id)) place.kept++;
  }
  return [...places.values()];
}
