/**
 * Nobody can grant what they do not hold: checked for every write of a role or binding.
 *
 * Exempt are members of system:masters, who may `escalate` the role, or `bind` the role a binding refers to.
 * Called for the object as it will be stored, after defaults; throws 403.
 *
 * Source: kubernetes v1.36 pkg/registry/rbac/{escalation_check,helpers}.go, pkg/registry/rbac/<resource>/policybased, pkg/registry/rbac/validation/rule.go
 */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef } from "../api/gen/rbac.v1.ts";
import { aggregate } from "../api/meta/aggregate.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { checkNameParameter } from "../api/meta/name-parameter.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { badRequest, forbidden, notFound, statusError, StatusError } from "../api/meta/status-error.ts";
import { askedOf } from "../api/request/attributes.ts";
import { GROUP_MASTERS, type UserInfo } from "../api/request/user.ts";
import { breather } from "../lifecycle/breather.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Authorizer } from "./authorizer.ts";
import type { RuleResolver } from "./rbac.ts";
import { compactRules, findUncovered, formatRule, goList, type Rule } from "./rules.ts";

export type RbacObject = ClusterRole | ClusterRoleBinding | Role | RoleBinding;

export interface EscalationCheck {
  readonly resource: "roles" | "clusterroles" | "rolebindings" | "clusterrolebindings";
  /** "" for cluster scope. */
  readonly namespace: string;
  /** In the path: a permission to escalate a role of that name does not hold for a POST, which has none there. */
  readonly name: string;
  readonly object: Readonly<RbacObject>;
  /** Absent on a create. */
  readonly old?: Readonly<RbacObject> | undefined;
  readonly user: UserInfo;
  /** Nobody waits for the answer any longer. */
  readonly signal?: AbortSignal | undefined;
}

const GROUP = "rbac.authorization.k8s.io";
const EVERYTHING: readonly Rule[] = [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }, { verbs: ["*"], nonResourceURLs: ["*"] }];

export function escalationGuard(authorizer: Authorizer, resolver: RuleResolver, clock: Pick<Clock, "uptimeMs">): (check: EscalationCheck) => Promise<void> {
  async function may(verb: "escalate" | "bind", user: UserInfo, target: { readonly resource: string; readonly namespace: string; readonly name: string; readonly group: string }): Promise<boolean> {
    const { decision } = await authorizer.authorize(askedOf(user, { verb, version: "*", ...target }));
    return decision === "allow";
  }

  async function missing({ user, namespace, signal }: Pick<EscalationCheck, "user" | "namespace" | "signal">, wanted: readonly Rule[]): Promise<string | undefined> {
    const errors: string[] = [], uncovered: Rule[] = [];
    const owned = [...resolver.rulesOf(user, namespace, (error) => errors.push(error.message))].map(({ rule }) => rule);
    const breathe = breather(clock);
    for (const found of findUncovered(owned, wanted)) {
      if (found !== undefined) uncovered.push(found);
      const turn = breathe();
      if (turn === undefined) continue;
      await turn;
      signal?.throwIfAborted();
    }
    if (uncovered.length === 0) return undefined;
    const lines = [...new Set(compactRules(uncovered).map(formatRule))].sort();
    const told = `user ${goQuote(user.name)} (groups=${goList(user.groups)}) is attempting to grant RBAC permissions not currently held:\n${lines.join("\n")}`;
    return errors.length > 0 ? `${told}; resolution errors: [${aggregate(errors)}]` : told;
  }

  return async (check) => {
    const { resource, namespace, name, object, old, user } = check;
    if (user.groups.includes(GROUP_MASTERS) || (old && onlyForGarbageCollection(object, old))) return;
    const refuse = (detail: string): never => { throw forbidden({ group: GROUP, resource }, object.metadata.name ?? "", detail); };
    if (resource === "roles" || resource === "clusterroles") {
      if (await may("escalate", user, { resource, namespace, name, group: GROUP })) return;
      const problem = await missing(check, (object as Role).rules ?? []);
      if (problem !== undefined) refuse(problem);
      const gathers = (role: Readonly<RbacObject> | undefined): boolean => ((role as ClusterRole | undefined)?.aggregationRule?.clusterRoleSelectors?.length ?? 0) > 0;
      if ((gathers(object) || gathers(old)) && await missing(check, EVERYTHING) !== undefined) refuse("must have cluster-admin privileges to use the aggregationRule");
      return;
    }
    const ref = (object as RoleBinding).roleRef as RoleRef;
    const target = ref.kind === "ClusterRole" ? "clusterroles" : "roles";
    if ((ref.kind === "ClusterRole" || ref.kind === "Role") && await may("bind", user, { resource: target, namespace, name: ref.name, group: ref.apiGroup ?? GROUP })) return;
    const problem = await missing(check, rulesOf(ref, { namespace, resource }));
    if (problem !== undefined) refuse(problem);
  };

  /** What is no name of a role is told as upstream's storage tells it. A role that is not there is told under the resource that was to refer to it, as upstream's handler of creates tells whatever is not found. */
  function rulesOf(ref: RoleRef, { namespace, resource }: Pick<EscalationCheck, "namespace" | "resource">): readonly Rule[] {
    if (ref.kind !== "Role" && ref.kind !== "ClusterRole") throw statusError({ code: 500, reason: "", message: `unsupported role reference kind: ${goQuote(ref.kind)}` });
    if (ref.kind === "Role" && namespace === "") throw badRequest("Namespace parameter required.");
    checkNameParameter(ref.name);
    try {
      return resolver.rulesOfRef(ref, namespace);
    } catch (error) {
      throw error instanceof StatusError && error.status.code === 404 ? notFound({ group: GROUP, resource }, ref.name) : error;
    }
  }
}

/** The garbage collector has to change owners and finalizers of roles it could never grant. */
export function onlyForGarbageCollection(object: Readonly<ApiObject>, old: Readonly<ApiObject>): boolean {
  const strip = ({ metadata: { ownerReferences: _, finalizers: __, managedFields: ___, ...metadata }, ...rest }: Readonly<ApiObject>): string => canonical({ ...rest, metadata });
  return strip(object) === strip(old);
}

/** JSON with members sorted and empty values left out. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => {
    if (typeof one !== "object" || one === null || Array.isArray(one)) return one;
    const entries = Object.entries(one).filter(([, member]) => member != null && !(Array.isArray(member) && member.length === 0));
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
