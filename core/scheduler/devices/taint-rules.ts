/**
 * Taints that administrators give devices, by DeviceTaintRules: for the scheduler they are as those that drivers publish.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go
 */
import type { ResourceSlice } from "../../api/gen/resource.v1.ts";
import type { DeviceTaintRule } from "../../api/gen/resource.v1alpha3.ts";

type Slice = Readonly<ResourceSlice>;
type Rule = Readonly<DeviceTaintRule>;

/** Slices whose devices have the rules' taints after their own. Those that no rule is about are the same objects. */
export function withTaintsOf(rules: readonly Rule[], slices: Iterable<Slice>): Iterable<Slice> {
  return rules.length === 0 ? slices : Iterator.from(slices).map((slice) => tainted(rules, slice));
}

function tainted(rules: readonly Rule[], slice: Slice): Slice {
  const about = rules.filter((rule) => isAbout(rule, slice));
  if (about.length === 0) return slice;
  const devices = (slice.spec.devices ?? []).map((device) => {
    const taints = about.flatMap(({ spec: { deviceSelector, taint } }) => ((deviceSelector?.device ?? device.name) === device.name && taint ? [taint] : []));
    return taints.length === 0 ? device : { ...device, taints: [...(device.taints ?? []), ...taints] };
  });
  return { ...slice, spec: { ...slice.spec, devices } };
}

/** Without a selector it is about all devices there are. */
export function isAbout({ spec: { deviceSelector: { driver, pool, device } = {} } }: Rule, { spec }: Slice): boolean {
  return (driver ?? spec.driver) === spec.driver && (pool ?? spec.pool.name) === spec.pool.name && (device === undefined || (spec.devices ?? []).some(({ name }) => name === device));
}
