import { describe, expect, test } from "vitest";
import type { StatusError } from "../api/meta/status-error.ts";
import type { Attributes } from "../api/request/attributes.ts";
import type { UserInfo } from "../api/request/user.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import type { Authorizer } from "./authorizer.ts";
import { impersonate, impersonationOf, LastModes } from "./impersonate.ts";
import { impersonationMeter } from "./impersonation-metrics.ts";

/** Allows what is listed: "verb group/resource/subresource namespace/name". */
function allowing(...allowed: string[]): Authorizer {
  return {
    authorize(attributes) {
      const text = attributes.isResource
        ? `${attributes.verb} ${attributes.group || "core"}/${attributes.resource}${attributes.subresource === "" ? "" : `/${attributes.subresource}`} ${attributes.namespace === "" ? "" : `${attributes.namespace}/`}${attributes.name}`
        : `${attributes.verb} ${attributes.path}`;
      return allowed.includes(text.trim()) ? { decision: "allow", reason: "" } : { decision: "no-opinion", reason: "" };
    },
    rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: false }),
  };
}

const CALLER: UserInfo = { name: "proxy", groups: ["system:authenticated"] };
const AGENT: UserInfo = { name: "system:serviceaccount:kube-system:agent", groups: [], extra: { "authentication.kubernetes.io/node-name": ["node-1"], "authentication.kubernetes.io/pod-name": ["p"] } };

async function become(headers: readonly (readonly [string, string])[], authorizer: Authorizer, user = CALLER, lastModes = new LastModes()): Promise<unknown> {
  const attributes: Attributes = { isResource: true, verb: "list", group: "", version: "v1", resource: "pods", subresource: "", namespace: "default", name: "", path: "", user };
  try { return (await impersonate(impersonationOf(headers)!, attributes, { authorizer, lastModes })).user; } catch (error) { return (error as StatusError).message; }
}

const JANE = ["impersonate-user", "jane"] as const;

describe("what is asked for", () => {
  test("nothing", () => expect(impersonationOf([["authorization", "x"]])).toBeUndefined());
  test("everything", () => expect(impersonationOf([JANE, ["impersonate-group", "dev"], ["impersonate-group", "a, b"], ["impersonate-uid", "7"], ["impersonate-extra-acme.com%2fproject", "x"], ["impersonate-extra-acme.com%2fproject", "y"]])).toEqual({
    name: "jane", uid: "7", groups: ["dev", "a, b"], extra: { "acme.com/project": ["x", "y"] },
  }));
  test("by names in UTF-8, of which each byte is a character here", () => expect(impersonationOf([["impersonate-user", "j\u00c3\u00bcrgen"], ["impersonate-group", "\u00e6\u0097\u00a5"], ["impersonate-uid", "\u00c3\u00bc"], ["impersonate-extra-a", "\u00c3\u00bc"]])).toEqual({
    name: "jürgen", uid: "ü", groups: ["日"], extra: { a: ["ü"] },
  }));
  test("extras may have any name", () => expect(Object.entries(impersonationOf([JANE, ["impersonate-extra-constructor", "x"], ["impersonate-extra-__proto__", "y"]])!.extra)).toEqual([["constructor", ["x"]], ["__proto__", ["y"]]]));
  test("of two users, or two uids, the first counts, also where it is empty", () => {
    expect(impersonationOf([["impersonate-user", ""], JANE])).toBeUndefined();
    expect(impersonationOf([JANE, ["impersonate-user", "b"], ["impersonate-uid", ""], ["impersonate-uid", "7"]])).toMatchObject({ name: JANE[1], uid: "" });
  });
  test.each(["impersonate-group", "impersonate-uid", "impersonate-extra-a"])("%s without a user is a bad request", (header) => expect(() => impersonationOf([[header, "x"]])).toThrow("without impersonating a user name"));
  test("and is shown as Go shows it", () => expect(() => impersonationOf([["impersonate-uid", "7"], ["impersonate-group", "g"], ["impersonate-extra-a%2fb", "c"]])).toThrow(
    `requested &user.DefaultInfo{Name:"", UID:"7", Groups:[]string{"g"}, Extra:map[string][]string{"a/b":[]string{"c"}}} without impersonating a user name`));
});

