/**
 * Which requests a policy or a binding is about: resources with their exceptions, by labels of the object and of its namespace.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/{matching/matching.go,generic/policy_matcher.go}
 */
import type { MatchResources, NamedRuleWithOperations } from "../../api/gen/admissionregistration.v1.ts";
import type { Namespace } from "../../api/gen/core.v1.ts";
import type { GroupVersionKind, GroupVersionResource } from "../../api/meta/gvk.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import type { Lookup } from "../../client/lookup.ts";
import type { AdmissionRequest } from "../plugin.ts";
import { equivalentsOf, kindOf, matchesNamespace, matchesObject, matchesRule, resourceOf } from "../webhook/match.ts";
import type { ObjectVersions } from "../webhook/object-versions.ts";

export interface Matched {
  /** What the rule names: another version of what was requested, perhaps. */
  readonly resource: GroupVersionResource;
  readonly kind: GroupVersionKind;
}

export interface MatchDeps {
  readonly namespaces: Lookup<Namespace>;
  readonly versions: Pick<ObjectVersions, "equivalents" | "kindOf">;
}

/** Undefined: it is not about this request. Throws what keeps it from being told. */
export async function matchOf(constraints: MatchResources, request: AdmissionRequest, { namespaces, versions }: MatchDeps): Promise<Matched | undefined> {
  if (!constraints.namespaceSelector) throw new Error("a nil namespace selector was passed, please ensure selectors are initialized properly");
  if (!constraints.objectSelector) throw new Error("a nil object selector was passed, please ensure selectors are initialized properly");
  const { excludeResourceRules = [], resourceRules = [], matchPolicy } = constraints;
  if (!matchesObject({ objectSelector: labelSelector(constraints.objectSelector) }, request)) return undefined;
  if (byRules(excludeResourceRules, request, { matchPolicy, versions })) return undefined;
  const matched = resourceRules.length === 0 ? ownOf(request, versions) : byRules(resourceRules, request, { matchPolicy, versions });
  if (!matched || !(await matchesNamespace({ namespaceSelector: labelSelector(constraints.namespaceSelector) }, request, namespaces))) return undefined;
  return matched;
}

function ownOf(request: AdmissionRequest, versions: MatchDeps["versions"]): Matched {
  const resource = resourceOf(request);
  return { resource, kind: kindOf(request, resource, versions) };
}

function byRules(rules: readonly NamedRuleWithOperations[], request: AdmissionRequest, { matchPolicy, versions }: { readonly matchPolicy: string | undefined; readonly versions: MatchDeps["versions"] }): Matched | undefined {
  const own = resourceOf(request);
  const named = ({ resourceNames = [] }: NamedRuleWithOperations): boolean => resourceNames.length === 0 || resourceNames.includes(request.name);
  if (rules.some((rule) => matchesRule(rule, request, own) && named(rule))) return ownOf(request, versions);
  if (matchPolicy !== "Equivalent") return undefined;
  const others = equivalentsOf(own, request.subresource, versions);
  for (const rule of rules) { // earlier rules first
    const other = others.find(({ resource }) => matchesRule(rule, request, resource));
    if (other && named(rule)) return other;
  }
  return undefined;
}
