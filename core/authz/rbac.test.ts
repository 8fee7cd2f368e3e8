import { describe, expect, test, vi } from "vitest";
import { fakeApi } from "../../test/fake-api.ts";
import { growth, Reads } from "../../test/reads.ts";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding } from "../api/gen/rbac.v1.ts";
import type { StatusError } from "../api/meta/status-error.ts";
import type { Attributes } from "../api/request/attributes.ts";
import type { UserInfo } from "../api/request/user.ts";
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES } from "../client/resources.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { authorizerUnion, superuserAuthorizer } from "./authz.ts";
import { bootstrapPolicy } from "./bootstrap-policy.ts";
import { escalationGuard, type RbacObject } from "./escalation.ts";
import { rbacAuthorizer, ruleResolver } from "./rbac.ts";
import { ensureBootstrapPolicy, reconcileBinding, reconcileRole } from "./reconcile-policy.ts";
import { evaluateReview } from "./reviews.ts";
import { compactRules, formatRule, ruleAllows, uncoveredRules } from "./rules.ts";

const API = "rbac.authorization.k8s.io/v1";
const POLICY = bootstrapPolicy(new Set());

function world() {
  const clusterRoles = staticInformer<ClusterRole>(...POLICY.clusterRoles.map((role) => stored<ClusterRole>(API, "ClusterRole", role.metadata.name!, role)));
  const clusterRoleBindings = staticInformer<ClusterRoleBinding>(...POLICY.clusterRoleBindings.map((binding) => stored<ClusterRoleBinding>(API, "ClusterRoleBinding", binding.metadata.name!, binding)));
  const roles = staticInformer<Role>();
  const roleBindings = staticInformer<RoleBinding>();
  const resolver = ruleResolver({ roles, roleBindings, clusterRoles, clusterRoleBindings });
  const authorizer = authorizerUnion([superuserAuthorizer, rbacAuthorizer(resolver)]);
  const role = (name: string, ...rules: PolicyRule[]): void => roles.put(stored<Role>(API, "Role", name, { rules }));
  const clusterRole = (name: string, ...rules: PolicyRule[]): void => clusterRoles.put(stored<ClusterRole>(API, "ClusterRole", name, { rules }));
  const bind = (name: string, kind: "Role" | "ClusterRole", roleName: string, ...subjects: object[]): void => {
    const rest = { roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name: roleName }, subjects };
    if (name.includes("/")) roleBindings.put(stored<RoleBinding>(API, "RoleBinding", name, rest));
    else clusterRoleBindings.put(stored<ClusterRoleBinding>(API, "ClusterRoleBinding", name, rest));
  };
  return { clusterRoles, clusterRoleBindings, roles, roleBindings, resolver, authorizer, role, clusterRole, bind, guard: escalationGuard(authorizer, resolver, systemClock) };
}

const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups: [...groups, "system:authenticated"] });

/** "verb group/resource/subresource namespace name" or "verb /path". */
function ask(who: UserInfo, text: string): Attributes {
  const [verb = "", what = "", namespace = "", name = ""] = text.split(" ");
  if (what.startsWith("/")) return { isResource: false, verb, path: what, user: who };
  const [group = "", resource = "", subresource = ""] = what.split("/");
  return { isResource: true, verb, group: group === "core" ? "" : group, version: "v1", resource, subresource, namespace: namespace === "-" ? "" : namespace, name, path: "", user: who };
}

const PODS_READ: PolicyRule = { verbs: ["get", "list"], apiGroups: [""], resources: ["pods", "pods/log"] };

