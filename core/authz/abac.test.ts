import { expect, test } from "vitest";
import type { Attributes } from "../api/request/attributes.ts";
import { abacAuthorizer, readPolicies } from "./abac.ts";

const AUTHENTICATED = "system:authenticated";
const policies = (...lines: string[]) => readPolicies(lines.join("\n"), "/policies").policies;
const current = (spec: object): string => JSON.stringify({ apiVersion: "abac.authorization.kubernetes.io/v1beta1", kind: "Policy", spec });

/** "alice get pods ns1 group"; a path instead of a resource. */
function asked(text: string, groups: readonly string[] = [AUTHENTICATED]): Attributes {
  const [name = "", verb = "", what = "", namespace = "", group = ""] = text.split(" ");
  const user = { name, groups };
  return what.startsWith("/") ? { isResource: false, verb, path: what, user } : { isResource: true, verb, resource: what, namespace: namespace === "-" ? "" : namespace, group, version: "v1", subresource: "", name: "", path: "", user };
}

const FIRST = policies(
  '{"readonly": true, "resource": "events"}', '{"user":"scheduler", "readonly": true, "resource": "pods"}', '{"user":"scheduler", "resource": "bindings"}',
  '{"user":"alice", "namespace": "projectCaribou"}', '{"group":"a", "resource":"bindings", "nonResourcePath": "*"}', "# all of it", "", "user: yam\r",
);
const CURRENT = policies(
  current({ user: "*", readonly: true, nonResourcePath: "/api" }), current({ user: "*", nonResourcePath: "/root/*" }), current({ user: "*", readonly: true, resource: "events", namespace: "*" }),
  current({ user: "scheduler", resource: "bindings", namespace: "*" }), current({ user: "alice", resource: "*", namespace: "projectCaribou" }), current({ user: "apis", apiGroup: "*", resource: "*", namespace: "*" }),
  current({ user: "mallory", group: "none", resource: "*", namespace: "*" }), current({ resource: "secrets", namespace: "*" }),
);

test.each([
  [FIRST, ["scheduler list pods ns1", "scheduler list pods", "scheduler get bindings ns1", "scheduler create bindings ns1", "alice update widgets projectCaribou bar", "chuck get events ns1", "yam delete nodes - any", "yam post /x"],
    ["scheduler create pods ns1", "alice get pods ns1", "chuck update events ns1", "chuck get pods ns1", "chuck get /", "alice get /"]],
  [CURRENT, ["chuck get /api", "chuck post /root/a", "chuck watch events ns1", "scheduler create bindings ns1", "alice get pods projectCaribou", "apis create deployments x apps"],
    ["chuck post /api", "chuck get /root", "chuck get /rootless", "alice get pods projectCaribou apps", "alice get pods ns1", "mallory get pods", "chuck get secrets ns1", "scheduler get bindings ns1 extensions"]],
])("policies allow what they name %#", (given, allowed, refused) => {
  const { authorize } = abacAuthorizer(given);
  expect(allowed.filter((text) => (authorize(asked(text)) as { decision: string }).decision !== "allow")).toEqual([]);
  for (const text of refused) expect([text, authorize(asked(text))]).toEqual([text, { decision: "no-opinion", reason: "No policy matched." }]);
});

test("who has proved nothing is not everybody; groups count", () => {
  expect(abacAuthorizer(CURRENT).authorize(asked("nobody get /api", ["system:unauthenticated"]))).toMatchObject({ decision: "no-opinion" });
  expect(abacAuthorizer(FIRST).authorize(asked("x create bindings ns1", ["a"]))).toMatchObject({ decision: "allow" });
});

test("what may I do here", async () => {
  const rules = (groups: readonly string[], namespace: string) => abacAuthorizer(policies('{"readonly": true, "resource": "events"}', '{"group":"a","resource":"bindings"}', '{"group":"b","readonly":true}', '{"group":"b","namespace":"other"}')).rulesFor({ name: "x", groups }, namespace);
  expect(await rules(["a", "b"], "ns1")).toEqual({
    incomplete: false, pathRules: [{ verbs: ["get", "list", "watch"], nonResourceURLs: ["*"] }],
    resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["bindings"], resourceNames: [] }, { verbs: ["get", "list", "watch"], apiGroups: ["*"], resources: ["*"], resourceNames: [] }],
  });
});

test.each([
  ["{a", "error reading policy file /policies, line 2: {a: couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of object key string"],
  ['{"readonly":"yes"}', "json: cannot unmarshal string into Go struct field Policy.readonly of type bool"],
  [current({ user: 1 }), "json: cannot unmarshal number into Go struct field PolicySpec.spec.user of type string"],
  ['{"apiVersion":"v2","kind":"Policy"}', 'no kind "Policy" is registered for version "v2"'],
  ["[]", "json: cannot unmarshal array into Go value"],
  [`{"user":"${"x".repeat(65_536)}"}`, "error reading policy file /policies: bufio.Scanner: token too long"],
])("%s is no policy", (line, told) => expect(() => policies("# first", line)).toThrow(told));

test("that lines are of the first format is known", () => {
  expect([readPolicies('{"user":"a"}', "").old, readPolicies(current({ user: "a" }), "").old, readPolicies('{"apiVersion":"abac.authorization.kubernetes.io/v0","kind":"Policy","user":"a"}', "").old]).toEqual([true, false, false]);
});
