/** Where a pod may, should and must not run: node and pod affinity, tolerations. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go validateAffinity, ValidateTolerations */
import { child, type FieldError, forbidden, index, invalid, notSupported, required } from "../../../../api/meta/field-error.ts";
import type {
  Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodAffinity, PodAffinityTerm, PodAntiAffinity, Toleration,
} from "../../../../api/gen/core.v1.ts";
import type { LabelSelector } from "../../../../api/gen/meta.v1.ts";
import { goQuote } from "../../../../api/meta/go-quote.ts";
import { validateLabelName, validateLabelSelector } from "../../../../api/meta/label-selector.ts";
import { dns1123Subdomain, EMPTY_MESSAGE, labelValue } from "../../../../api/meta/names.ts";
import { isCanonicalInteger } from "../../../../api/meta/tolerations.ts";
import { isDns1123Label, problems } from "../../checks/values.ts";
import type { PodRules } from "../rules.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";
export const TAINT_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

export function* validateAffinity(path: string, { nodeAffinity, podAffinity, podAntiAffinity }: Affinity, rules: PodRules): Iterable<FieldError> {
  if (nodeAffinity) {
    const at = child(path, "nodeAffinity");
    if (nodeAffinity[REQUIRED]) yield* validateNodeSelector(child(at, REQUIRED), nodeAffinity[REQUIRED], rules.allowInvalidLabelValueInNodeAffinity);
    for (const [i, { weight, preference }] of (nodeAffinity[PREFERRED] ?? []).entries()) {
      yield* validateWeight(index(child(at, PREFERRED), i), weight);
      yield* validateNodeSelectorTerm(child(index(child(at, PREFERRED), i), "preference"), preference ?? {}, true);
    }
  }
  if (podAffinity) yield* validatePodAffinity(child(path, "podAffinity"), podAffinity, rules.allowInvalidLabelValueInSelector);
  if (podAntiAffinity) yield* validatePodAffinity(child(path, "podAntiAffinity"), podAntiAffinity, rules.allowInvalidLabelValueInSelector);
}

function* validateWeight(path: string, weight: number | undefined): Iterable<FieldError> {
  if ((weight ?? 0) <= 0 || weight! > 100) yield invalid(child(path, "weight"), weight ?? 0, "must be in the range 1-100");
}

export function* validateNodeSelector(path: string, { nodeSelectorTerms }: NodeSelector, allowInvalidValues = false): Iterable<FieldError> {
  const at = child(path, "nodeSelectorTerms");
  if (!nodeSelectorTerms?.length) yield required(at, "must have at least one node selector term");
  for (const [i, term] of (nodeSelectorTerms ?? []).entries()) yield* validateNodeSelectorTerm(index(at, i), term, allowInvalidValues);
}

function* validateNodeSelectorTerm(path: string, { matchExpressions, matchFields }: NodeSelectorTerm, allowInvalidValues: boolean): Iterable<FieldError> {
  for (const [i, requirement] of (matchExpressions ?? []).entries()) yield* validateNodeRequirement(index(child(path, "matchExpressions"), i), requirement, allowInvalidValues);
  for (const [i, requirement] of (matchFields ?? []).entries()) yield* validateNodeFieldRequirement(index(child(path, "matchFields"), i), requirement);
}

function* validateNodeRequirement(path: string, { key, operator, values = [] }: NodeSelectorRequirement, allowInvalidValues: boolean): Iterable<FieldError> {
  const at = child(path, "values");
  switch (operator) {
    case "In": case "NotIn":
      if (values.length === 0) yield required(at, "must be specified when `operator` is 'In' or 'NotIn'");
      break;
    case "Exists": case "DoesNotExist":
      if (values.length > 0) yield forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
      break;
    case "Gt": case "Lt":
      if (values.length !== 1) yield required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'");
      break;
    default: yield invalid(child(path, "operator"), operator, "not a valid selector operator");
  }
  yield* validateLabelName(key, child(path, "key"));
  if (!allowInvalidValues) for (const [i, value] of values.entries()) yield* problems(index(at, i), value, labelValue(value));
}

