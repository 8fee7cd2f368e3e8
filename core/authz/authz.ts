/**
 * May they? Authorizers are asked in turn, and the first that allows decides:
 *
 *   system:masters (always) → nodes (node.ts: what their pods refer to) → RBAC (rbac.ts: roles and bindings)
 *
 * or in the order of an AuthorizationConfiguration (configuration.ts), which may also ask somebody else (webhook.ts).
 *
 * Nobody allowing means no. The reasons they gave stand in the 403, one a line.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/authorization/{union,authorizerfactory}
 */
import { GROUP_MASTERS } from "../api/request/user.ts";
import type { Authorizer, PathRule, ResourceRule } from "./authorizer.ts";

export function authorizerUnion(authorizers: readonly Authorizer[]): Authorizer {
  return {
    async authorize(attributes) {
      const reasons: string[] = [];
      for (const authorizer of authorizers) {
        const decided = await authorizer.authorize(attributes);
        if (decided.decision !== "no-opinion") return decided;
        if (decided.reason !== "") reasons.push(decided.reason);
      }
      return { decision: "no-opinion", reason: reasons.join("\n") };
    },
    async rulesFor(user, namespace) {
      const resourceRules: ResourceRule[] = [];
      const pathRules: PathRule[] = [];
      const errors: string[] = [];
      let incomplete = false;
      for (const authorizer of authorizers) {
        const found = await authorizer.rulesFor(user, namespace);
        resourceRules.push(...found.resourceRules);
        pathRules.push(...found.pathRules);
        incomplete ||= found.incomplete;
        if (found.evaluationError !== undefined) errors.push(found.evaluationError);
      }
      return { resourceRules, pathRules, incomplete, ...(errors.length > 0 ? { evaluationError: aggregate(errors) } : {}) };
    },
  };
}

/** Members of system:masters may do anything, whatever roles say: the way back in when roles are broken. */
export const superuserAuthorizer: Authorizer = {
  authorize: ({ user }) => (user.groups.includes(GROUP_MASTERS) ? { decision: "allow", reason: "" } : { decision: "no-opinion", reason: "" }),
  rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: false }),
};

/** Several errors as upstream prints them; each text once. */
export function aggregate(errors: readonly string[]): string {
  const distinct = [...new Set(errors)];
  return distinct.length === 1 ? distinct[0]! : `[${distinct.join(", ")}]`;
}
