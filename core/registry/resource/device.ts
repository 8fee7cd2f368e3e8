/** A device, as its driver describes it. Source: kubernetes v1.36 pkg/apis/resource/validation/validation.go validateDevice */
import { child, type FieldError, forbidden, index, invalid, notSupported, required, tooLong } from "../../api/meta/field-error.ts";
import type { CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceAttribute, DeviceCapacity, DeviceTaint } from "../../api/gen/resource.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { validateLabelName } from "../../api/meta/label-selector.ts";
import { labelValue } from "../../api/meta/names.ts";
import { addQuantity, compareQuantities, parseQuantity } from "../../api/meta/quantity.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { isDns1123Label, isDns1123Subdomain, problems } from "../core/checks/values.ts";
import { validateNodeSelector } from "../core/pod/validation/affinity.ts";
import { bindingConditions } from "./binding-conditions.ts";
import { TAINT_EFFECTS } from "./claim-spec.ts";
import { counters, keyPath, listOf, qualifiedDeviceName } from "./names.ts";

const ATTRIBUTES_AND_CAPACITIES_MAX = 32;
const ATTRIBUTE_VALUES_MAX = 48;
const VALUE_BYTES_MAX = 64;
const TAINTS_MAX = 16;
const CONSUMED_SETS_MAX = 2;
const COUNTERS_MAX = 32;
const VALID_VALUES_MAX = 10;
const LISTS = ["bools", "ints", "strings", "versions"] as const;
const NUMBER = "(0|[1-9]\\d*)";
const PRERELEASE = "(0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)";
const BUILD = "[0-9a-zA-Z-]+";
const SEMVER = new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}(-${PRERELEASE}(\\.${PRERELEASE})*)?(\\+${BUILD}(\\.${BUILD})*)?$`);
const ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

export function* validateDevice(path: string, device: Device, { old, placesItself }: { readonly old: Device | undefined; readonly placesItself: boolean }): Iterable<FieldError> {
  const { attributes = {}, capacity = {}, taints } = device;
  yield* isDns1123Label(child(path, "name"), device.name);
  const count = Object.keys(attributes).length + Object.keys(capacity).length;
  if (count > ATTRIBUTES_AND_CAPACITIES_MAX) yield invalid(path, count, `the total number of attributes and capacities must not exceed ${ATTRIBUTES_AND_CAPACITIES_MAX}`);
  const values = Object.values(attributes).reduce((sum, attribute) => sum + (LISTS.reduce((all, list) => all + (attribute[list]?.length ?? 0), 0) || 1), 0);
  if (values > ATTRIBUTE_VALUES_MAX) yield invalid(path, values, `the total number of attribute values must not exceed ${ATTRIBUTE_VALUES_MAX}`);
  for (const [name, attribute] of Object.entries(attributes)) {
    yield* qualifiedDeviceName(child(path, "attributes"), name);
    yield* validateAttribute(keyPath(child(path, "attributes"), name), attribute);
  }
  for (const [name, given] of Object.entries(capacity)) {
    yield* qualifiedDeviceName(child(path, "capacity"), name);
    yield* validateCapacity(child(keyPath(child(path, "capacity"), name), "requestPolicy"), given, device.allowMultipleAllocations === true);
  }
  if (!old || !semanticEqual(old.taints, taints)) yield* listOf(child(path, "taints"), taints, { max: TAINTS_MAX, check: (at, taint) => validateTaint(at, taint) });
  yield* listOf(child(path, "consumesCounters"), device.consumesCounters, {
    max: CONSUMED_SETS_MAX, keyOf: ({ counterSet }) => counterSet,
    *check(at, { counterSet, counters: given }) {
      if (!counterSet) yield required(child(at, "counterSet"));
      else yield* isDns1123Label(child(at, "counterSet"), counterSet);
      yield* counters(child(at, "counters"), given, COUNTERS_MAX);
    },
  });
  yield* validatePlace(path, device, placesItself);
  yield* bindingConditions(path, device);
}

function* validatePlace(path: string, { nodeName, nodeSelector, allNodes }: Device, placesItself: boolean): Iterable<FieldError> {
  if (!placesItself) {
    if (nodeName !== undefined || nodeSelector || allNodes !== undefined)
      yield invalid(path, undefined, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec");
    return;
  }
  const set = [...(nodeName ? ["`nodeName`"] : []), ...(nodeSelector ? ["`nodeSelector`"] : []), ...(allNodes ? ["`allNodes`"] : [])];
  if (nodeName === "") yield invalid(child(path, "nodeName"), nodeName, "must not be empty");
  else if (nodeName !== undefined) yield* isDns1123Subdomain(child(path, "nodeName"), nodeName);
  if (nodeSelector) yield* validateNodeSelector(child(path, "nodeSelector"), nodeSelector);
  if (allNodes === false) yield invalid(child(path, "allNodes"), allNodes, "must be either unset or set to true");
  if (set.length === 0) yield required(path, ONE_PLACE);
  else if (set.length > 1) yield invalid(path, `{${set.join(", ")}}`, ONE_PLACE);
}

function* validateAttribute(path: string, attribute: DeviceAttribute): Iterable<FieldError> {
  const { string, version } = attribute;
  if (string !== undefined) yield* validateText(child(path, "string"), string);
  if (version !== undefined) yield* validateVersion(child(path, "version"), version);
  for (const name of LISTS) {
    const list = attribute[name], at = child(path, name);
    if (list?.length === 0) yield invalid(at, list, "must not be empty if specified");
    if (name === "strings" || name === "versions") for (const [i, value] of (attribute[name] ?? []).entries()) yield* (name === "strings" ? validateText : validateVersion)(index(at, i), value);
  }
  const values = Object.values(attribute).filter((value) => value !== undefined).length;
  if (values !== 1) yield invalid(path, values === 0 ? "" : internalForm("io.k8s.api.resource.v1.DeviceAttribute", attribute), "exactly one value must be specified");
}

function* validateText(path: string, text: string): Iterable<FieldError> {
  if (byteLength(text) > VALUE_BYTES_MAX) yield tooLong(path, VALUE_BYTES_MAX);
}

function* validateVersion(path: string, version: string): Iterable<FieldError> {
  if (!SEMVER.test(version)) yield invalid(path, version, "must be a string compatible with semver.org spec 2.0.0");
  yield* validateText(path, version);
}

/** An effect that was stored already is let pass. */
export function* validateTaint(path: string, { key, value = "", effect }: DeviceTaint, old?: DeviceTaint): Iterable<FieldError> {
  yield* validateLabelName(key ?? "", child(path, "key"));
  if (value !== "") yield* problems(child(path, "value"), value, labelValue(value));
  if (old?.effect === effect && effect) return;
  if (!effect) yield required(child(path, "effect"));
  else if (!TAINT_EFFECTS.includes(effect)) yield notSupported(child(path, "effect"), effect, TAINT_EFFECTS);
}

function* validateCapacity(path: string, { value, requestPolicy: policy }: DeviceCapacity, isShared: boolean): Iterable<FieldError> {
  if (!policy) return;
  const values = policy.validValues ?? [];
  if (!isShared) yield forbidden(path, "allowMultipleAllocations must be true");
  else if (values.length > 0 && policy.validRange) yield forbidden(path, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`);
  else if (values.length > 0) yield* validateValues(path, policy, value);
  else if (policy.validRange) yield* validateRange(path, policy, value);
}

