/**
 * The roles and bindings every cluster starts with, read from bootstrap-policy.txt, where the format is explained.
 * All carry the label kubernetes.io/bootstrapping=rbac-defaults and the annotation that lets them be kept up to date.
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject } from "../api/gen/rbac.v1.ts";
import type { NewObject } from "../api/meta/object-meta.ts";
import policyText from "./bootstrap-policy.txt" with { type: "text" };

export interface BootstrapPolicy {
  readonly clusterRoles: readonly NewObject<ClusterRole>[];
  readonly clusterRoleBindings: readonly NewObject<ClusterRoleBinding>[];
  readonly roles: readonly NewObject<Role>[];
  readonly roleBindings: readonly NewObject<RoleBinding>[];
}

const GROUP = "rbac.authorization.k8s.io";
const API_VERSION = `${GROUP}/v1`;
export const AUTO_UPDATE_ANNOTATION = "rbac.authorization.kubernetes.io/autoupdate";
const AGGREGATE_LABEL = "rbac.authorization.k8s.io/aggregate-to-";

const GATE = /^\?(\w+) /;

/** `gates`: those that are off by default and were switched on. */
export function bootstrapPolicy(gates: ReadonlySet<string>): BootstrapPolicy {
  const clusterRoles: NewObject<ClusterRole>[] = [];
  const clusterRoleBindings: NewObject<ClusterRoleBinding>[] = [];
  const roles: NewObject<Role>[] = [];
  const roleBindings: NewObject<RoleBinding>[] = [];
  let rules: PolicyRule[] = [];
  for (const written of policyText.split("\n")) {
    const gate = GATE.exec(written), line = gate ? written.slice(gate[0].length) : written;
    if (line === "" || line.startsWith("#") || (gate && !gates.has(gate[1]!))) continue;
    if (line.startsWith(" ")) {
      rules.push(ruleOf(line.slice(1)));
      continue;
    }
    const [kind, ...words] = line.split(" ");
    rules = [];
    if (kind === "C") clusterRoles.push(clusterRoleOf(words, rules));
    else if (kind === "R") roles.push({ apiVersion: API_VERSION, kind: "Role", metadata: metadataOf(words[1]!, words[0]), rules });
    else if (kind === "B") clusterRoleBindings.push(clusterRoleBindingOf(words[0]!, words[0]!, words.slice(1)));
    else if (kind === "X") clusterRoleBindings.push(clusterRoleBindingOf(words[0]!, words[1]!, words.slice(2)));
    else if (kind === "N") roleBindings.push({
      apiVersion: API_VERSION, kind: "RoleBinding", metadata: metadataOf(words[1]!, words[0]),
      roleRef: { apiGroup: GROUP, kind: "Role", name: words[2]! }, ...subjectsOf(words.slice(3)),
    });
    else throw new Error(`bootstrap policy: cannot read ${line}`);
  }
  return { clusterRoles, clusterRoleBindings, roles, roleBindings };
}

function metadataOf(name: string, namespace?: string, labels: Record<string, string> = {}) {
  return { name, ...(namespace === undefined ? {} : { namespace }), annotations: { [AUTO_UPDATE_ANNOTATION]: "true" }, labels: { "kubernetes.io/bootstrapping": "rbac-defaults", ...labels } };
}

function clusterRoleOf([name = "", ...marks]: readonly string[], rules: PolicyRule[]): NewObject<ClusterRole> {
  const labelled = (mark: string) => marks.filter((one) => one.startsWith(mark)).map((one) => `${AGGREGATE_LABEL}${one.slice(1)}`);
  const gathers = labelled("@");
  return {
    apiVersion: API_VERSION, kind: "ClusterRole", metadata: metadataOf(name, undefined, Object.fromEntries(labelled("+").map((label) => [label, "true"]))),
    ...(gathers.length > 0 ? { rules: null!, aggregationRule: { clusterRoleSelectors: gathers.map((label) => ({ matchLabels: { [label]: "true" } })) } } : { rules }), // who gathers rules has none to own
  };
}

function clusterRoleBindingOf(name: string, role: string, subjects: readonly string[]): NewObject<ClusterRoleBinding> {
  return { apiVersion: API_VERSION, kind: "ClusterRoleBinding", metadata: metadataOf(name), roleRef: { apiGroup: GROUP, kind: "ClusterRole", name: role }, ...subjectsOf(subjects) };
}

function ruleOf(line: string): PolicyRule {
  const [verbs = [], groups = [], resources = [], names] = line.split(" ").map((list) => list.split(","));
  if (groups[0] === "url") return { verbs, nonResourceURLs: resources };
  return { verbs, apiGroups: groups.map((group) => (group === "core" ? "" : group)), resources, ...(names ? { resourceNames: names } : {}) };
}

function subjectsOf(words: readonly string[]): { subjects?: Subject[] } {
  const subjects = words.map((word): Subject => {
    const name = word.slice(2);
    if (word.startsWith("u:")) return { kind: "User", apiGroup: GROUP, name };
    if (word.startsWith("g:")) return { kind: "Group", apiGroup: GROUP, name };
    const [namespace = "", account = ""] = name.split("/");
    return { kind: "ServiceAccount", name: account, namespace };
  });
  return subjects.length > 0 ? { subjects } : {};
}
