/** Topology spread constraints. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go validateTopologySpreadConstraints */
import { child, duplicate, type FieldError, forbidden, index, invalid, notSupported, required } from "../../../../api/meta/field-error.ts";
import type { TopologySpreadConstraint } from "../../../../api/gen/core.v1.ts";
import { validateLabelName, validateLabelSelector } from "../../../../api/meta/label-selector.ts";
import { oneOfOptional, positive } from "../../checks/values.ts";
import type { PodRules } from "../rules.ts";
import { validateLabelKeys } from "./affinity.ts";

const ACTIONS = ["DoNotSchedule", "ScheduleAnyway"];
const NODE_POLICIES = ["Honor", "Ignore"];

export function* validateSpread(path: string, constraints: readonly TopologySpreadConstraint[], rules: PodRules): Iterable<FieldError> {
  const pairs = constraints.map(({ topologyKey, whenUnsatisfiable }) => `${whenUnsatisfiable} ${topologyKey}`);
  const lastOf = new Map(pairs.map((pair, i) => [pair, i]));
  for (const [i, constraint] of constraints.entries()) {
    const at = index(path, i);
    const { maxSkew, topologyKey, whenUnsatisfiable, minDomains, labelSelector } = constraint;
    yield* positive(child(at, "maxSkew"), maxSkew);
    if (!topologyKey) yield required(child(at, "topologyKey"), "can not be empty");
    if (!ACTIONS.includes(whenUnsatisfiable)) yield notSupported(child(at, "whenUnsatisfiable"), whenUnsatisfiable, ACTIONS);
    if (lastOf.get(pairs[i]!)! > i)
      yield duplicate(child(at, "{topologyKey, whenUnsatisfiable}"), `{${topologyKey}, ${whenUnsatisfiable}}`);
    if (minDomains !== undefined) {
      yield* positive(child(at, "minDomains"), minDomains);
      if (whenUnsatisfiable !== "DoNotSchedule")
        yield invalid(child(at, "minDomains"), minDomains, `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`);
    }
    yield* oneOfOptional(child(at, "nodeAffinityPolicy"), constraint.nodeAffinityPolicy, NODE_POLICIES);
    yield* oneOfOptional(child(at, "nodeTaintsPolicy"), constraint.nodeTaintsPolicy, NODE_POLICIES);
    if (rules.allowRepeatedSpreadKeys) yield* validateKeysApart(child(at, "matchLabelKeys"), constraint);
    else yield* validateLabelKeys(at, constraint.matchLabelKeys ?? [], [], labelSelector);
    if (!rules.allowInvalidSpreadSelector) yield* validateLabelSelector(labelSelector, child(at, "labelSelector"));
  }
}

/** The rule from before keys were merged into the selector: it may not name them at all. */
function* validateKeysApart(path: string, { matchLabelKeys = [], labelSelector }: TopologySpreadConstraint): Iterable<FieldError> {
  if (matchLabelKeys.length > 0 && !labelSelector) yield forbidden(path, "must not be specified when labelSelector is not set");
  const named = new Set([...Object.keys(labelSelector?.matchLabels ?? {}), ...(labelSelector?.matchExpressions ?? []).map(({ key }) => key)]);
  for (const [i, key] of matchLabelKeys.entries()) {
    yield* validateLabelName(key, index(path, i));
    if (named.has(key)) yield invalid(index(path, i), key, "exists in both matchLabelKeys and labelSelector");
  }
}