function* validateNodeFieldRequirement(path: string, { key, operator, values = [] }: NodeSelectorRequirement): Iterable<FieldError> {
  const at = child(path, "values");
  if (operator !== "In" && operator !== "NotIn") yield invalid(child(path, "operator"), operator, "not a valid selector operator");
  else if (values.length !== 1) yield required(at, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
  if (key !== "metadata.name") yield invalid(child(path, "key"), key, "not a valid field selector key");
  else for (const [i, value] of values.entries()) yield* problems(index(at, i), value, dns1123Subdomain(value));
}

function* validatePodAffinity(path: string, affinity: PodAffinity | PodAntiAffinity, allowInvalidValues: boolean): Iterable<FieldError> {
  for (const [i, term] of (affinity[REQUIRED] ?? []).entries()) yield* validatePodAffinityTerm(index(child(path, REQUIRED), i), term, allowInvalidValues);
  for (const [i, { weight, podAffinityTerm }] of (affinity[PREFERRED] ?? []).entries()) {
    const at = index(child(path, PREFERRED), i);
    yield* validateWeight(at, weight);
    yield* validatePodAffinityTerm(child(at, "podAffinityTerm"), podAffinityTerm ?? { topologyKey: "" }, allowInvalidValues);
  }
}

function* validatePodAffinityTerm(path: string, term: PodAffinityTerm, allowInvalidValues: boolean): Iterable<FieldError> {
  yield* validateLabelSelector(term.labelSelector, child(path, "labelSelector"), { allowInvalidValues });
  yield* validateLabelSelector(term.namespaceSelector, child(path, "namespaceSelector"), { allowInvalidValues });
  for (const namespace of term.namespaces ?? []) yield* isDns1123Label(child(path, "namespace"), namespace);
  yield* validateLabelKeys(path, term.matchLabelKeys ?? [], term.mismatchLabelKeys ?? [], term.labelSelector);
  if (!term.topologyKey) yield required(child(path, "topologyKey"), "can not be empty");
  yield* validateLabelName(term.topologyKey ?? "", child(path, "topologyKey"));
}

/** Keys whose values are taken from the pod's labels. They are merged into the selector, which may therefore name them once. */
export function* validateLabelKeys(path: string, match: readonly string[], mismatch: readonly string[], selector: LabelSelector | undefined): Iterable<FieldError> {
  for (const [field, keys] of [["matchLabelKeys", match], ["mismatchLabelKeys", mismatch]] as const) {
    if (keys.length === 0) continue;
    const at = child(path, field);
    if (!selector) yield forbidden(at, "must not be specified when labelSelector is not set");
    else for (const [i, key] of keys.entries()) yield* validateLabelName(key, index(at, i));
  }
  const seen = new Set(Object.keys(selector?.matchLabels ?? {}));
  const [lastOf, mismatched] = [new Map(match.map((key, i) => [key, i])), new Set(mismatch)];
  for (const { key } of selector?.matchExpressions ?? []) {
    const at = lastOf.get(key);
    if (at !== undefined && seen.has(key)) yield invalid(index(path, at), key, "exists in both matchLabelKeys and labelSelector");
    seen.add(key);
  }
  for (const [i, key] of match.entries()) if (mismatched.has(key)) yield invalid(index(child(path, "matchLabelKeys"), i), key, "exists in both matchLabelKeys and mismatchLabelKeys");
}

export function* validateTolerations(path: string, tolerations: readonly Toleration[], allowComparison: boolean): Iterable<FieldError> {
  for (const [i, toleration] of tolerations.entries()) {
    const at = index(path, i);
    const { key, operator, effect, tolerationSeconds } = toleration;
    if (key) yield* validateLabelName(key, child(at, "key"));
    else if (operator !== "Exists")
      yield invalid(child(at, "operator"), operator ?? "", "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
    if (tolerationSeconds !== undefined && effect !== "NoExecute") yield invalid(child(at, "effect"), effect ?? "", "effect must be 'NoExecute' when `tolerationSeconds` is set");
    yield* validateTolerationValue(at, toleration, allowComparison);
    if (effect && !TAINT_EFFECTS.includes(effect)) yield notSupported(child(at, "effect"), effect, TAINT_EFFECTS);
  }
}

function* validateTolerationValue(path: string, { operator, value = "" }: Toleration, allowComparison: boolean): Iterable<FieldError> {
  const at = child(path, "operator");
  switch (operator) {
    case undefined: case "Equal": {
      const texts = labelValue(value);
      if (texts.length > 0) yield invalid(at, value, texts.join(";"));
      return;
    }
    case "Exists":
      if (value !== "") yield invalid(at, value, "value must be empty when `operator` is 'Exists'");
      return;
    case "Lt": case "Gt":
      if (!allowComparison) yield notSupported(at, operator, ["Equal", "Exists", "Lt", "Gt"]);
      else yield* validateInteger(child(path, "value"), value);
      return;
    default:
      if ((operator as string) !== "") yield notSupported(at, operator, ["Equal", "Exists"]);
  }
}

function* validateInteger(path: string, value: string): Iterable<FieldError> {
  if (!isCanonicalInteger(value)) {
    yield invalid(path, value, value === "" ? EMPTY_MESSAGE : "must be a valid decimal integer in canonical form");
    if (!/^[+-]?\d+$/.test(value)) yield invalid(path, value, `strconv.ParseInt: parsing ${goQuote(value)}: invalid syntax`);
  } else if (BigInt.asIntN(64, BigInt(value)) !== BigInt(value)) yield invalid(path, value, `strconv.ParseInt: parsing ${goQuote(value)}: value out of range`);
}