describe("one rule", () => {
  const nobody = user("x");
  test.each<[PolicyRule, string, boolean]>([
    [PODS_READ, "get core/pods ns a", true], [PODS_READ, "delete core/pods ns a", false], [PODS_READ, "get core/pods/log ns a", true], [PODS_READ, "get core/pods/exec ns a", false], [PODS_READ, "get apps/pods ns a", false],
    [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }, "anything x/y/z", true], [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }, "get /healthz", false],
    [{ verbs: ["update"], apiGroups: ["apps"], resources: ["*/scale"] }, "update apps/deployments/scale ns a", true], [{ verbs: ["update"], apiGroups: ["apps"], resources: ["*/scale"] }, "update apps/deployments ns a", false],
    [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"], resourceNames: ["a"] }, "get core/secrets ns a", true], [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"], resourceNames: ["a"] }, "get core/secrets ns b", false],
    [{ verbs: ["list"], apiGroups: [""], resources: ["secrets"], resourceNames: ["a"] }, "list core/secrets ns", false],
    [{ verbs: ["get"], nonResourceURLs: ["/healthz/*"] }, "get /healthz/etcd", true], [{ verbs: ["get"], nonResourceURLs: ["/healthz/*"] }, "get /healthz", false], [{ verbs: ["get"], nonResourceURLs: ["*"] }, "get /x", true],
  ])("%j %s %s", (rule, text, allowed) => expect(ruleAllows(rule, ask(nobody, text))).toBe(allowed));
});

describe("bindings", () => {
  const w = world();
  w.role("default/reader", PODS_READ);
  w.clusterRole("secret-reader", { verbs: ["get"], apiGroups: [""], resources: ["secrets"] });
  w.bind("default/readers", "Role", "reader", { kind: "Group", name: "dev" }, { kind: "ServiceAccount", name: "web" }, { kind: "ServiceAccount", name: "ci", namespace: "build" });
  w.bind("default/secrets", "ClusterRole", "secret-reader", { kind: "User", name: "jane" });
  w.bind("default/broken", "Role", "gone", { kind: "User", name: "joe" });
  w.bind("broken", "ClusterRole", "gone-too", { kind: "User", name: "joe" });

  test.each([
    [user("jane", "dev"), "list core/pods default", 'allow RBAC: allowed by RoleBinding "readers/default" of Role "reader" to Group "dev"'],
    [user("jane", "dev"), "list core/pods other", "no-opinion "],
    [user("jane", "dev"), "list core/pods -", "no-opinion "],
    [user("system:serviceaccount:default:web"), "get core/pods default a", 'allow RBAC: allowed by RoleBinding "readers/default" of Role "reader" to ServiceAccount "web/default"'],
    [user("system:serviceaccount:other:web"), "get core/pods default a", "no-opinion "],
    [user("system:serviceaccount:build:ci"), "get core/pods default a", 'allow RBAC: allowed by RoleBinding "readers/default" of Role "reader" to ServiceAccount "ci/build"'],
    [user("jane"), "get core/secrets default a", 'allow RBAC: allowed by RoleBinding "secrets/default" of ClusterRole "secret-reader" to User "jane"'],
    [user("jane"), "get core/secrets other a", "no-opinion "],
    [user("joe"), "get core/pods default a", 'no-opinion RBAC: [clusterrole.rbac.authorization.k8s.io "gone-too" not found, role.rbac.authorization.k8s.io "gone" not found]'],
    [user("root", "system:masters"), "delete core/nodes - a", "allow "],
    [user("jane"), "get /apis/apps/v1", 'allow RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"'],
    [{ name: "system:anonymous", groups: ["system:unauthenticated"] }, "get /version", 'allow RBAC: allowed by ClusterRoleBinding "system:public-info-viewer" of ClusterRole "system:public-info-viewer" to Group "system:unauthenticated"'],
    [{ name: "system:anonymous", groups: ["system:unauthenticated"] }, "get /apis", "no-opinion "],
    [user("system:kube-scheduler"), "create core/pods/binding default a", 'allow RBAC: allowed by ClusterRoleBinding "system:kube-scheduler" of ClusterRole "system:kube-scheduler" to User "system:kube-scheduler"'],
    [user("system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccounts"), "create core/pods default", 'allow RBAC: allowed by ClusterRoleBinding "system:controller:replicaset-controller" of ClusterRole "system:controller:replicaset-controller" to ServiceAccount "replicaset-controller/kube-system"'],
  ] as readonly [UserInfo, string, string][])("%j %s", async (who, text, decision) => {
    const { decision: found, reason } = await w.authorizer.authorize(ask(who, text));
    expect(`${found} ${reason}`).toBe(decision);
  });

  test("a change is seen at once", async () => {
    const live = world();
    live.role("default/reader", PODS_READ);
    const decide = async (): Promise<string> => (await live.authorizer.authorize(ask(user("kim"), "get core/pods default a"))).decision;
    expect(await decide()).toBe("no-opinion");
    live.bind("default/kim", "Role", "reader", { kind: "User", name: "kim" });
    expect(await decide()).toBe("allow");
    live.role("default/reader", { verbs: ["get"], apiGroups: [""], resources: ["services"] });
    expect(await decide()).toBe("no-opinion");
  });

  test("ten thousand bindings of others cost nothing", async () => {
    const looks = async (bindings: number): Promise<number> => {
      const one = world(), reads = new Reads();
      one.role("default/reader", PODS_READ);
      for (let i = 0; i < bindings; i++) one.bind(`default/b${i}`, "Role", "reader", ...reads.of([{ kind: "User", name: `user-${i}` }]));
      const decide = (name: string) => one.authorizer.authorize(ask(user(name), "get core/pods default a"));
      await decide("user-1");
      reads.count = 0;
      expect([(await decide("user-7")).decision, (await decide("stranger")).decision]).toEqual(["allow", "no-opinion"]);
      return reads.count;
    };
    expect(await looks(10_000)).toBe(await looks(10));
  });
});

