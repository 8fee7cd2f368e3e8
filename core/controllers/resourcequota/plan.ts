/** What of a quota is used, counted anew over the objects there are. Source: kubernetes v1.36 apiserver/pkg/quota/v1/resources.go CalculateUsage */
import type { ResourceQuota } from "../../api/gen/core.v1.ts";
import { formatGroupResource, type GroupResource } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { addQuantity, compareQuantity, parseQuantity, type Quantity } from "../../api/meta/quantity.ts";
import { addTo, type Amounts, amountsOf, only } from "../../api/quota/amounts.ts";
import type { Surroundings } from "../../api/quota/claim-usage.ts";
import { type Evaluator, evaluatorOf, resourcesBehind, scopesOf } from "../../api/quota/evaluators.ts";

type Quota = Readonly<ResourceQuota>;

const ZERO = parseQuantity("0");

/** The resources that have to be counted for a quota; each once. */
export function resourcesOf({ spec }: Quota): readonly GroupResource[] {
  const found = new Map<string, GroupResource>();
  for (const name of Object.keys(spec?.hard ?? {})) for (const resource of resourcesBehind(name)) found.set(formatGroupResource(resource), resource);
  return [...found.values()];
}

interface Count {
  /** Those of the quota's namespace; undefined for a resource that cannot be listed now, which keeps what was used before. */
  readonly objects: (resource: GroupResource) => Iterable<Readonly<ApiObject>> | undefined;
  readonly nowMs: number;
  readonly around?: Surroundings | undefined;
}

export function countUsage(quota: Quota, { objects, nowMs, around }: Count): Amounts {
  const hard = new Set(Object.keys(quota.spec?.hard ?? {}));
  const scopes = scopesOf(quota);
  const unknown = new Set<string>();
  const sum = new Map<string, Quantity>();
  for (const resource of resourcesOf(quota)) {
    const evaluator = evaluatorOf(resource, around);
    if (evaluator === undefined) continue;
    const all = objects(resource);
    const names = namesOf(evaluator, hard);
    if (all === undefined) for (const name of names) unknown.add(name);
    for (const name of names) addTo(sum, name, ZERO);
    for (const object of all ?? []) {
      if (!scopes.every((scope) => evaluator.isInScope(object, scope))) continue;
      for (const [name, quantity] of evaluator.usage(object, nowMs)) if (names.has(name)) addTo(sum, name, quantity);
    }
  }
  return new Map([...only(amountsOf(quota.status?.used), hard), ...[...sum].filter(([name]) => !unknown.has(name))]);
}

/** Of what a quota limits, what one evaluator counts. A quota may name twenty thousand resources, each with an evaluator of its own. */
function namesOf(evaluator: Evaluator, hard: ReadonlySet<string>): ReadonlySet<string> {
  return new Set(evaluator.names ? evaluator.names.filter((name) => hard.has(name)) : [...hard].filter((name) => evaluator.covers(name)));
}

/** What was counted, and on top what was added shortly before: it may have been counted, or not be there yet. No more than was noted altogether, unless there is. */
export function withRaises(counted: Amounts, { raised, noted }: { readonly raised: Amounts; readonly noted: Amounts }): Amounts {
  return new Map([...counted].map(([name, quantity]) => {
    const before = noted.get(name), more = raised.get(name);
    if (before === undefined || more === undefined || compareQuantity(quantity, before) >= 0) return [name, quantity];
    const most = addQuantity(quantity, more);
    return [name, compareQuantity(most, before) < 0 ? most : before];
  }));
}

/** Whether less is used than was noted. */
export function isLess(used: Amounts, noted: Amounts): boolean {
  return [...noted].some(([name, quantity]) => used.has(name) && compareQuantity(used.get(name)!, quantity) < 0);
}
