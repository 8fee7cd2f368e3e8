/**
 * Which devices are taken, and how much of those that several claims may share. Made from the allocations of claims; one can be added on top while an
 * allocation is being looked for.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/dynamic-resource-allocation/structured/internal/allocatedstate.go
 */
import type { AllocationResult } from "../../api/gen/resource.v1.ts";
import { addQuantity, parseQuantity, type Quantity } from "../../api/meta/quantity.ts";

/** "driver/pool/device": pools have slashes, drivers and devices have none. */
export type DeviceId = string;

export function deviceId(driver: string, pool: string, device: string): DeviceId {
  return `${driver}/${pool}/${device}`;
}

export type Consumed = ReadonlyMap<string, Quantity>;

export class Allocated {
  /** As a whole. */
  readonly devices = new Set<DeviceId>();
  /** In shares. */
  readonly shared = new Map<DeviceId, Map<string, Quantity>>();

  add({ devices }: AllocationResult): void {
    for (const { driver, pool, device, adminAccess, shareID, consumedCapacity } of devices?.results ?? []) {
      if (adminAccess) continue; // looks on, and takes nothing
      const id = deviceId(driver, pool, device);
      if (shareID === undefined) {
        this.devices.add(id);
        continue;
      }
      const sums = this.shared.get(id) ?? new Map<string, Quantity>();
      for (const [name, amount] of Object.entries(consumedCapacity ?? {})) addTo(sums, name, parseQuantity(amount));
      this.shared.set(id, sums);
    }
  }

  isUsed(id: DeviceId): boolean {
    return this.devices.has(id) || this.shared.has(id);
  }
}

export function addTo(sums: Map<string, Quantity>, name: string, amount: Quantity): void {
  const before = sums.get(name);
  sums.set(name, before ? addQuantity(before, amount) : amount);
}