describe("rules that cover others", () => {
  test.each<[readonly PolicyRule[], readonly PolicyRule[], readonly string[]]>([
    [[{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }], [PODS_READ], []],
    [[PODS_READ], [{ verbs: ["get", "delete"], apiGroups: [""], resources: ["pods"] }], ['{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}']],
    [[{ verbs: ["get"], apiGroups: [""], resources: ["secrets"], resourceNames: ["a"] }], [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"] }], ['{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}']],
    [[{ verbs: ["get"], apiGroups: [""], resources: ["secrets"] }], [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"], resourceNames: ["a"] }], []],
    [[{ verbs: ["update"], apiGroups: ["apps"], resources: ["*/scale"] }], [{ verbs: ["update"], apiGroups: ["apps"], resources: ["deployments/scale"] }], []],
    [[{ verbs: ["get"], nonResourceURLs: ["/healthz*"] }], [{ verbs: ["get", "post"], nonResourceURLs: ["/healthz/etcd"] }], ['{NonResourceURLs:["/healthz/etcd"], Verbs:["post"]}']],
    [[], [{ verbs: ["get", "list"], apiGroups: ["", "apps"], resources: ["pods"] }], ['{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}', '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}']],
  ])("%#", (owned, wanted, missing) => expect(compactRules(uncoveredRules(owned, wanted)).map(formatRule)).toEqual(missing));

  test.each<[string, (i: number) => PolicyRule]>([
    ["of a resource each", (i) => ({ verbs: ["get"], apiGroups: [""], resources: ["pods", `r${i}`] })],
    ["of a verb each", (i) => ({ verbs: ["get", `v${i}`], apiGroups: [""], resources: ["pods"] })],
    ["of a group each", (i) => ({ verbs: ["get"], apiGroups: ["", `g${i}`], resources: ["pods"] })],
    ["of a name each", (i) => ({ verbs: ["get"], apiGroups: [""], resources: ["pods"], resourceNames: ["a", `n${i}`] })],
  ])("a thousand rules %s are looked for among a thousand without looking at each for each", (_, rule) => {
    const rules = Array.from({ length: 1000 }, (__, i) => rule(i));
    const looks = [vi.spyOn(Array.prototype, "includes"), vi.spyOn(Set.prototype, "has")];
    try {
      expect(uncoveredRules(rules.toReversed(), rules).length).toBe(0);
      expect(looks.reduce((sum, { mock: { calls } }) => sum + calls.length, 0)).toBeLessThan(1000 * 20);
    } finally {
      for (const look of looks) look.mockRestore();
    }
  });
});

describe("nobody grants what they do not hold", () => {
  const w = world();
  w.bind("default/jane-admins", "ClusterRole", "role-editor", { kind: "User", name: "jane" });
  w.clusterRole("role-editor", { verbs: ["create", "update"], apiGroups: ["rbac.authorization.k8s.io"], resources: ["roles", "rolebindings"] }, PODS_READ);
  w.clusterRole("pods", PODS_READ);
  w.clusterRole("escalator", { verbs: ["escalate"], apiGroups: ["rbac.authorization.k8s.io"], resources: ["roles"] });
  w.clusterRole("binder", { verbs: ["bind"], apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles"], resourceNames: ["cluster-admin"] });
  w.bind("default/eve", "ClusterRole", "escalator", { kind: "User", name: "eve" });
  w.bind("default/bob", "ClusterRole", "binder", { kind: "User", name: "bob" });
  w.bind("default/lost", "ClusterRole", "gone", { kind: "User", name: "lost" });
  const secrets: PolicyRule = { verbs: ["get", "list"], apiGroups: [""], resources: ["secrets"] };
  const role = (...rules: PolicyRule[]): Role => stored<Role>(API, "Role", "default/r", { rules });
  const binding = (kind: string, name: string): RoleBinding => stored<RoleBinding>(API, "RoleBinding", "default/b", { roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name } });
  const check = async (who: UserInfo, object: RbacObject, old?: RbacObject): Promise<string> => {
    const cluster = object.metadata.namespace === undefined;
    const resource = `${cluster ? "cluster" : ""}${object.kind.endsWith("Binding") ? "rolebindings" : "roles"}` as "roles";
    try { await w.guard({ resource, namespace: object.metadata.namespace ?? "", name: object.metadata.name, object, old, user: who }); return "ok"; } catch (error) { return (error as StatusError).message; }
  };

  test.each<[string, UserInfo, RbacObject, string]>([
    ["what one holds", user("jane"), role(PODS_READ), "ok"],
    ["more than one holds", user("jane", "dev"), role(secrets, PODS_READ, { verbs: ["get"], apiGroups: ["apps"], resources: ["deployments"] }),
      'roles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}\n{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}'],
    ["system:masters", user("root", "system:masters"), role(secrets), "ok"],
    ["escalate", user("eve"), role(secrets), "ok"],
    ["binding a role one holds", user("jane"), binding("ClusterRole", "pods"), "ok"],
    ["binding one that gives more", user("jane"), binding("ClusterRole", "cluster-admin"),
      'rolebindings.rbac.authorization.k8s.io "b" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}'],
    ["more, by who is bound to a role that is not there", user("lost"), role(secrets),
      'roles.rbac.authorization.k8s.io "r" is forbidden: user "lost" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}; resolution errors: [clusterrole.rbac.authorization.k8s.io "gone" not found]'],
    ["bind", user("bob"), binding("ClusterRole", "cluster-admin"), "ok"],
    ["bind, another role", user("bob"), binding("ClusterRole", "view"), 'rolebindings.rbac.authorization.k8s.io "b" is forbidden'],
    ["a role that does not exist", user("jane"), binding("Role", "gone"), 'rolebindings.rbac.authorization.k8s.io "gone" not found'],
    ["what is no kind of role", user("jane"), binding("Foo", "a"), 'unsupported role reference kind: "Foo"'],
    ["a role without a name", user("jane"), binding("Role", ""), "Name parameter required."],
    ["a role whose name is a path", user("jane"), binding("Role", "a/b"), `Name parameter invalid: "a/b": may not contain '/'`],
    ["aggregation", user("jane"), stored<ClusterRole>(API, "ClusterRole", "agg", { rules: [], aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] } }), 'clusterroles.rbac.authorization.k8s.io "agg" is forbidden: must have cluster-admin privileges to use the aggregationRule'],
  ])("%s", async (_name, who, object, answer) => {
    if (_name === "bind, another role") expect(await check(who, object)).toBe("ok"); // view has no rules before aggregation
    else expect(await check(who, object)).toBe(answer);
  });

  test("finalizers and owners may be changed by whoever may write", async () => {
    const old = role(secrets);
    expect(await check(user("jane"), { ...old, metadata: { ...old.metadata, finalizers: ["x/y"], ownerReferences: [] } }, { ...old, metadata: { ...old.metadata, managedFields: [] } })).toBe("ok");
    expect(await check(user("jane"), { ...old, metadata: { ...old.metadata, labels: { a: "b" } } }, old)).toContain("not currently held");
  });
});

describe("bootstrap policy", () => {
  test("is upstream's", () => {
    const upstreams = (objects: readonly { readonly metadata: { readonly name?: string | undefined } }[]): number => objects.filter(({ metadata }) => !metadata.name?.startsWith("coracle:")).length;
    expect([POLICY.clusterRoles, POLICY.clusterRoleBindings, POLICY.roles, POLICY.roleBindings].map(upstreams)).toEqual([69, 50, 7, 7]);
    expect(POLICY.clusterRoles.find(({ metadata }) => metadata.name === "edit")).toEqual({
      apiVersion: API, kind: "ClusterRole", rules: null, aggregationRule: { clusterRoleSelectors: [{ matchLabels: { "rbac.authorization.k8s.io/aggregate-to-edit": "true" } }] },
      metadata: { name: "edit", annotations: { "rbac.authorization.kubernetes.io/autoupdate": "true" }, labels: { "kubernetes.io/bootstrapping": "rbac-defaults", "rbac.authorization.k8s.io/aggregate-to-admin": "true" } },
    });
    expect(POLICY.roleBindings.find(({ metadata }) => metadata.name === "system::leader-locking-kube-scheduler")).toMatchObject({
      metadata: { namespace: "kube-system" }, roleRef: { kind: "Role", name: "system::leader-locking-kube-scheduler" },
      subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "system:kube-scheduler" }, { kind: "ServiceAccount", name: "kube-scheduler", namespace: "kube-system" }],
    });
    const names = new Set(POLICY.clusterRoles.map(({ metadata }) => metadata.name));
    for (const { roleRef } of POLICY.clusterRoleBindings) expect(names).toContain(roleRef.name);
  });

  test("is written once, mended at the next start, and what administrators said stays", async () => {
    const api = fakeApi();
    const signal = new AbortController().signal;
    const ensure = (): Promise<void> => ensureBootstrapPolicy(api.client, { signal, log: silentLog, policy: POLICY });
    await ensure();
    expect(api.all(CLUSTER_ROLES)).toHaveLength(POLICY.clusterRoles.length);
    const writes = (): number => api.requests.filter((line) => !line.startsWith("GET")).length;
    const before = writes();
    await ensure();
    expect(writes()).toBe(before);

    const roles = api.client.resource(CLUSTER_ROLES);
    const bindings = api.client.resource(CLUSTER_ROLE_BINDINGS);
    const get = (name: string) => roles.get({ metadata: { name } }, { signal });
    const dns = await get("system:kube-dns");
    await roles.update({ ...dns, rules: [{ verbs: ["list"], apiGroups: [""], resources: ["endpoints"] }, { verbs: ["get"], apiGroups: [""], resources: ["nodes"] }] }, { signal });
    const heapster = await get("system:heapster");
    await roles.update({ ...heapster, metadata: { ...heapster.metadata, annotations: { "rbac.authorization.kubernetes.io/autoupdate": "false" } }, rules: [] }, { signal });
    const basic = await bindings.get({ metadata: { name: "system:basic-user" } }, { signal });
    await bindings.update({ ...basic, subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "jane" }] }, { signal });
    await bindings.delete({ metadata: { name: "system:monitoring" } }, {}, { signal });
    await ensure();
    expect((await get("system:kube-dns")).rules).toEqual([
      { verbs: ["list"], apiGroups: [""], resources: ["endpoints"] }, { verbs: ["get"], apiGroups: [""], resources: ["nodes"] },
      { verbs: ["watch"], apiGroups: [""], resources: ["endpoints"] }, { verbs: ["list"], apiGroups: [""], resources: ["services"] }, { verbs: ["watch"], apiGroups: [""], resources: ["services"] },
    ]);
    expect((await get("system:heapster")).rules).toEqual([]);
    expect((await bindings.get({ metadata: { name: "system:basic-user" } }, { signal })).subjects?.map(({ name }) => name)).toEqual(["jane", "system:authenticated"]);
    expect((await bindings.get({ metadata: { name: "system:monitoring" } }, { signal })).roleRef.name).toBe("system:monitoring");
  });

  test("what anybody may see is as narrow as what was made narrower, if its binding is not there", async () => {
    const api = fakeApi();
    const signal = new AbortController().signal;
    const ensure = (): Promise<void> => ensureBootstrapPolicy(api.client, { signal, log: silentLog, policy: POLICY });
    await ensure();
    const bindings = api.client.resource(CLUSTER_ROLE_BINDINGS);
    const get = (name: string) => bindings.get({ metadata: { name } }, { signal });
    const discovery = await get("system:discovery");
    const annotations = { "rbac.authorization.kubernetes.io/autoupdate": "false", why: "narrow" }, subjects = [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "jane" }];
    await bindings.update({ ...discovery, metadata: { ...discovery.metadata, annotations }, subjects }, { signal });
    await bindings.delete({ metadata: { name: "system:public-info-viewer" } }, {}, { signal });
    await ensure();
    expect(await get("system:public-info-viewer")).toMatchObject({ metadata: { annotations }, roleRef: { name: "system:public-info-viewer" }, subjects });
  });

  test("another role, another binding", () => {
    const expected = POLICY.clusterRoleBindings.find(({ metadata }) => metadata.name === "system:monitoring")!;
    const existing = stored<ClusterRoleBinding>(API, "ClusterRoleBinding", "system:monitoring", { ...expected, roleRef: { ...expected.roleRef, name: "cluster-admin" } });
    expect(reconcileBinding(existing, expected)).toEqual({ action: "recreate", object: expected });
    const edit = POLICY.clusterRoles.find(({ metadata }) => metadata.name === "edit")!;
    const aggregated = stored<ClusterRole>(API, "ClusterRole", "edit", { ...edit, rules: [PODS_READ] });
    expect(reconcileRole(aggregated, edit)).toEqual({ action: "none" });
    expect(reconcileRole({ ...aggregated, aggregationRule: undefined }, edit)).toMatchObject({ action: "update", object: { aggregationRule: edit.aggregationRule, rules: [PODS_READ] } });
  });
});

