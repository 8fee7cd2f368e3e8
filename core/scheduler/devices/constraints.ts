/** Constraints over the devices of a claim: all have the same value of an attribute, or all a different one. Source: structured/internal/incubating/{allocator_incubating,constraint}.go */
import type { Device, DeviceAttribute, DeviceConstraint } from "../../api/gen/resource.v1.ts";

/** Devices are added and taken away again in reverse order. */
export interface Constraint {
  /** Whether the device may be added; if so, it is. */
  add(request: string, device: Device, driver: string): boolean;
  remove(request: string): void;
}

export function constraintOf({ requests = [], matchAttribute, distinctAttribute }: DeviceConstraint): Constraint | undefined {
  const name = matchAttribute ?? distinctAttribute;
  if (name === undefined) return undefined;
  const values: string[] = [];
  /** `request` is "name", or "name/alternative": either may be meant. */
  const concerns = (request: string): boolean => requests.length === 0 || requests.includes(request) || requests.includes(request.split("/")[0]!);
  return {
    add(request, device, driver) {
      if (!concerns(request)) return true;
      const value = valueOf(device, driver, name);
      if (value === undefined) return false;
      if (values.length > 0 && (matchAttribute !== undefined ? values[0] !== value : values.includes(value))) return false;
      values.push(value);
      return true;
    },
    remove(request) {
      if (concerns(request)) values.pop();
    },
  };
}

/** A text that is equal for equal values. An attribute without a domain has the driver's. */
function valueOf({ attributes = {} }: Device, driver: string, name: string): string | undefined {
  const slash = name.indexOf("/");
  const own: DeviceAttribute | undefined = attributes[name] ?? (slash >= 0 && name.slice(0, slash) === driver ? attributes[name.slice(slash + 1)] : undefined);
  if (!own) return undefined;
  const { string, int, bool, version } = own;
  return string !== undefined ? `s${string}` : int !== undefined ? `i${int}` : bool !== undefined ? `b${bool}` : version !== undefined ? `v${version}` : undefined;
}