describe("the verb impersonate", () => {
  test.each([
    [[JANE], ["impersonate core/users jane"], { name: "jane", groups: ["system:authenticated"] }],
    [[JANE, ["impersonate-group", "dev"]], ["impersonate core/users jane", "impersonate core/groups dev"], { name: "jane", groups: ["dev", "system:authenticated"] }],
    [[JANE, ["impersonate-group", "system:unauthenticated"]], ["impersonate core/users jane", "impersonate core/groups system:unauthenticated"], { name: "jane", groups: ["system:unauthenticated"] }],
    [[["impersonate-user", "system:anonymous"]], ["impersonate core/users system:anonymous"], { name: "system:anonymous", groups: ["system:unauthenticated"] }],
    [[["impersonate-user", "system:serviceaccount:default:web"]], ["impersonate core/serviceaccounts default/web"], { name: "system:serviceaccount:default:web", groups: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"] }],
    [[JANE, ["impersonate-uid", "7"], ["impersonate-extra-scopes", "a"]], ["impersonate core/users jane", "impersonate authentication.k8s.io/uids 7", "impersonate authentication.k8s.io/userextras/scopes a"], { name: "jane", uid: "7", groups: ["system:authenticated"], extra: { scopes: ["a"] } }],
    [[JANE, ["impersonate-group", "system:masters"]], ["impersonate core/users jane", "impersonate core/groups system:masters"], { name: "jane", groups: ["system:masters", "system:authenticated"] }],
  ] as const)("%j", async (headers, allowed, user) => {
    expect(await become(headers, allowing(...allowed))).toEqual({ uid: undefined, extra: {}, ...user });
  });

  test("each part needs its own permission", async () => {
    const refused = 'pods is forbidden: User "proxy" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default"';
    expect(await become([JANE, ["impersonate-group", "dev"]], allowing("impersonate core/users jane"))).toBe(refused);
    expect(await become([JANE, ["impersonate-uid", "7"]], allowing("impersonate core/users jane", "impersonate core/uids 7"))).toBe(refused);
  });
});

describe("for certain requests only", () => {
  test("a user, while listing pods", async () => {
    const allowed = ["impersonate-on:user-info:list core/pods default/", "impersonate:user-info authentication.k8s.io/users jane", "impersonate:user-info authentication.k8s.io/groups dev"];
    expect(await become([JANE, ["impersonate-group", "dev"]], allowing(...allowed))).toMatchObject({ name: "jane", groups: ["dev", "system:authenticated"] });
    expect(await become([JANE], allowing(allowed[1]!))).toContain("cannot impersonate-on:user-info:list");
    expect(await become([JANE], allowing(allowed[0]!))).toBe('users.authentication.k8s.io "jane" is forbidden: User "proxy" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope');
    const masters = allowing(...allowed, "impersonate:user-info authentication.k8s.io/groups system:masters");
    expect(await become([JANE, ["impersonate-group", "system:masters"]], masters)).toContain("impersonating the system:masters group is not allowed");
  });

  test("one's own node, whichever it is", async () => {
    const allowed = allowing("impersonate-on:associated-node:list core/pods default/", "impersonate:associated-node authentication.k8s.io/nodes *");
    expect(await become([["impersonate-user", "system:node:node-1"]], allowed, AGENT)).toMatchObject({ name: "system:node:node-1", groups: ["system:nodes", "system:authenticated"] });
    expect(await become([["impersonate-user", "system:node:node-2"]], allowed, AGENT)).toContain("cannot impersonate-on:arbitrary-node:list");
    expect(await become([["impersonate-user", "system:node:node-1"], ["impersonate-group", "x"]], allowed, AGENT)).toContain("is forbidden");
  });
});

test("what last let a caller be somebody else is tried first, and says why all refuse", async () => {
  const lastModes = new LastModes();
  const authorizer = allowing("impersonate core/users jane");
  const joe = [["impersonate-user", "joe"]] as const;
  expect(await become(joe, authorizer, CALLER, lastModes)).toContain("cannot impersonate-on:user-info:list resource");
  expect(await become([JANE], authorizer, CALLER, lastModes)).toMatchObject({ name: "jane" });
  expect(await become(joe, authorizer, CALLER, lastModes)).toContain('users "joe" is forbidden: User "proxy" cannot impersonate resource "users"');
  expect(await become(joe, authorizer, { ...CALLER, name: "other" }, lastModes)).toContain("cannot impersonate-on:user-info:list resource");
});

test("who acts as somebody else is counted by how it was allowed, and who is refused", async () => {
  const metrics = metricsRegistry();
  const { measured, asked } = impersonationMeter(metrics, { uptimeMs: () => 0 });
  const user = { name: "bob", groups: [] };
  for (const constraint of ["", "impersonate:user-info"]) await measured(async () => ({ user, constraint }));
  await expect(measured(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(metrics.render().split("\n").filter((line) => line.startsWith("apiserver_impersonation_attempts_total{"))).toEqual(['decision="allowed",mode="legacy"', 'decision="allowed",mode="user-info"', 'decision="denied",mode=""'].map((labels) => `apiserver_impersonation_attempts_total{${labels}} 1`));
  const authorizer = asked({ authorize: ({ verb }) => ({ decision: verb === "impersonate:user-info" ? "no-opinion" : "allow", reason: "" }), rulesFor: () => Promise.reject(new Error("not asked")) });
  await impersonate(impersonationOf([JANE])!, { isResource: false, verb: "get", path: "/x", user }, { authorizer, lastModes: new LastModes() });
  expect(metrics.render().split("\n").filter((line) => line.startsWith("apiserver_impersonation_authorization_attempts_total{")).sort()).toEqual(['decision="allowed",mode="legacy"', 'decision="allowed",mode="user-info"', 'decision="denied",mode="user-info"'].map((labels) => `apiserver_impersonation_authorization_attempts_total{${labels}} 1`));
});

test("a key of extra must be a path below a domain", async () => {
  const wanted = (key: string) => impersonationOf([["impersonate-user", "bob"], [`impersonate-extra-${encodeURIComponent(key)}`, "v"]])!;
  const authorizer = { authorize: ({ verb }: { verb: string }) => ({ decision: verb === "impersonate" ? "no-opinion" as const : "allow" as const, reason: "" }), rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: false }) };
  const act = (key: string) => impersonate(wanted(key), { isResource: false, verb: "get", path: "/x", user: { name: "ann", groups: [] } }, { authorizer, lastModes: new LastModes() });
  expect((await act("acme.io/a/b")).user.extra).toEqual({ "acme.io/a/b": ["v"] });
  await expect(act("-bad/b")).rejects.toThrow('impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "-bad": a lowercase RFC 1123 subdomain');
});

test("who is refused because it could not be found out is told why", async () => {
  const failing = (reason: string): Authorizer => ({ authorize: () => ({ decision: "no-opinion", reason, error: "webhook down" }), rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: true }) });
  expect(await become([JANE], failing(""))).toMatch(/: webhook down$/);
  expect(await become([JANE], failing("no role"))).toMatch(/: webhook down: no role$/);
});
