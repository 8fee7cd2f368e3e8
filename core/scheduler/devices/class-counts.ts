/**
 * How many devices of a class a node can reach, and how many of them are taken: what scores count for an extended resource that devices stand behind.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/resource_allocation.go calculateDRAResourceTotals
 */
import type { Node } from "../../api/gen/core.v1.ts";
import type { DeviceClass } from "../../api/gen/resource.v1.ts";
import { deviceId } from "./allocated.ts";
import type { Devices } from "./claims.ts";
import { type PoolDevice, reaches } from "./pools.ts";

export interface DeviceCounts { readonly has: number; readonly used: number }

const NONE: DeviceCounts = Object.freeze({ has: 0, used: 0 });

/** Of every slice, whatever is to be said of its pool. None where the class cannot be asked about a device that the node can reach. */
export function devicesOfClass({ spec: { selectors = [] } }: Readonly<DeviceClass>, devices: Pick<Devices, "slices" | "allocated" | "selector">): (node: Readonly<Node>) => DeviceCounts {
  const all = [...devices.slices()].flatMap((slice) => (slice.spec.devices ?? []).map((device): PoolDevice => ({ device, slice })));
  const allocated = devices.allocated();
  const known = new Map<PoolDevice, boolean>();
  const isOfClass = (one: PoolDevice): boolean => {
    const { device: { allowMultipleAllocations, attributes, capacity }, slice: { spec: { driver } } } = one;
    let found = known.get(one);
    if (found === undefined) known.set(one, (found = selectors.every(({ cel }) => cel === undefined || devices.selector(cel.expression).matches({ driver, allowMultipleAllocations, attributes, capacity }))));
    return found;
  };
  return (node) => {
    try {
      const own = all.filter((one) => reaches(one.slice.spec.perDeviceNodeSelection ? one.device : one.slice.spec, node) && isOfClass(one));
      return { has: own.length, used: own.filter(({ device, slice: { spec: { driver, pool } } }) => allocated.isUsed(deviceId(driver, pool.name, device.name))).length };
    } catch { // a selector that cannot be read or fails: the filter says so
      return NONE;
    }
  };
}
