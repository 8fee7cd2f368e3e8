/**
 * Constraints over the devices of a claim: all have the same value of an attribute, or all a different one. An attribute that is a list has all its values: then all devices have one in common,
 * or no two of them have.
 *
 * Source: structured/internal/incubating/{allocator_incubating,constraint}.go; of lists, experimental
 */
import type { Device, DeviceAttribute, DeviceConstraint } from "../../api/gen/resource.v1.ts";

/** Devices are added and taken away again in reverse order. */
export interface Constraint {
  /** Whether the device may be added; if so, it is. */
  add(request: string, device: Device, driver: string): boolean;
  remove(request: string): void;
}

type Values = ReadonlySet<string>;

/** `lists`: attributes may be lists. */
export function constraintOf({ requests = [], matchAttribute, distinctAttribute }: DeviceConstraint, lists: boolean): Constraint | undefined {
  const name = matchAttribute ?? distinctAttribute;
  if (name === undefined) return undefined;
  /** Of each device its own; of those that have to match, what it has in common with those before it. */
  const added: Values[] = [];
  /** `request` is "name", or "name/alternative": either may be meant. */
  const concerns = (request: string): boolean => requests.length === 0 || requests.includes(request) || requests.includes(request.split("/")[0]!);
  return {
    add(request, device, driver) {
      if (!concerns(request)) return true;
      const values = valuesOf(device, { driver, name, lists });
      if (values.size === 0) return false;
      const kept = matchAttribute !== undefined ? values.intersection(added.at(-1) ?? values) : values;
      if (kept.size === 0 || (matchAttribute === undefined && added.some((other) => !other.isDisjointFrom(values)))) return false;
      added.push(kept);
      return true;
    },
    remove(request) {
      if (concerns(request)) added.pop();
    },
  };
}

/** Texts that are equal for equal values. An attribute without a domain has the driver's. */
function valuesOf({ attributes = {} }: Device, { driver, name, lists }: { readonly driver: string; readonly name: string; readonly lists: boolean }): Values {
  const slash = name.indexOf("/");
  const own: DeviceAttribute | undefined = attributes[name] ?? (slash >= 0 && name.slice(0, slash) === driver ? attributes[name.slice(slash + 1)] : undefined);
  const { string, int, bool, version, ints = [], bools = [], strings = [], versions = [] } = own ?? {};
  const [kind, values] = ([["i", ints], ["b", bools], ["s", strings], ["v", versions]] as const).find(([, list]) => lists && list.length > 0)
    ?? ([["s", string], ["i", int], ["b", bool], ["v", version]] as const).flatMap(([letter, value]) => (value === undefined ? [] : [[letter, [value]] as const]))[0] ?? ["", []];
  return new Set(values.map((value) => `${kind}${value}`));
}
