import { expect, test } from "vitest";
import type { PolicyRule, RoleBinding, RoleRef, Subject } from "../../api/gen/rbac.v1.ts";
import { formatFieldError } from "../../api/meta/field-error.ts";
import { roleBindings } from "./bindings.ts";
import { clusterRoles, roles } from "./roles.ts";

const metadata = { name: "a:b", namespace: "d", uid: "u", resourceVersion: "", creationTimestamp: "" };

test.each<[rule: Partial<PolicyRule>, namespaced: string[], cluster: string[]]>([
  [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }, [], []],
  [{ apiGroups: [""], resources: ["pods"] }, ["rules[0].verbs: Required value: verbs must contain at least one value"], ["rules[0].verbs: Required value: verbs must contain at least one value"]],
  [{ verbs: ["get"], nonResourceURLs: ["/x"] }, ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'], []],
])("rule %j", (rule, namespaced, cluster) => {
  const object = { apiVersion: "", kind: "", metadata, rules: [rule as PolicyRule] };
  expect([...roles.validate!(object)].map(formatFieldError)).toEqual(namespaced);
  expect([...clusterRoles.validate!(object)].map(formatFieldError)).toEqual(cluster);
});

test("a selector that cannot be read is told as a whole, too", () => {
  const object = { apiVersion: "", kind: "", metadata, rules: [], aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: "b" } }, { matchLabels: { a: "not valid" } }] } };
  expect([...clusterRoles.validate!(object)].map(formatFieldError).map((text) => text.slice(0, 100))).toEqual([
    expect.stringMatching(/^aggregationRule\.clusterRoleSelectors\[1\]\.matchLabels: Invalid value: "not valid": a valid label/), "aggregationRule.clusterRoleSelectors[1]: Invalid value: null: invalid label selector.",
  ]);
});

test("a binding says whose groups its names are of, and keeps its role", () => {
  const bind = (name: string): RoleBinding => {
    const object: RoleBinding = { apiVersion: "", kind: "", metadata, roleRef: { kind: "Role", name } as RoleRef, subjects: [{ kind: "User", name: "u" }, { kind: "ServiceAccount", name: "s" } as Subject, { kind: "Robot", name: "r" }] };
    roleBindings.defaults!(object);
    return object;
  };
  expect(bind("r").subjects!.map(({ apiGroup }) => apiGroup)).toEqual(["rbac.authorization.k8s.io", undefined, undefined]);
  expect([...roleBindings.validate!(bind("r"))].map(formatFieldError)).toEqual(['subjects[2].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"']);
  expect([...roleBindings.validateUpdate!(bind("r"), bind("q"))].map(formatFieldError))
    .toEqual(['roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"r"}: cannot change roleRef']);
});
