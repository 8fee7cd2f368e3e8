/** LimitRange (v1): how much each pod, container or claim may ask for, and what it gets if it does not ask. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateLimitRange */
import { child, duplicate, type FieldError, forbidden, index, invalid, key, required } from "../../api/meta/field-error.ts";
import type { LimitRange, LimitRangeItem } from "../../api/gen/core.v1.ts";
import { qualifiedName } from "../../api/meta/names.ts";
import { compareQuantities, parseQuantity, quotient } from "../../api/meta/quantity.ts";
import { defineResource } from "../generic/resource.ts";
import { containerResourceName, isOvercommitAllowed, resourceName, roundResourceList } from "./checks/resources.ts";
import { problems } from "./checks/values.ts";

const LISTS = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] as const;

export const limitRanges = defineResource<LimitRange>({
  group: "", version: "v1", kind: "LimitRange", plural: "limitranges",
  generation: false,
  createOnUpdate: true,

  defaults(range) {
    for (const item of (range.spec ??= { limits: [] }).limits ?? []) {
      for (const list of LISTS) roundResourceList(item[list]);
      if (item.type !== "Container") continue;
      const defaults = { ...item.max, ...item.default };
      const requests = { ...item.min, ...defaults, ...item.defaultRequest };
      if (Object.keys(defaults).length > 0) item.default = defaults;
      if (Object.keys(requests).length > 0) item.defaultRequest = requests;
    }
  },
  prepareForCreate(range, { uuid }) { range.metadata.name ||= uuid(); },
  *validate({ spec }) {
    const types = new Set<string>();
    for (const [i, item] of (spec.limits ?? []).entries()) {
      const path = index("spec.limits", i);
      yield* validateType(child(path, "type"), item.type);
      if (types.has(item.type)) yield duplicate(child(path, "type"), item.type);
      types.add(item.type);
      yield* validateItem(path, item);
    }
  },
});

function* validateType(path: string, type: string): Iterable<FieldError> {
  const wrong = qualifiedName(type);
  if (wrong.length > 0) yield* problems(path, type, wrong);
  else if (!type.includes("/") && !["Pod", "Container", "PersistentVolumeClaim"].includes(type)) yield invalid(path, type, "must be a standard limit type or fully qualified");
}

function* validateItem(path: string, item: LimitRangeItem): Iterable<FieldError> {
  const isPod = item.type === "Pod";
  const checkName = isPod || item.type === "Container" ? containerResourceName : resourceName;
  const names = new Set<string>();
  for (const list of LISTS) {
    if (list === "maxLimitRequestRatio" && item.type === "PersistentVolumeClaim" && item.min?.["storage"] === undefined && item.max?.["storage"] === undefined)
      yield required(child(path, "limits"), "either minimum or maximum storage value is required, but neither was provided");
    const entries = Object.keys(item[list] ?? {});
    if (isPod && (list === "default" || list === "defaultRequest")) {
      if (entries.length > 0) yield forbidden(child(path, list), "may not be specified when `type` is 'Pod'");
      continue;
    }
    for (const name of entries) {
      yield* checkName(key(child(path, list), name), name);
      names.add(name);
    }
  }
  for (const name of names) yield* validateAmounts(path, item, name, isPod);
}

/** Which of two amounts may not be greater, and what is said when it is. */
function* validateAmounts(path: string, item: LimitRangeItem, name: string, isPod: boolean): Iterable<FieldError> {
  const at = (list: string): string => key(child(path, list), name);
  const [min, max] = [item.min?.[name], item.max?.[name]];
  const [limit, request] = isPod ? [] : [item.default?.[name], item.defaultRequest?.[name]];
  const greater = (a: string | undefined, b: string | undefined): boolean => a !== undefined && b !== undefined && compareQuantities(a, b) > 0;
  if (greater(min, max)) yield invalid(at("min"), min, `min value ${min} is greater than max value ${max}`);
  if (greater(min, request)) yield invalid(at("defaultRequest"), request, `min value ${min} is greater than default request value ${request}`);
  if (greater(request, max)) yield invalid(at("defaultRequest"), request, `default request value ${request} is greater than max value ${max}`);
  if (greater(request, limit)) yield invalid(at("defaultRequest"), request, `default request value ${request} is greater than default limit value ${limit}`);
  if (greater(min, limit)) yield invalid(at("default"), min, `min value ${min} is greater than default value ${limit}`);
  if (greater(limit, max)) yield invalid(at("default"), max, `default value ${limit} is greater than max value ${max}`);
  const ratio = item.maxLimitRequestRatio?.[name];
  if (ratio !== undefined) {
    if (compareQuantities(ratio, "1") < 0) yield invalid(at("maxLimitRequestRatio"), ratio, `ratio ${ratio} is less than 1`);
    if (min !== undefined && max !== undefined) {
      const possible = quotient(parseQuantity(max), parseQuantity(min));
      if (parseQuantity(ratio).milliNumber() / 1000 > possible) yield invalid(at("maxLimitRequestRatio"), ratio, `ratio ${ratio} is greater than max/min = ${possible.toFixed(6)}`);
    }
  }
  if (!isOvercommitAllowed(name) && limit !== undefined && request !== undefined && compareQuantities(limit, request) !== 0)
    yield invalid(at("defaultRequest"), request, `default value ${limit} must equal to defaultRequest value ${request} in ${name}`);
}
