/**
 * May they? Authorizers are asked in turn, and the first that allows decides:
 *
 *   system:masters (always) → nodes (node.ts: what their pods refer to) → RBAC (rbac.ts: roles and bindings)
 *
 * or in the order of an AuthorizationConfiguration (configuration.ts), which may also ask somebody else (webhook.ts).
 *
 * Nobody allowing means no. The reasons they gave stand in the 403, one a line; if one could not be asked, the answer is a 500 instead.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/authorization/{union,authorizerfactory}
 */
import { aggregate } from "../api/meta/aggregate.ts";
import { GROUP_MASTERS } from "../api/request/user.ts";
import type { Counter, Metrics } from "../observe/metrics.ts";
import type { Authorizer, Decision, PathRule, ResourceRule } from "./authorizer.ts";

export function authorizerUnion(authorizers: readonly Authorizer[]): Authorizer {
  return {
    async authorize(attributes) {
      const [reasons, errors]: [string[], string[]] = [[], []];
      for (const authorizer of authorizers) {
        const decided = await authorizer.authorize(attributes);
        if (decided.decision !== "no-opinion") return decided;
        if (decided.reason !== "") reasons.push(decided.reason);
        if (decided.error !== undefined) errors.push(decided.error);
      }
      return { decision: "no-opinion", reason: reasons.join("\n"), ...(errors.length > 0 ? { error: aggregate(errors) } : {}) };
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

/** Counts what an authorizer decides. Source: kubernetes v1.36 apiserver/pkg/authorization/metrics/metrics.go */
export function countedAuthorizer(authorizer: Authorizer, { type, name, decisions }: { readonly type: string; readonly name: string; readonly decisions: Counter }): Authorizer {
  const counters: { allow?: { inc(): void }; deny?: { inc(): void } } = {}; // made when there is something to count
  const count = (decided: Decision): Decision => {
    const { decision } = decided;
    if (decision !== "no-opinion") (counters[decision] ??= decisions.with({ decision: decision === "allow" ? "allowed" : "denied", name, type })).inc();
    return decided;
  };
  return {
    authorize(attributes) {
      const decided = authorizer.authorize(attributes);
      return decided instanceof Promise ? decided.then(count) : count(decided);
    },
    rulesFor: (user, namespace) => authorizer.rulesFor(user, namespace),
  };
}

export function decisionsCounter(metrics: Metrics): Counter {
  return metrics.counter("apiserver_authorization_decisions_total", "[ALPHA] Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.");
}

/** Members of system:masters may do anything, whatever roles say: the way back in when roles are broken. */
export const superuserAuthorizer: Authorizer = {
  authorize: ({ user }) => (user.groups.includes(GROUP_MASTERS) ? { decision: "allow", reason: "" } : { decision: "no-opinion", reason: "" }),
  rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: false }),
};
