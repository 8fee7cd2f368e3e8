/** What of a quota is used, counted anew over the objects there are. Source: kubernetes v1.36 apiserver/pkg/quota/v1/resources.go CalculateUsage */
import type { ResourceQuota } from "../../api/gen/core.v1.ts";
import { formatGroupResource, type GroupResource } from "../../api/meta/gvk.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { compareQuantity, parseQuantity } from "../../api/meta/quantity.ts";
import { add, type Amounts, amountsOf, only } from "../../api/quota/amounts.ts";
import type { Surroundings } from "../../api/quota/claim-usage.ts";
import { evaluatorOf, resourcesBehind, scopesOf } from "../../api/quota/evaluators.ts";

type Quota = Readonly<ResourceQuota>;

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
  const hard = Object.keys(quota.spec?.hard ?? {});
  const scopes = scopesOf(quota);
  const unknown = new Set<string>();
  let sum: Amounts = new Map();
  for (const resource of resourcesOf(quota)) {
    const evaluator = evaluatorOf(resource, around);
    if (evaluator === undefined) continue;
    const all = objects(resource);
    const names = hard.filter((name) => evaluator.covers(name));
    if (all === undefined) for (const name of names) unknown.add(name);
    sum = add(sum, new Map(names.map((name) => [name, parseQuantity("0")])));
    for (const object of all ?? []) if (scopes.every((scope) => evaluator.isInScope(object, scope))) sum = add(sum, only(evaluator.usage(object, nowMs), names));
  }
  return new Map([...only(amountsOf(quota.status?.used), hard), ...[...sum].filter(([name]) => !unknown.has(name))]);
}

/** Whether less is used than was noted. */
export function isLess(used: Amounts, noted: Amounts): boolean {
  return [...noted].some(([name, quantity]) => used.has(name) && compareQuantity(used.get(name)!, quantity) < 0);
}
