/**
 * PodDisruptionBudget (policy/v1): how many of some pods may be missing when somebody has a choice.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/pod-disruption-budget-v1/
 * Source: kubernetes v1.36 pkg/registry/policy/poddisruptionbudget/strategy.go, pkg/apis/policy/{validation/validation,v1/conversion,helpers}.go
 */
import type { PodDisruptionBudget, PodDisruptionBudgetSpec } from "../../api/gen/policy.v1.ts";
import { child, type FieldError, invalid } from "../../api/meta/field-error.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { atMost100Percent, countOrPercent } from "../apps/rollout.ts";
import { validateCommonConditions } from "../core/checks/conditions.ts";
import { nonNegative, oneOfOptional } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";

/** By which v1beta1 told an empty selector that matches nothing from one that matches all. */
const EMPTY_SELECTOR_LABEL = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

export const podDisruptionBudgets = defineResource<PodDisruptionBudget>({
  group: "policy", version: "v1", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets",
  unconditionalUpdate: false,
  anyMeta: () => true, // upstream looks no closer, and only where nothing else is wrong
  defaults({ spec }) { stripEmptySelectorLabel(spec); },
  prepareForCreate(budget) { budget.status = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }; },
  validate: ({ spec }, old) => validateSpec("spec", spec, old?.spec),
  subresources: {
    status: statusPart<PodDisruptionBudget>({
      *validate({ status }) {
        yield* validateCommonConditions("status.conditions", status?.conditions);
        for (const field of ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] as const) yield* nonNegative(child("status", field), status?.[field]);
      },
    }),
  },
});

/** Unless it is all that the selector says of the matter. */
function stripEmptySelectorLabel(spec: PodDisruptionBudgetSpec): void {
  const { matchExpressions = [], matchLabels } = spec.selector ?? {};
  const rest = matchExpressions.filter(({ key }) => key !== EMPTY_SELECTOR_LABEL);
  const alone = matchExpressions.length === 1 && matchExpressions[0]!.operator === "Exists" && Object.keys(matchLabels ?? {}).length === 0;
  if (rest.length === matchExpressions.length || alone) return;
  spec.selector = { ...spec.selector };
  if (rest.length > 0) spec.selector.matchExpressions = rest;
  else delete spec.selector.matchExpressions;
}

function* validateSpec(path: string, spec: Readonly<PodDisruptionBudgetSpec>, old: Readonly<PodDisruptionBudgetSpec> | undefined): Iterable<FieldError> {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy } = spec;
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    const shown = { MinAvailable: minAvailable, Selector: selector ?? null, MaxUnavailable: maxUnavailable, UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy ?? null };
    yield invalid(path, shown, "minAvailable and maxUnavailable cannot be both set");
  }
  for (const field of ["minAvailable", "maxUnavailable"] as const) {
    const value = spec[field];
    if (value === undefined) continue;
    yield* countOrPercent(child(path, field), value);
    yield* atMost100Percent(child(path, field), value);
  }
  const allowInvalidValues = old !== undefined && validateLabelSelector(old.selector, "").length > 0;
  yield* validateLabelSelector(selector, child(path, "selector"), { allowInvalidValues });
  yield* oneOfOptional(child(path, "unhealthyPodEvictionPolicy"), unhealthyPodEvictionPolicy, ["AlwaysAllow", "IfHealthyBudget"]);
}
