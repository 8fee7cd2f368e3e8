/**
 * RBAC: a request is allowed if a rule of a role that is bound to the caller, or to one of their groups, allows it.
 *
 * Bindings are indexed by subject, so a decision looks at the caller's own bindings only, however many there are. ClusterRoleBindings
 * hold everywhere, RoleBindings in their namespace.
 *
 * Source: kubernetes v1.36 plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go
 */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject } from "../api/gen/rbac.v1.ts";
import { aggregate } from "../api/meta/aggregate.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { objectKey } from "../api/meta/object-meta.ts";
import { notFound, type StatusError } from "../api/meta/status-error.ts";
import type { UserInfo } from "../api/request/user.ts";
import type { Index, Informer } from "../client/informer.ts";
import type { Authorizer, PathRule, ResourceRule } from "./authorizer.ts";
import { type Rule, ruleAllows } from "./rules.ts";

export interface RbacInformers {
  readonly roles: Informer<Role>;
  readonly roleBindings: Informer<RoleBinding>;
  readonly clusterRoles: Informer<ClusterRole>;
  readonly clusterRoleBindings: Informer<ClusterRoleBinding>;
}

const GROUP = "rbac.authorization.k8s.io";

/** Whom a subject means, as `user <name>` or `group <name>`. Service accounts are users. */
function* subjectValues(subjects: readonly Subject[] | undefined, bindingNamespace: string): Iterable<string> {
  for (const { kind, name, namespace } of subjects ?? []) {
    if (kind === "User") yield `user ${name}`;
    else if (kind === "Group") yield `group ${name}`;
    else if (kind === "ServiceAccount" && (namespace || bindingNamespace) !== "") yield `user system:serviceaccount:${namespace || bindingNamespace}:${name}`;
  }
}

const CLUSTER_SUBJECTS: Index<ClusterRoleBinding> = { name: "subject", *valuesOf({ subjects }) { yield* new Set(subjectValues(subjects, "")); } };
const SUBJECTS: Index<RoleBinding> = {
  name: "namespace and subject",
  *valuesOf({ subjects, metadata: { namespace = "" } }) { for (const value of new Set(subjectValues(subjects, namespace))) yield `${namespace} ${value}`; },
};

export interface RuleSource { readonly rule: Rule; describe(): string }

export interface RuleResolver {
  /**
   * The rules bound to a user in a namespace ("" for cluster scope). What cannot be found is told to `onError`. Those of a role that is bound once more come `again` if that is wanted:
   * a thousand bindings of one role are to be had for little, and are looked at in each request.
   */
  rulesOf(user: UserInfo, namespace: string, onError: (error: Error) => void, again?: () => boolean): Iterable<RuleSource>;
  /** The rules a binding refers to. Throws when there is no such role. */
  rulesOfRef(ref: Readonly<RoleRef>, namespace: string): readonly Rule[];
}

export function ruleResolver({ roles, roleBindings, clusterRoles, clusterRoleBindings }: RbacInformers): RuleResolver {
  function rulesOfRef({ kind, name }: Readonly<RoleRef>, namespace: string): readonly Rule[] {
    if (kind !== "Role" && kind !== "ClusterRole") throw new Error(`unsupported role reference kind: ${goQuote(kind)}`);
    const role = kind === "Role" ? roles.get(objectKey(namespace, name)) : clusterRoles.get(objectKey("", name));
    if (!role) throw missingRole(kind, name);
    return role.rules ?? [];
  }

  function* bound(binding: Readonly<ClusterRoleBinding | RoleBinding>, who: string, onError: (error: Error) => void): Iterable<RuleSource> {
    const { namespace = "" } = binding.metadata;
    try {
      for (const rule of rulesOfRef(binding.roleRef, namespace)) yield { rule, describe: () => describeBinding(binding, who) };
    } catch (error) {
      onError(error as Error);
    }
  }

  return {
    rulesOfRef,
    *rulesOf({ name, groups }, namespace, onError, again = () => false) {
      const values = [`user ${name}`, ...groups.map((group) => `group ${group}`)];
      const seen = new Set<string>(), roles = new Set<string>();
      const isKnown = ({ metadata, roleRef: { kind, name: role } }: Readonly<ClusterRoleBinding | RoleBinding>): boolean => roles.size === roles.add(kind === "Role" ? `${kind} ${metadata.namespace ?? ""} ${role}` : `${kind} ${role}`).size && !again();
      for (const value of values) {
        for (const binding of clusterRoleBindings.by(CLUSTER_SUBJECTS, value)) {
          if (seen.has(binding.metadata.name)) continue;
          seen.add(binding.metadata.name);
          if (!isKnown(binding)) yield* bound(binding, value, onError);
        }
      }
      if (namespace === "") return;
      seen.clear();
      for (const value of values) {
        for (const binding of roleBindings.by(SUBJECTS, `${namespace} ${value}`)) {
          if (seen.has(binding.metadata.name)) continue;
          seen.add(binding.metadata.name);
          if (!isKnown(binding)) yield* bound(binding, value, onError);
        }
      }
    },
  };
}

/** Upstream's listers name the resource in the singular. */
function missingRole(kind: "Role" | "ClusterRole", name: string): StatusError { return notFound({ group: GROUP, resource: kind.toLowerCase() }, name); }

/** ClusterRoleBinding "x" of ClusterRole "y" to Group "z" */
function describeBinding({ metadata: { name, namespace = "" }, roleRef, subjects }: Readonly<ClusterRoleBinding | RoleBinding>, who: string): string {
  const subject = subjects?.find((one) => [...subjectValues([one], namespace)].includes(who));
  const account = subject?.kind === "ServiceAccount" ? `${subject.name}/${subject.namespace || namespace}` : subject?.name ?? "";
  const title = namespace === "" ? `ClusterRoleBinding ${goQuote(name)}` : `RoleBinding ${goQuote(`${name}/${namespace}`)}`;
  return `${title} of ${roleRef.kind} ${goQuote(roleRef.name)} to ${subject?.kind ?? "User"} ${goQuote(account)}`;
}

/** Texts of rules told of one user, from which on what he is bound to twice is told once. */
const TOLD_MAX = 100_000;

export function rbacAuthorizer(resolver: RuleResolver): Authorizer {
  return {
    authorize(attributes) {
      const errors: string[] = [];
      const namespace = attributes.isResource ? attributes.namespace : "";
      for (const { rule, describe } of resolver.rulesOf(attributes.user, namespace, (error) => errors.push(error.message)))
        if (ruleAllows(rule, attributes)) return { decision: "allow", reason: `RBAC: allowed by ${describe()}` };
      return { decision: "no-opinion", reason: errors.length > 0 ? `RBAC: ${aggregate(errors)}` : "" };
    },
    async rulesFor(user, namespace) {
      const errors: string[] = [];
      const resourceRules: ResourceRule[] = [];
      const pathRules: PathRule[] = [];
      let told = 0;
      for (const { rule: { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } } of resolver.rulesOf(user, namespace, (error) => errors.push(error.message), () => told < TOLD_MAX)) {
        told += verbs.length + apiGroups.length + resources.length + resourceNames.length + nonResourceURLs.length;
        if (resources.length > 0) resourceRules.push({ verbs, apiGroups, resources, resourceNames });
        if (nonResourceURLs.length > 0) pathRules.push({ verbs, nonResourceURLs });
      }
      return { resourceRules, pathRules, incomplete: false, ...(errors.length > 0 ? { evaluationError: aggregate(errors) } : {}) };
    },
  };
}
