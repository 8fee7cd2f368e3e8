/**
 * ResourceSlice (resource.k8s.io/v1): devices that a driver has, on a node or anywhere.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-slice-v1/
 * Source: kubernetes v1.36 pkg/registry/resource/resourceslice/strategy.go, pkg/apis/resource/validation/validation.go
 */
import { child, type FieldError, invalid, required } from "../../api/meta/field-error.ts";
import type { CounterSet, ResourcePool, ResourceSlice, ResourceSliceSpec } from "../../api/gen/resource.v1.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { immutable, isDns1123Label, isDns1123Subdomain } from "../core/checks/values.ts";
import { validateNodeSelector } from "../core/pod/validation/affinity.ts";
import { defineResource, type WriteContext } from "../generic/resource.ts";
import { keepsFieldsOf } from "../generic/switched-on.ts";
import { validateDevice } from "./device.ts";
import { counters, driverName, listOf, poolName } from "./names.ts";

const DEVICES_MAX = 128;
/** With taints, counters or attributes that are lists. */
const ADVANCED_DEVICES_MAX = 64;
const COUNTER_SETS_MAX = 8;
const COUNTERS_MAX = 32;
const LISTS = ["ints", "bools", "strings", "versions"] as const;
const ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

export const resourceSlices = defineResource<ResourceSlice>({
  group: "resource.k8s.io", version: "v1", kind: "ResourceSlice", plural: "resourceslices",

  defaults({ spec }) { // an empty list says nothing, and has no owner, unless the other one is there, too
    if (spec.sharedCounters?.length === 0 && !spec.devices) delete spec.sharedCounters;
    if (spec.devices?.length === 0 && !spec.sharedCounters) delete spec.devices;
  },
  prepareForCreate: (slice, context) => fill(slice, undefined, context),
  prepareForUpdate(next, old, context) { fill(next, old, context); },
  *validate({ spec }, old) {
    yield* validateSpec("spec", spec, old?.spec);
  },
  *warnings({ spec: { driver } }) {
    if (driver !== driver.toLowerCase()) yield `spec.driver: driver names should be lowercase; ${goQuote(driver)} contains uppercase characters`;
  },
  fields: ({ spec }) => ({ "spec.nodeName": spec.nodeName ?? "", "spec.driver": spec.driver ?? "" }),
});

/** A taint is as old as the write that brought it. Fields whose gates (DRAListTypeAttributes, DRANodeAllocatableResources) are off go. Mutates. */
function fill({ spec }: ResourceSlice, old: Readonly<ResourceSlice> | undefined, { nowMs }: WriteContext): void {
  const keepsLists = keepsFieldsOf("DRAListTypeAttributes") || (old !== undefined && hasLists(old.spec));
  for (const device of spec.devices ?? []) {
    delete device.nodeAllocatableResourceMappings;
    if (!keepsLists) for (const attribute of Object.values(device.attributes ?? {})) for (const name of LISTS) delete attribute[name];
    for (const taint of device.taints ?? []) taint.timeAdded ??= timestamp(nowMs);
  }
}

/** Whether there are attributes that are lists. */
function hasLists({ devices }: Readonly<ResourceSliceSpec>): boolean { return (devices ?? []).some(({ attributes = {} }) => Object.values(attributes).some((attribute) => LISTS.some((name) => attribute[name]))); }

function* validateSpec(path: string, spec: Readonly<ResourceSliceSpec>, old?: Readonly<ResourceSliceSpec>): Iterable<FieldError> {
  yield* driverName(child(path, "driver"), spec.driver);
  yield* validatePool(child(path, "pool"), spec.pool);
  if (old) {
    yield* immutable(child(path, "pool", "name"), spec.pool.name, old.pool.name);
    yield* immutable(child(path, "driver"), spec.driver, old.driver);
    yield* immutable(child(path, "nodeName"), spec.nodeName, old.nodeName);
  }
  yield* validatePlace(path, spec);
  if (spec.sharedCounters && spec.devices) yield invalid(path, "", "only one of `sharedCounters` or `devices` is allowed");
  const isAdvanced = (spec.devices ?? []).some(({ taints = [], consumesCounters = [] }) => taints.length + consumesCounters.length > 0) || hasLists(spec);
  yield* listOf(child(path, "devices"), spec.devices, {
    max: isAdvanced ? ADVANCED_DEVICES_MAX : DEVICES_MAX, keyOf: ({ name }) => name,
    check: (at, device) => validateDevice(at, device, { old: old?.devices?.find(({ name }) => name === device.name), placesItself: spec.perDeviceNodeSelection === true }),
  });
  yield* listOf(child(path, "sharedCounters"), spec.sharedCounters, { max: COUNTER_SETS_MAX, keyOf: ({ name }) => name, check: validateCounterSet });
}

function* validatePool(path: string, { name, resourceSliceCount = 0, generation = 0 }: ResourcePool): Iterable<FieldError> {
  yield* poolName(child(path, "name"), name);
  if (resourceSliceCount <= 0) yield invalid(child(path, "resourceSliceCount"), resourceSliceCount, "must be greater than zero");
  if (generation < 0) yield invalid(child(path, "generation"), generation, "must be greater than or equal to zero");
}

/** Where its devices can be used. */
function* validatePlace(path: string, { nodeName, nodeSelector, allNodes, perDeviceNodeSelection }: Readonly<ResourceSliceSpec>): Iterable<FieldError> {
  const set: string[] = [];
  if (nodeName === "") yield invalid(child(path, "nodeName"), nodeName, "must be either unset or set to a non-empty string");
  else if (nodeName !== undefined) {
    set.push("`nodeName`");
    yield* isDns1123Subdomain(child(path, "nodeName"), nodeName);
  }
  if (nodeSelector) {
    set.push("`nodeSelector`");
    const at = child(path, "nodeSelector");
    yield* validateNodeSelector(at, nodeSelector);
    if (nodeSelector.nodeSelectorTerms?.length !== 1)
      yield invalid(child(at, "nodeSelectorTerms"), nodeSelector.nodeSelectorTerms?.map((term) => internalForm("io.k8s.api.core.v1.NodeSelectorTerm", term)) ?? null, "must have exactly one node selector term");
  }
  for (const [name, value] of [["allNodes", allNodes], ["perDeviceNodeSelection", perDeviceNodeSelection]] as const) {
    if (value) set.push(`\`${name}\``);
    else if (value === false) yield invalid(child(path, name), value, "must be either unset or set to true");
  }
  if (set.length === 0) yield required(path, ONE_PLACE);
  else if (set.length > 1) yield invalid(path, `{${set.join(", ")}}`, `${ONE_PLACE}, but multiple fields are set`);
}

function* validateCounterSet(path: string, { name, counters: given }: CounterSet): Iterable<FieldError> {
  if (!name) yield required(child(path, "name"));
  else yield* isDns1123Label(child(path, "name"), name);
  yield* counters(child(path, "counters"), given, COUNTERS_MAX);
}
