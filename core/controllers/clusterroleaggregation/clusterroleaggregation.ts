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

/** The rules of all roles the selectors find, in order of name, each once. */
function aggregatedRules({ metadata, aggregationRule }: Readonly<ClusterRole>, roles: Iterable<Readonly<ClusterRole>>): PolicyRule[] {
  const sorted = [...roles].toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const rules = new Map<string, PolicyRule>();
  for (const clause of aggregationRule?.clusterRoleSelectors ?? []) {
    const selector = labelSelector(clause);
    for (const role of sorted) {
      if (role.metadata.name === metadata.name || !selector.matches(labelsOf(role))) continue;
      for (const rule of role.rules ?? []) if (!rules.has(canonical(rule))) rules.set(canonical(rule), rule);
    }
  }
  return [...rules.values()];
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
      const rules = aggregatedRules(role, roles.list());
      if (canonical(rules) === canonical(role.rules ?? [])) return;
      const call = { fieldManager: "clusterrole-aggregation-controller", force: true, signal };
      const draft = { apiVersion: role.apiVersion, kind: role.kind, metadata: { name: role.metadata.name }, ...(rules.length > 0 && { rules }) }; // of no rules nothing is said: those that somebody else gave stay
      await roles.caughtUp([await roleClient.apply(draft, call)], signal);
    },
  };
}
