/**
 * The check that nobody grants what they do not hold (core/authz/escalation.ts), as the last plug-in that mutates: what has been mutated is looked at
 * before it is validated. Upstream has it in its registry: it is always
 * on, and has no name in --enable-admission-plugins.
 */
import type { EscalationCheck, RbacObject } from "../authz/escalation.ts";
import type { AdmissionPlugin } from "./plugin.ts";

const RESOURCES: ReadonlySet<string> = new Set(["roles", "clusterroles", "rolebindings", "clusterrolebindings"]);

export function rbacEscalation(guard: (check: EscalationCheck) => Promise<void>): AdmissionPlugin {
  return {
    name: "RBACEscalation",
    handles: ({ operation, group, resource, subresource }) => (operation === "CREATE" || operation === "UPDATE") && group === "rbac.authorization.k8s.io" && subresource === "" && RESOURCES.has(resource),
    async admit({ resource, namespace, name, pathName = name, object, oldObject, user, signal }) {
      await guard({ resource: resource as EscalationCheck["resource"], namespace, name: pathName, object: object as unknown as RbacObject, old: oldObject as unknown as RbacObject | undefined, user, signal });
    },
  };
}
