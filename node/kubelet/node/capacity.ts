/** What the node has and what pods may use of it. Pure. Source: kubernetes v1.36 pkg/kubelet/nodestatus/setters.go, pkg/kubelet/cm/node_container_manager_linux.go */
import type { ResourceList } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity, quantityOf, subQuantity } from "../../../core/api/meta/quantity.ts";
import type { MachineInfo } from "../../os/machine.ts";

/** Upstream's hard eviction thresholds: pods may not count on the last of it. */
export const EVICTION_HARD = { memoryAvailableBytesWindows: 500 * 1024 * 1024, memoryAvailableBytes: 100 * 1024 * 1024, nodefsAvailableFraction: 0.1, imagefsAvailableFraction: 0.15, nodefsInodesFreeFraction: 0.05, imagefsInodesFreeFraction: 0.05 };

export interface CapacityFacts {
  readonly machine: Pick<MachineInfo, "os" | "cpus" | "memoryBytes" | "hugepages">;
  readonly diskBytes: number;
  readonly maxPods: number;
  readonly reserved: Readonly<Record<string, string>>;
}

export function capacityOf({ machine, diskBytes, maxPods }: CapacityFacts): ResourceList {
  return {
    cpu: String(machine.cpus), memory: kibibytes(machine.memoryBytes), "ephemeral-storage": kibibytes(diskBytes), pods: String(maxPods),
    ...Object.fromEntries(machine.hugepages.map(({ size, bytes }) => [`hugepages-${size.replace("B", "i")}`, quantityOf(bytes, "BinarySI").toString()])),
  };
}

export function allocatableOf(facts: CapacityFacts): ResourceList {
  const kept: Readonly<Record<string, number>> = { memory: facts.machine.os === "windows" ? EVICTION_HARD.memoryAvailableBytesWindows : EVICTION_HARD.memoryAvailableBytes, "ephemeral-storage": Math.floor(facts.diskBytes * EVICTION_HARD.nodefsAvailableFraction) };
  const hugepages = facts.machine.hugepages.reduce((sum, { bytes }) => sum + bytes, 0);
  return Object.fromEntries(Object.entries(capacityOf(facts)).map(([name, text]) => {
    const left = subQuantity(subQuantity(parseQuantity(text), parseQuantity(facts.reserved[name] ?? "0")), quantityOf((kept[name] ?? 0) + (name === "memory" ? hugepages : 0)));
    if (left.sign < 0) return [name, "0"];
    return [name, name === "memory" ? kibibytes(left.number()) : name === "ephemeral-storage" ? String(left.number()) : left.toString()];
  }));
}

/** In the form the API server keeps, or each status would look new. */
function kibibytes(bytes: number): string {
  return quantityOf(Math.floor(bytes / 1024) * 1024, "BinarySI").toString();
}