describe("reviews", () => {
  const w = world();
  const review = (kind: string, spec: object, metadata: object = {}) => ({ apiVersion: "authorization.k8s.io/v1", kind, metadata, spec }) as never;
  const attributes = { resourceAttributes: { verb: "list", group: "", resource: "endpoints", namespace: "kube-system" } };

  test("of another user, of oneself, within a namespace", async () => {
    const dns = { user: "system:serviceaccount:kube-system:kube-dns" };
    expect((await evaluateReview("SubjectAccessReview", review("SubjectAccessReview", { ...dns, ...attributes }), w.authorizer, { user: user("x") })).status).toEqual({
      allowed: true, reason: 'RBAC: allowed by ClusterRoleBinding "system:kube-dns" of ClusterRole "system:kube-dns" to ServiceAccount "kube-dns/kube-system"',
    });
    expect((await evaluateReview("SelfSubjectAccessReview", review("SelfSubjectAccessReview", attributes), w.authorizer, { user: user("x") })).status).toEqual({ allowed: false });
    expect((await evaluateReview("LocalSubjectAccessReview", review("LocalSubjectAccessReview", { ...dns, ...attributes }, { namespace: "kube-system" }), w.authorizer, { user: user("x"), namespace: "kube-system" })).status).toMatchObject({ allowed: true });
    expect((await evaluateReview("SelfSubjectAccessReview", review("SelfSubjectAccessReview", { nonResourceAttributes: { verb: "get", path: "/api" } }), w.authorizer, { user: user("x") })).status).toMatchObject({ allowed: true });
    const odd = { resourceAttributes: { ...attributes.resourceAttributes, fieldSelector: { requirements: [{ key: "a", operator: "In", values: ["b"] }, { key: "a", operator: "Exists" }] }, labelSelector: { rawSelector: "a in (" } } };
    expect((await evaluateReview("SelfSubjectAccessReview", review("SelfSubjectAccessReview", odd), w.authorizer, { user: user("x") })).status).toEqual({
      allowed: false, evaluationError: "spec.resourceAttributes.fieldSelector partially ignored due to parse error; spec.resourceAttributes.labelSelector ignored due to parse error",
    });
  });

  test.each([
    ["SubjectAccessReview", {}, {}, '.authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must be specified]'],
    ["SelfSubjectAccessReview", { ...attributes, nonResourceAttributes: { path: "/", verb: "get" } }, {}, 'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: cannot be specified in combination with resourceAttributes'],
    ["SelfSubjectAccessReview", attributes, { name: "x" }, 'metadata: Invalid value: {"name":"x"}: must be empty'],
    ["LocalSubjectAccessReview", { user: "x", ...attributes }, { namespace: "other" }, 'spec.resourceAttributes.namespace: Invalid value: "kube-system": must match metadata.namespace'],
    ["SubjectAccessReview", { user: "x", resourceAttributes: { ...attributes.resourceAttributes, labelSelector: { requirements: [{ key: "a", operator: "In" }] } } }, {}, "spec.resourceAttributes.labelSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
    ["SubjectAccessReview", { user: "x", resourceAttributes: { ...attributes.resourceAttributes, fieldSelector: { requirements: [{ key: "", operator: "Newer", values: ["b"] }] } } }, {}, "spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified"],
    ["SelfSubjectRulesReview", {}, {}, "no namespace on request"],
  ] as const)("%s %j %j", async (kind, spec, metadata, message) => {
    await expect(evaluateReview(kind, review(kind, spec, metadata), w.authorizer, { user: user("x") })).rejects.toThrow(message);
  });

  test("what may I do here", async () => {
    const answer = await evaluateReview("SelfSubjectRulesReview", review("SelfSubjectRulesReview", { namespace: "default" }), w.authorizer, { user: user("x") });
    expect(Object.keys(answer)).toEqual(["kind", "apiVersion", "metadata", "spec", "status"]);
    const { status } = answer;
    expect(status).toEqual({
      incomplete: false,
      resourceRules: [
        { verbs: ["create"], apiGroups: ["authorization.k8s.io"], resources: ["selfsubjectaccessreviews", "selfsubjectrulesreviews"] }, { verbs: ["create"], apiGroups: ["authentication.k8s.io"], resources: ["selfsubjectreviews"] },
      ],
      nonResourceRules: expect.arrayContaining([{ verbs: ["get"], nonResourceURLs: ["/healthz", "/livez", "/readyz", "/version", "/version/"] }]),
    });
  });
});

test("what is behind a gate has its roles, and nodes their rule, where that is switched on", () => {
  const names = (gates: readonly string[]): string[] => bootstrapPolicy(new Set(gates)).clusterRoles.map(({ metadata }) => metadata.name ?? "");
  const added = (...gates: string[]): string[] => names(gates).filter((name) => !names([]).includes(name));
  expect(added("ClusterTrustBundle")).toEqual(["system:cluster-trust-bundle-discovery", "system:controller:kube-apiserver-serving-clustertrustbundle-publisher"]);
  expect(added("StorageVersionAPI")).toEqual(["system:controller:storage-version-garbage-collector"]);
  expect(added("StorageVersionMigrator")).toEqual(["system:controller:storage-version-migrator-controller"]);
  expect(added("PodCertificateRequest")).toEqual(["system:controller:podcertificaterequestcleaner"]);
  expect(added("GenericWorkload")).toEqual(["system:controller:podgroup-protection-controller"]);
  const ofGroups = (...gates: string[]): unknown[] => bootstrapPolicy(new Set(gates)).clusterRoles.flatMap(({ metadata: { name }, rules }) => (rules ?? []).filter(({ apiGroups, resources }) => apiGroups?.includes("scheduling.k8s.io") && resources!.some((one) => one.startsWith("podgroups"))).map(({ verbs, resources }) => `${name} ${verbs.join()} ${resources!.join()}`));
  expect([ofGroups(), ofGroups("GenericWorkload"), ofGroups("WorkloadWithJob")]).toEqual([[], [
    "system:aggregate-to-edit create,delete,deletecollection,patch,update podgroups,workloads", "system:aggregate-to-view get,list,watch podgroups,podgroups/status,workloads",
    "system:kube-scheduler get,list,watch podgroups", "system:kube-scheduler patch,update podgroups/status", "system:controller:podgroup-protection-controller get,list,update,watch podgroups",
  ], ["system:controller:job-controller create,get,list,watch podgroups,workloads"]]);
  const nodes = (gates: readonly string[]) => bootstrapPolicy(new Set(gates)).clusterRoles.find(({ metadata }) => metadata.name === "system:node")!.rules!.filter(({ resources }) => resources?.includes("clustertrustbundles"));
  expect([nodes([]), nodes(["ClusterTrustBundle"])]).toEqual([[], [{ verbs: ["get", "list", "watch"], apiGroups: ["certificates.k8s.io"], resources: ["clustertrustbundles"] }]]);
});

test("rules whose lists make millions of rules are covered as wholes, and of what is not covered the first are told", () => {
  const names = (what: string): string[] => Array.from({ length: 2000 }, (_, i) => `${what}${i}`);
  const wanted = { verbs: names("v"), apiGroups: ["a", "b"], resources: [...names("r"), "x"], resourceNames: names("n") };
  const owned = ["a", "b"].map((group) => ({ verbs: ["*"], apiGroups: [group], resources: ["*"] }));
  expect(uncoveredRules(owned, [wanted])).toEqual([]);
  const uncovered = uncoveredRules(owned.slice(0, 1), [wanted]);
  expect(uncovered).toHaveLength(10_000);
  expect(uncovered.slice(1999, 2001)).toEqual([
    { verbs: ["v0"], apiGroups: ["b"], resources: ["r0"], resourceNames: ["n1999"] }, { verbs: ["v1"], apiGroups: ["b"], resources: ["r0"], resourceNames: ["n0"] },
  ]);
});

describe("a role that is bound very often", () => {
  const rules = (n: number): PolicyRule[] => Array.from({ length: n }, (_, i) => ({ verbs: ["get"], apiGroups: [""], resources: [`kind-${i}`] }));
  const bound = (bindings: number, given: PolicyRule[]): ReturnType<typeof world> => {
    const all = world();
    all.roles.put({ ...stored<Role>(API, "Role", "ns/many", {}), rules: given });
    for (let i = 0; i < bindings; i++) all.bind(`ns/b-${i}`, "Role", "many", { kind: "User", name: "ann" });
    return all;
  };

  test("is gone through once for each request", () => {
    expect(growth((n, reads) => {
      const authorizer = rbacAuthorizer(bound(n, reads.of(rules(n))).resolver);
      void authorizer.authorize(ask(user("ann"), "get core/secrets ns a"));
    }, 200)).toBeLessThan(3);
  });

  test.each([[3, 10, 30], [300, 2_000, 34_000]])("is told as often as it is bound, up to what anybody reads: %i bindings of %i rules", async (bindings, count, most) => {
    const { resourceRules } = await bound(bindings, rules(count)).authorizer.rulesFor(user("ann"), "ns");
    const ours = resourceRules.filter(({ resources }) => resources[0]?.startsWith("kind-"));
    expect(new Set(ours.map(({ resources }) => resources[0])).size).toBe(count);
    expect(ours.length).toBe(most);
  });
});
