/** ResourceQuota (v1): how much a namespace may use in sum. Source: kubernetes v1.36 pkg/registry/core/resourcequota/strategy.go, pkg/apis/core/validation/validation.go ValidateResourceQuota */
import { child, type FieldError, FIELD_IMMUTABLE, invalid, required } from "../../api/meta/field-error.ts";
import type { ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement } from "../../api/gen/core.v1.ts";
import { compareQuantities } from "../../api/meta/quantity.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { defineResource } from "../generic/resource.ts";
import { isStandardQuotaResource, quotaResourceName, resourceAmounts, roundResourceList } from "./checks/resources.ts";
import { statusPart } from "./status-part.ts";

const POD_SCOPES = ["Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"];
const SCOPES = [...POD_SCOPES, "BestEffort", "VolumeAttributesClass"];
const SCOPES_WITHOUT_VALUES = ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];
const EXCLUSIVE: readonly (readonly [string, string])[] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
const POD_RESOURCES = ["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

export const resourceQuotas = defineResource<ResourceQuota>({
  group: "", version: "v1", kind: "ResourceQuota", plural: "resourcequotas",
  generation: false,

  defaults(quota) { for (const list of [(quota.spec ??= {}).hard, quota.status?.hard, quota.status?.used]) roundResourceList(list); },
  prepareForCreate(quota) { quota.status = {}; },
  *validate({ spec }) {
    yield* resourceAmounts("spec.hard", spec.hard, quotaResourceName);
    yield* validateScopes(spec);
    yield* validateSelector(spec);
  },
  *validateUpdate(next, old) {
    const [before, after] = [new Set<string>(old.spec.scopes), new Set<string>(next.spec.scopes)];
    if (before.size !== after.size || [...before].some((scope) => !after.has(scope))) yield invalid("spec.scopes", next.spec.scopes, FIELD_IMMUTABLE);
  },
  *warnings({ spec }, old) {
    for (const name of old ? [] : ["cpu", "memory", "storage", "ephemeral-storage"]) {
      const hard = spec.hard ?? {};
      const requests = hard[`requests.${name}`] !== undefined || (name !== "cpu" && name !== "memory") ? `requests.${name}` : name;
      const [request, limit] = [hard[requests], hard[`limits.${name}`]];
      if (request !== undefined && limit !== undefined && compareQuantities(request, limit) > 0)
        yield `ResourceQuota ${requests} (${request}) should be less than limits.${name} (${limit})`;
    }
  },
  subresources: {
    status: statusPart<ResourceQuota>({
      *validate({ status }) {
        yield* resourceAmounts("status.hard", status?.hard, quotaResourceName);
        yield* resourceAmounts("status.used", status?.used, quotaResourceName);
      },
    }),
  },
});

/** Whether a scope makes sense for a resource: pods have scopes, most else has none. */
function fits(scope: string, resource: string): boolean {
  if (scope === "BestEffort") return resource === "pods";
  if (POD_SCOPES.includes(scope)) return POD_RESOURCES.includes(resource);
  return scope !== "VolumeAttributesClass" || resource === "persistentvolumeclaims" || resource === "requests.storage";
}

function* validateScopes({ scopes = [], hard = {} }: Readonly<ResourceQuotaSpec>): Iterable<FieldError> {
  const path = "spec.scopes", unfit = unfitOf(hard);
  for (const scope of scopes) {
    if (!SCOPES.includes(scope)) yield invalid(path, scopes, "unsupported scope");
    for (const _ of unfit(scope)) yield invalid(path, scopes, "unsupported scope applied to resource");
  }
  yield* validateExclusive(path, scopes, scopes);
}

/** What is limited and does not go together with a scope. Many may have the same scope. */
function unfitOf(hard: object): (scope: string) => readonly string[] {
  const standard = Object.keys(hard).filter(isStandardQuotaResource), known = new Map<string, readonly string[]>();
  return (scope) => {
    const kind = SCOPES.includes(scope) ? scope : "";
    const found = known.get(kind) ?? standard.filter((resource) => !fits(kind, resource));
    known.set(kind, found);
    return found;
  };
}

function* validateExclusive(path: string, used: readonly string[], shown: unknown): Iterable<FieldError> {
  for (const [a, b] of EXCLUSIVE) if (used.includes(a) && used.includes(b)) yield invalid(path, shown, "conflicting scopes");
}

function* validateSelector({ scopes, scopeSelector, hard = {} }: Readonly<ResourceQuotaSpec>): Iterable<FieldError> {
  const path = "spec.scopeSelector.matchExpressions";
  const expressions = scopeSelector?.matchExpressions ?? [], unfit = unfitOf(hard);
  let shown: object | undefined;
  for (const expression of expressions) {
    const { scopeName } = expression;
    if (!SCOPES.includes(scopeName)) yield invalid(child(path, "scopeName"), scopeName, "unsupported scope");
    for (const _ of unfit(scopeName)) yield invalid(path, shown ??= internalForm("io.k8s.api.core.v1.ScopeSelector", { matchExpressions: expressions }), "unsupported scope applied to resource");
    yield* validateExpression(path, expression);
  }
  yield* validateExclusive(path, expressions.map(({ scopeName }) => scopeName), scopes ?? null);
}

function* validateExpression(path: string, { scopeName, operator, values = [] }: ScopedResourceSelectorRequirement): Iterable<FieldError> {
  if (SCOPES_WITHOUT_VALUES.includes(scopeName) && operator !== "Exists")
    yield invalid(child(path, "operator"), operator,
      "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
  if (operator === "In" || operator === "NotIn") {
    if (values.length === 0) yield required(child(path, "values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    if (values.length > 0) yield invalid(child(path, "values"), values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
  } else yield invalid(child(path, "operator"), operator, "not a valid selector operator");
}
