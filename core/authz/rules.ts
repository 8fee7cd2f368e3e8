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

/** Rules told of one refusal. Lists of a thousand make a billion rules of one. */
const UNCOVERED_MAX = 10_000;

/** A rule of more rules than these is not told with what it lists twice. */
const REPEATED_MAX = 100_000;

/** What of `wanted` is not in `owned`, as rules of one verb and one resource (and name) each; the first ten thousand. */
export function uncoveredRules(owned: readonly Rule[], wanted: readonly Rule[]): PolicyRule[] {
  const found: PolicyRule[] = [];
  for (const rule of wanted)
    for (const part of [forResources(rule), forPaths(rule)])
      for (const one of part === undefined ? [] : uncovered(owned, part)) if (found.push(one) >= UNCOVERED_MAX) return found;
  return found;
}

const DIMENSIONS = { resources: ["apiGroups", "resources", "verbs", "resourceNames"], paths: ["nonResourceURLs", "verbs"] } as const;

function forResources({ verbs, apiGroups = [], resources = [], resourceNames = [] }: Rule): PolicyRule | undefined {
  if (verbs.length === 0 || apiGroups.length === 0 || resources.length === 0) return undefined;
  return limited({ verbs: [...verbs], apiGroups: [...apiGroups], resources: [...resources], ...(resourceNames.length > 0 ? { resourceNames: [...resourceNames] } : {}) });
}

function forPaths({ verbs, nonResourceURLs = [] }: Rule): PolicyRule | undefined {
  return verbs.length > 0 && nonResourceURLs.length > 0 ? limited({ verbs: [...verbs], nonResourceURLs: [...nonResourceURLs] }) : undefined;
}

function limited(rule: PolicyRule): PolicyRule {
  const lists = Object.entries(rule) as [keyof PolicyRule, string[]][];
  if (lists.reduce((product, [, list]) => product * list.length, 1) <= REPEATED_MAX) return rule;
  return Object.fromEntries(lists.map(([name, list]) => [name, [...new Set(list)]])) as unknown as PolicyRule;
}

/** Rules with one verb, group and resource each, and at most one name, or one verb and path. What one of `owned` covers as a whole is not taken apart. */
function* uncovered(owned: readonly Rule[], rule: PolicyRule): Iterable<PolicyRule> {
  if (owned.some((owner) => ruleCovers(owner, rule))) return;
  const several = DIMENSIONS[rule.nonResourceURLs ? "paths" : "resources"].find((name) => (rule[name]?.length ?? 0) > 1);
  if (several === undefined) { yield rule; return; }
  for (const value of rule[several]!) yield* uncovered(owned, { ...rule, [several]: [value] });
}

/** Whether all of `rule`, which is for resources or for paths, is in one. */
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
