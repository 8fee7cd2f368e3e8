/**
 * Role and ClusterRole (rbac.authorization.k8s.io/v1): what may be done.
 *
 * Whether the writer may give away what a role gives is for authorization; here only the form is looked at.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/cluster-role-v1/
 * Source: kubernetes v1.36 pkg/registry/rbac/{role,clusterrole}/strategy.go, pkg/apis/rbac/validation/validation.go
 */
import { child, type FieldError, index, invalid, required } from "../../api/meta/field-error.ts";
import type { LabelSelector } from "../../api/gen/meta.v1.ts";
import type { ClusterRole, PolicyRule, Role } from "../../api/gen/rbac.v1.ts";
import { labelSelector, validateLabelSelector } from "../../api/meta/label-selector.ts";
import { pathSegmentName } from "../../api/meta/names.ts";
import { defineResource } from "../generic/resource.ts";

const GROUP = { group: "rbac.authorization.k8s.io", version: "v1" };
const TRAITS = { createOnUpdate: true, generation: false as const, updateOrder: "change last" as const, validateName: pathSegmentName };

export const roles = defineResource<Role>({
  ...GROUP, kind: "Role", plural: "roles", ...TRAITS,
  validate: ({ rules }) => validateRules(rules ?? [], true),
});

export const clusterRoles = defineResource<ClusterRole>({
  ...GROUP, kind: "ClusterRole", plural: "clusterroles", ...TRAITS,
  *validate({ rules, aggregationRule }, old) {
    yield* validateRules(rules ?? [], false);
    if (!aggregationRule) return;
    const path = "aggregationRule.clusterRoleSelectors";
    const allowInvalidValues = (old?.aggregationRule?.clusterRoleSelectors ?? []).some((selector) => validateLabelSelector(selector, "").length > 0);
    const selectors = aggregationRule.clusterRoleSelectors ?? [];
    if (selectors.length === 0) yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil");
    for (const [i, selector] of selectors.entries()) {
      const at = index(path, i);
      yield* validateLabelSelector(selector, at, { allowInvalidValues });
      if (!isReadable(selector)) yield invalid(at, null, "invalid label selector.");
    }
  },
});

function isReadable(selector: LabelSelector): boolean {
  try {
    labelSelector(selector);
    return true;
  } catch {
    return false; // each fault is told already
  }
}

function* validateRules(rules: readonly PolicyRule[], isNamespaced: boolean): Iterable<FieldError> {
  for (const [i, rule] of rules.entries()) yield* validateRule(index("rules", i), rule, isNamespaced);
}

function* validateRule(path: string, { verbs, nonResourceURLs = [], apiGroups = [], resources = [], resourceNames = [] }: PolicyRule, isNamespaced: boolean): Iterable<FieldError> {
  if (!verbs?.length) yield required(child(path, "verbs"), "verbs must contain at least one value");
  if (nonResourceURLs.length > 0) {
    const at = child(path, "nonResourceURLs");
    if (isNamespaced) yield invalid(at, nonResourceURLs, "namespaced rules cannot apply to non-resource URLs");
    if (apiGroups.length + resources.length + resourceNames.length > 0) yield invalid(at, nonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs");
    return;
  }
  if (apiGroups.length === 0) yield required(child(path, "apiGroups"), "resource rules must supply at least one api group");
  if (resources.length === 0) yield required(child(path, "resources"), "resource rules must supply at least one resource");
}