function* validateValues(path: string, { default: chosen, validValues = [] }: CapacityRequestPolicy, capacity: string): Iterable<FieldError> {
  const at = child(path, "validValues");
  if (!chosen) { yield required(child(path, "default"), "required when validValues is defined"); return; }
  for (const [i, value] of validValues.entries()) if (i > 0 && compareQuantities(validValues[i - 1]!, value) > 0) yield invalid(index(at, i), value, "values must be sorted in ascending order");
  yield* listOf(at, validValues, {
    max: VALID_VALUES_MAX, keyOf: (value) => String(parseQuantity(value).value()),
    *check(where, value) { if (compareQuantities(value, capacity) > 0) yield invalid(where, value, `option is larger than capacity value: ${capacity}`); },
  });
  const lookedAt = validValues.length > VALID_VALUES_MAX ? [] : validValues; // too many are not
  if (!lookedAt.some((value) => compareQuantities(value, chosen) === 0)) yield invalid(at, chosen, "default value is not valid according to the requestPolicy");
}

function* validateRange(path: string, { default: chosen, validRange }: CapacityRequestPolicy, capacity: string): Iterable<FieldError> {
  const { min, max, step }: CapacityRequestPolicyRange = validRange ?? {};
  const at = (name: string): string => child(path, "validRange", name);
  if (!chosen) { yield required(child(path, "default"), "required when validRange is defined"); return; }
  if (min === undefined) { yield required(at("min"), "required when validRange is defined"); return; }
  if (compareQuantities(min, capacity) > 0) yield invalid(at("min"), min, `min is larger than capacity value: ${capacity}`);
  if (compareQuantities(chosen, min) < 0) yield invalid(at("min"), chosen, `default is less than min: ${min}`);
  if (max !== undefined) {
    if (compareQuantities(min, max) > 0) yield invalid(at("max"), min, `min is larger than max: ${max}`);
    if (compareQuantities(max, capacity) > 0) yield invalid(at("max"), max, `max is larger than capacity value: ${capacity}`);
    if (compareQuantities(chosen, max) > 0) yield invalid(at("max"), chosen, `default is more than max: ${max}`);
  }
  if (step === undefined) return;
  const first = addQuantity(parseQuantity(min), parseQuantity(step)).toString();
  if (compareQuantities(first, capacity) > 0) yield invalid(at("step"), step, `one step ${first} is larger than capacity value: ${capacity}`);
  for (const value of [chosen, ...(max === undefined ? [] : [max])])
    if (!isMultiple(value, min, step)) yield invalid(at("step"), value, `value is not a multiple of a given step (${step}) from (${min})`);
}

/** No value is a multiple of a step of nothing. */
function isMultiple(value: string, min: string, step: string): boolean {
  const by = parseQuantity(step).value();
  return by !== 0n && (parseQuantity(value).value() - parseQuantity(min).value()) % by === 0n;
}
