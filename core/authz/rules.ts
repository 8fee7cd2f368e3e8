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
  return [...findUncovered(owned, wanted)].filter((found) => found !== undefined);
}

/** The same one after the other; undefined: a part was looked at, and is covered. Whoever asks for somebody else's rules lets others have their turn after each. */
export function* findUncovered(owned: readonly Rule[], wanted: readonly Rule[]): Generator<PolicyRule | undefined, void, undefined> {
  const held = new HeldRules(owned);
  let found = 0;
  for (const rule of wanted) {
    for (const part of [forResources(rule), forPaths(rule)]) {
      for (const one of part === undefined ? [] : uncovered(held, part)) {
        yield one;
        if (one !== undefined && ++found >= UNCOVERED_MAX) return;
      }
    }
  }
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

/** Rules with one verb, group and resource each, and at most one name, or one verb and path; undefined: covered. What one of those held covers as a whole is not taken apart. */
function* uncovered(held: HeldRules, rule: PolicyRule): Generator<PolicyRule | undefined, void, undefined> {
  const isCovered = held.covers(rule);
  const several = isCovered ? undefined : DIMENSIONS[rule.nonResourceURLs ? "paths" : "resources"].find((name) => (rule[name]?.length ?? 0) > 1);
  if (several === undefined) { yield isCovered ? undefined : rule; return; }
  for (const value of rule[several]!) yield* uncovered(held, { ...rule, [several]: [value] });
}

type Dimension = "verbs" | "apiGroups" | "resources" | "resourceNames";
type Held = Readonly<Record<Dimension, ReadonlySet<string>>> & { readonly paths: ReadonlySet<string>; readonly patterns: readonly string[] };

/** Rules somebody has, found by what they are for: of fifteen thousand, which fit into one role, those are looked at that name the rarest of what is wanted. */
class HeldRules {
  readonly #by: Readonly<Record<Dimension, Map<string, Held[]>>> = { verbs: new Map(), apiGroups: new Map(), resources: new Map(), resourceNames: new Map() };
  readonly #ofAnyName: Held[] = [];

  constructor(owned: readonly Rule[]) {
    for (const { verbs, apiGroups, resources, resourceNames, nonResourceURLs = [] } of owned) {
      const held: Held = {
        verbs: new Set(verbs), apiGroups: new Set(apiGroups), resources: new Set(resources), resourceNames: new Set(resourceNames),
        paths: new Set(nonResourceURLs), patterns: nonResourceURLs.filter((pattern) => pattern.endsWith("*")).map((pattern) => withoutLast(pattern, "*")),
      };
      for (const dimension of Object.keys(this.#by) as Dimension[]) for (const value of held[dimension]) getOrInsert(this.#by[dimension], value).push(held);
      if (held.resourceNames.size === 0) this.#ofAnyName.push(held);
    }
  }

  /** Whether all of a rule, which is for resources or for paths, is in one. */
  covers(rule: Rule): boolean { return this.#rarest(rule).some((lists) => lists.some((held) => ruleCovers(held, rule))); }

  /** All that could cover a rule have each of its values: those that have the one which fewest have. */
  #rarest(rule: Rule): Held[][] {
    let least: Held[][] | undefined, length = Infinity;
    const consider = (...lists: readonly (Held[] | undefined)[]): void => {
      const there = lists.filter((list) => list !== undefined);
      const sum = there.reduce((all, list) => all + list.length, 0);
      if (sum < length) [least, length] = [there, sum];
    };
    const { verbs, apiGroups, resources, resourceNames } = this.#by;
    for (const verb of rule.verbs) consider(verbs.get(verb), verbs.get("*"));
    for (const group of rule.apiGroups ?? []) consider(apiGroups.get(group), apiGroups.get("*"));
    for (const resource of rule.resources ?? []) consider(...resourcesWith(resource).map((value) => resources.get(value)));
    for (const name of rule.resourceNames ?? []) consider(resourceNames.get(name), this.#ofAnyName);
    return least ?? [];
  }
}

function getOrInsert<K, V>(map: Map<K, V[]>, key: K): V[] {
  const found = map.get(key);
  if (found) return found;
  const made: V[] = [];
  map.set(key, made);
  return made;
}

function ruleCovers(held: Held, rule: Rule): boolean {
  const all = (list: ReadonlySet<string>, items: readonly string[] = []): boolean => items.every((item) => list.has(item));
  const names = rule.resourceNames ?? [];
  return (held.verbs.has("*") || all(held.verbs, rule.verbs))
    && (held.apiGroups.has("*") || all(held.apiGroups, rule.apiGroups))
    && (rule.resources ?? []).every((resource) => resourcesWith(resource).some((value) => held.resources.has(value)))
    && (held.resourceNames.size === 0 || (names.length > 0 && all(held.resourceNames, names)))
    && (rule.nonResourceURLs ?? []).every((path) => held.paths.has(path) || held.patterns.some((start) => path.startsWith(start)));
}

/** What a rule may say to be for a resource. */
function resourcesWith(resource: string): readonly string[] {
  const slash = resource.indexOf("/");
  return slash < 0 ? [resource, "*"] : [resource, "*", `*/${resource.slice(slash + 1)}`];
}

/** Joins rules that differ only in their verb: shorter to read. Takes what `uncoveredRules` gives. */
export function compactRules(rules: readonly Rule[]): PolicyRule[] {
  const compacted: PolicyRule[] = [];
  const byResource = new Map<string, PolicyRule>();
  for (const rule of rules) {
    if (rule.nonResourceURLs?.length || rule.apiGroups?.length !== 1 || rule.resources?.length !== 1) { compacted.push({ ...rule }); continue; }
    const id = JSON.stringify([rule.apiGroups[0], rule.resources[0], rule.resourceNames]);
    const before = byResource.get(id);
    if (before) before.verbs.push(...rule.verbs);
    else byResource.set(id, { ...rule, verbs: [...rule.verbs] });
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
