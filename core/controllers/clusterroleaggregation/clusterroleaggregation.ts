/**
 * Fills ClusterRoles that are sums of others: `aggregationRule` says which.
 *
 * API:    https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
 * Source: kubernetes v1.36 pkg/controller/clusterroleaggregation
 */
import type { ClusterRole, PolicyRule } from "../../api/gen/rbac.v1.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import { keyOf, labelsOf } from "../../api/meta/object-meta.ts";
import { CLUSTER_ROLES } from "../../client/resources.ts";
import { type Controller, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { canonical } from "../template-hash.ts";

/** What each rule says, of those that stay as they are: any change of a role has all sums put together anew. */
const texts = new WeakMap<Readonly<PolicyRule>, string>();

function textOf(rule: Readonly<PolicyRule>): string {
  let text = texts.get(rule);
  if (text === undefined) {
    text = canonical(rule);
    if (Object.isFrozen(rule)) texts.set(rule, text);
  }
  return text;
}

/** The rules of all roles the selectors find, in order of name, each once, by what it says. */
function aggregatedRules({ metadata, aggregationRule }: Readonly<ClusterRole>, roles: Iterable<Readonly<ClusterRole>>): ReadonlyMap<string, PolicyRule> {
  const sorted = [...roles].toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const rules = new Map<string, PolicyRule>();
  for (const clause of aggregationRule?.clusterRoleSelectors ?? []) {
    const selector = labelSelector(clause);
    for (const role of sorted) {
      if (role.metadata.name === metadata.name || !selector.matches(labelsOf(role))) continue;
      for (const rule of role.rules ?? []) if (!rules.has(textOf(rule))) rules.set(textOf(rule), rule);
    }
  }
  return rules;
}

export function clusterRoleAggregationController({ client, informers }: Pick<ControllerDeps, "client" | "informers">): Controller {
  const roles = informers.of(CLUSTER_ROLES);
  const roleClient = client.resource(CLUSTER_ROLES);
  return {
    name: "ClusterRoleAggregator",
    workers: 5,
    watches: [mapped(roles, () => [...roles.list()].filter(({ aggregationRule }) => aggregationRule !== undefined).map(keyOf))],
    async reconcile(key, { signal }) {
      const role = roles.get(key);
      if (role?.aggregationRule === undefined) return;
      const found = aggregatedRules(role, roles.list()), rules = [...found.values()];
      if (Bun.deepEquals([...found.keys()], (role.rules ?? []).map(textOf))) return;
      const call = { fieldManager: "clusterrole-aggregation-controller", force: true, signal };
      const draft = { apiVersion: role.apiVersion, kind: role.kind, metadata: { name: role.metadata.name }, ...(rules.length > 0 && { rules }) }; // of no rules nothing is said: those that somebody else gave stay
      await roles.caughtUp([await roleClient.apply(draft, call)], signal);
    },
  };
}
