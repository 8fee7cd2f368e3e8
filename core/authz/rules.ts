/**
 * RBAC rules: what one allows, and whether some rules cover others. All pure.
 *
 * Source: kubernetes v1.36 pkg/apis/rbac/v1/evaluation_helpers.go, staging/src/k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go,
 *         pkg/registry/rbac/validation/policy_compact.go
 */
import { withoutLast } from "../api/meta/linear.ts";
import type { PolicyRule } from "../api/gen/rbac.v1.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import type { PathAttributes, ResourceAttributes } from "../api/request/attributes.ts";

export type Rule = Readonly<PolicyRule>;

export function ruleAllows(rule: Rule, attributes: ResourceAttributes | PathAttributes): boolean {
  if (!rule.verbs.includes("*") && !rule.verbs.includes(attributes.verb)) return false;
  if (!attributes.isResource) return pathsMatch(rule.nonResourceURLs ?? [], attributes.path);
  const { group, resource, subresource, name } = attributes;
  const { apiGroups = [], resources = [], resourceNames = [] } = rule;
  if (!apiGroups.includes("*") && !apiGroups.includes(group)) return false;
  if (resourceNames.length > 0 && !resourceNames.includes(name)) return false;
  if (resources.includes("*")) return true;
  return subresource === "" ? resources.includes(resource) : resources.includes(`${resource}/${subresource}`) || resources.includes(`*/${subresource}`);
}

function pathsMatch(patterns: readonly string[], path: string): boolean {
  return patterns.some((pattern) => pattern === "*" || pattern === path || (pattern.endsWith("*") && path.startsWith(withoutLast(pattern, "*"))));
}

/** What of `wanted` is not in `owned`, as rules of one verb and one resource (and name) each. */
export function uncoveredRules(owned: readonly Rule[], wanted: readonly Rule[]): PolicyRule[] {
  return wanted.flatMap(breakdown).filter((rule) => !owned.some((owner) => ruleCovers(owner, rule)));
}

/** Equivalent rules with one verb, group and resource each, and at most one name; or one verb and path. */
function breakdown({ verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: Rule): PolicyRule[] {
  const names: readonly (readonly string[])[] = resourceNames.length > 0 ? resourceNames.map((name) => [name]) : [[]];
  const forResources = apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.flatMap((verb) => names.map((name): PolicyRule => (
    { verbs: [verb], apiGroups: [group], resources: [resource], ...(name.length > 0 ? { resourceNames: [...name] } : {}) }
  )))));
  const forPaths = nonResourceURLs.flatMap((path) => verbs.map((verb): PolicyRule => ({ verbs: [verb], nonResourceURLs: [path] })));
  return [...forResources, ...forPaths];
}

/** `rule` comes from `breakdown`. */
function ruleCovers(owner: Rule, rule: Rule): boolean {
  const has = (list: readonly string[] | undefined, item: string): boolean => list?.includes(item) ?? false;
  const all = (list: readonly string[] | undefined, items: readonly string[] = []): boolean => items.every((item) => has(list, item));
  const names = rule.resourceNames ?? [];
  const ownNames = owner.resourceNames ?? [];
  return (has(owner.verbs, "*") || all(owner.verbs, rule.verbs))
    && (has(owner.apiGroups, "*") || all(owner.apiGroups, rule.apiGroups))
    && (rule.resources ?? []).every((resource) => resourceCovered(owner.resources ?? [], resource))
    && (ownNames.length === 0 || (names.length > 0 && all(ownNames, names)))
    && (rule.nonResourceURLs ?? []).every((path) => (owner.nonResourceURLs ?? []).some((pattern) => pattern === path || (pattern.endsWith("*") && path.startsWith(withoutLast(pattern, "*")))));
}

function resourceCovered(owned: readonly string[], resource: string): boolean {
  if (owned.includes("*") || owned.includes(resource)) return true;
  const slash = resource.indexOf("/");
  return slash >= 0 && owned.includes(`*/${resource.slice(slash + 1)}`);
}

/** Joins rules that differ only in their verb: shorter to read. Takes what `uncoveredRules` gives. */
export function compactRules(rules: readonly Rule[]): PolicyRule[] {
  const compacted: PolicyRule[] = [];
  const byResource = new Map<string, PolicyRule>();
  for (const rule of rules) {
    if (rule.nonResourceURLs?.length || rule.apiGroups?.length !== 1 || rule.resources?.length !== 1) { compacted.push({ ...rule }); continue; }
    const id = JSON.stringify([rule.apiGroups[0], rule.resources[0], rule.resourceNames]);
    const before = byResource.get(id);
    if (before) before.verbs = [...before.verbs, ...rule.verbs];
    else byResource.set(id, { ...rule });
  }
  return [...compacted, ...byResource.values()];
}

/** {APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]} */
export function formatRule({ apiGroups = [], resources = [], nonResourceURLs = [], resourceNames = [], verbs }: Rule): string {
  const parts: readonly (readonly [string, readonly string[]])[] = [["APIGroups", apiGroups], ["Resources", resources], ["NonResourceURLs", nonResourceURLs], ["ResourceNames", resourceNames], ["Verbs", verbs]];
  return `{${parts.filter(([, values]) => values.length > 0).map(([name, values]) => `${name}:${goList(values)}`).join(", ")}}`;
}

/** A list as Go's %q prints it: ["a" "b"] */
export function goList(values: readonly string[]): string { return `[${values.map(goQuote).join(" ")}]`; }
