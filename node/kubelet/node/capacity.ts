/** What the node has and what pods may use of it. Pure. Source: kubernetes v1.36 pkg/kubelet/nodestatus/setters.go, pkg/kubelet/cm/node_container_manager_linux.go */
import type { ResourceList } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity, quantityOf, subQuantity } from "../../../core/api/meta/quantity.ts";
import type { MachineInfo } from "../../os/machine.ts";
import { type Signal, type Threshold, THRESHOLDS, WINDOWS_THRESHOLDS } from "../eviction/plan.ts";

export interface CapacityFacts {
  readonly machine: Pick<MachineInfo, "os" | "cpus" | "memoryBytes" | "hugepages">;
  readonly diskBytes: number;
  readonly maxPods: number;
  readonly reserved: Readonly<Record<string, string>>;
  /** Pods may not count on what hard eviction keeps free. Default: upstream's thresholds. */
  readonly thresholds?: readonly Threshold[] | undefined;
}

export function capacityOf({ machine, diskBytes, maxPods }: CapacityFacts): ResourceList {
  return {
    cpu: String(machine.cpus), memory: kibibytes(machine.memoryBytes), "ephemeral-storage": kibibytes(diskBytes), pods: String(maxPods),
    ...Object.fromEntries(machine.hugepages.map(({ size, bytes }) => [`hugepages-${size.replace("B", "i")}`, quantityOf(bytes, "BinarySI").toString()])),
  };
}

/** What is kept from pods, where anything is. */
export function reservationOf({ machine, reserved, ...facts }: CapacityFacts): ResourceList {
  const kept = keptOf({ machine, ...facts }, "memory.available", machine.memoryBytes);
  return { ...reserved, ...(kept > 0 || reserved["memory"] !== undefined ? { memory: String(kept + parseQuantity(reserved["memory"] ?? "0").number()) } : {}) };
}

/** Why so much cannot be kept from pods; undefined: it can. A machine that has less than eviction keeps free runs what asks for nothing. Source: kubernetes v1.36 pkg/kubelet/cm/node_container_manager_linux.go validateNodeAllocatable */
export function reservationProblem(facts: Pick<CapacityFacts, "machine" | "reserved" | "thresholds">): string | undefined {
  const { machine } = facts;
  const has: Readonly<Record<string, string>> = { cpu: String(machine.cpus), memory: kibibytes(machine.memoryBytes) };
  const kept = reservationOf({ ...facts, diskBytes: 0, maxPods: 0 });
  const wrong = Object.entries(has).filter(([name, capacity]) => facts.reserved[name] !== undefined && subQuantity(parseQuantity(capacity), parseQuantity(kept[name] ?? "0")).sign < 0);
  return wrong.length === 0 ? undefined : `invalid Node Allocatable configuration. ${wrong.map(([name, capacity]) => `Resource ${JSON.stringify(name)} has a reservation of ${parseQuantity(kept[name]!).toString()} but capacity of ${capacity}. Expected capacity >= reservation.`).join(" ")}`;
}

/** By hard eviction. */
function keptOf({ machine, thresholds: given }: Pick<CapacityFacts, "machine" | "thresholds">, signal: Signal, capacity: number): number {
  const thresholds = given === undefined || given === THRESHOLDS ? (machine.os === "windows" ? WINDOWS_THRESHOLDS : THRESHOLDS) : given;
  const value = thresholds.find((one) => one.signal === signal && one.graceMs === undefined)?.value;
  return value === undefined ? 0 : "bytes" in value ? value.bytes : Math.floor(capacity * value.fraction);
}

export function allocatableOf(facts: CapacityFacts): ResourceList {
  const kept: Readonly<Record<string, number>> = { memory: keptOf(facts, "memory.available", facts.machine.memoryBytes), "ephemeral-storage": keptOf(facts, "nodefs.available", facts.diskBytes) };
  const hugepages = facts.machine.hugepages.reduce((sum, { bytes }) => sum + bytes, 0);
  return Object.fromEntries(Object.entries(capacityOf(facts)).map(([name, text]) => {
    const left = subQuantity(subQuantity(parseQuantity(text), parseQuantity(facts.reserved[name] ?? "0")), quantityOf((kept[name] ?? 0) + (name === "memory" ? hugepages : 0)));
    return [name, left.sign < 0 ? "0" : left.toString()];
  }));
}

/** What all pods together may use. `pids`: processes and threads; undefined where the machine does not say how many there may be. */
export interface PodsShare { readonly memoryBytes: number; readonly milliCpu: number; readonly pids: number | undefined }

/** What the machine has without what is reserved, and with what eviction keeps free. `pidsMax`: of the machine, 0 if that is not known. */
export function podsShareOf({ machine, reserved, pidsMax }: Pick<CapacityFacts, "reserved"> & { readonly machine: Pick<MachineInfo, "cpus" | "memoryBytes">; readonly pidsMax: number }): PodsShare {
  const kept = (name: string): ReturnType<typeof parseQuantity> => parseQuantity(reserved[name] ?? "0");
  return {
    memoryBytes: Math.max(0, machine.memoryBytes - kept("memory").number()), milliCpu: Math.max(0, machine.cpus * 1000 - kept("cpu").milliNumber()),
    pids: pidsMax > 0 ? Math.max(0, pidsMax - kept("pid").number()) : undefined,
  };
}

/** In the form the API server keeps, or each status would look new. */
function kibibytes(bytes: number): string {
  return quantityOf(Math.floor(bytes / 1024) * 1024, "BinarySI").toString();
}
