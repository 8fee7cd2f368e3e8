import { expect, test } from "vitest";
import { parseJsonDocument } from "../codec/json-document.ts";
import { parseJson } from "../codec/json.ts";
import { StatusError } from "../meta/status-error.ts";
import { builtInSchemas } from "./facts-schema.ts";
import { applyJsonPatch, JSON_PATCH_OPERATIONS_MAX } from "./json-patch.ts";
import type { JsonMap } from "./json-value.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { strategicPatchLeft } from "./strategic-left.ts";
import { applyStrategicMerge } from "./strategic-merge.ts";

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) { Object.freeze(value); Object.values(value).forEach(frozen); }
  return value;
}

const DOCUMENT = frozen({ a: { b: [1, 2, { c: "d" }] }, "x/y": { "~": 1 }, n: null });

test.each([
  ["add a key", [{ op: "add", path: "/a/z", value: 1 }], { ...DOCUMENT, a: { ...DOCUMENT.a, z: 1 } }],
  ["add an item", [{ op: "add", path: "/a/b/1", value: 9 }], { ...DOCUMENT, a: { b: [1, 9, 2, { c: "d" }] } }],
  ["append", [{ op: "add", path: "/a/b/-", value: 9 }], { ...DOCUMENT, a: { b: [1, 2, { c: "d" }, 9] } }],
  ["count from the end", [{ op: "remove", path: "/a/b/-1" }], { ...DOCUMENT, a: { b: [1, 2] } }],
  ["escapes", [{ op: "replace", path: "/x~1y/~0", value: 2 }], { ...DOCUMENT, "x/y": { "~": 2 } }],
  ["replace what is not there", [{ op: "replace", path: "/new", value: 1 }], { ...DOCUMENT, new: 1 }],
  ["move", [{ op: "move", from: "/a/b", path: "/b" }], { ...DOCUMENT, a: {}, b: DOCUMENT.a.b }],
  ["a copy is independent", [{ op: "copy", from: "/a", path: "/z" }, { op: "add", path: "/z/b/2/e", value: 1 }], { ...DOCUMENT, z: { b: [1, 2, { c: "d", e: 1 }] } }],
  ["test for absence", [{ op: "test", path: "/none", value: null }, { op: "test", path: "/a/b/2", value: { c: "d" } }], DOCUMENT],
  ["a key that is in every prototype", [{ op: "add", path: "/__proto__", value: { evil: 1 } }], JSON.parse('{"__proto__":{"evil":1}}')],
] as const)("JSON patch: %s", (_, operations, expected) => {
  expect(JSON.parse(JSON.stringify(applyJsonPatch(DOCUMENT, operations)))).toEqual({ ...DOCUMENT, ...expected });
  expect(({} as Record<string, unknown>)["evil"]).toBeUndefined();
});

test.each([
  [[{ op: "remove", path: "/none" }], 422, "Unable to remove nonexistent key: none"],
  [[{ op: "move", from: "/none", path: "/x" }], 422, "error in move for path: 'none': Unable to remove nonexistent key: none: missing value"],
  [[{ op: "move", from: "/none/x", path: "/x" }], 422, "move operation does not apply: doc is missing from path: /none/x: missing value"],
  [[{ op: "copy", from: "/none/x", path: "/x" }], 422, "copy operation does not apply: doc is missing from path: /none/x: missing value"],
  [[{ op: "copy", from: "/none", path: "/none/x" }], 422, "copy operation does not apply: doc is missing destination path: /none/x: missing value"],
  [[{ op: "test", path: "/none/x", value: 1 }], 422, "test operation does not apply: is missing path: /none/x: missing value"],
  [[{ op: "add", path: "/none/x", value: 1 }], 422, 'add operation does not apply: doc is missing path: "/none/x"'],
  [[{ op: "add", path: "/a/b/7", value: 1 }], 422, "error in add for path: '/a/b/7': Unable to access invalid index: 7: invalid index referenced"],
  [[{ op: "add", path: "/a/b/x", value: 1 }], 422, "error in add for path: '/a/b/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax"],
  [[{ op: "remove", path: "/a/b/7" }], 422, "error in remove for path: '/a/b/7': Unable to access invalid index: 7: invalid index referenced"],
  [[{ op: "replace", path: "/a/b/7", value: 1 }], 422, "replace operation does not apply: doc is missing key: /a/b/7: missing value"],
  [[{ op: "move", from: "/a/b/7", path: "/x" }], 422, "error in move for path: '7': Unable to access invalid index: 7: invalid index referenced"],
  [[{ op: "copy", from: "/n", path: "/a/b/x" }], 422, "error while adding value during copy: value was not a proper array index: 'x'"],
  [[{ op: "test", path: "/a/b/x", value: 1 }], 422, "error in test for path: '/a/b/x': strconv.Atoi: parsing \"x\": invalid syntax"],
  [[{ op: "test", path: "/a/b/0", value: 2 }], 422, "testing value /a/b/0 failed: test failed"],
  [Array.from({ length: 40 }, (_, at) => ({ op: "copy", from: "/a", path: `/a/c${at}` })), 422, "Unable to complete the copy, the accumulated size increase of copy is"],
  [[{ op: "sing", path: "/a" }], 422, "Unexpected kind: sing"],
  [[{ op: "test", value: 1 }], 422, "test operation failed to decode path: operation missing path field: missing value"],
  [[{ op: "move", path: "/x" }], 422, "move operation failed to decode from: operation, missing from field: missing value"],
  [[{ op: "replace", path: 1, value: 1 }], 422, "replace operation failed to decode path: json: cannot unmarshal number into Go value of type string"],
  [[{ op: "add", path: null, value: 1 }], 422, "add operation failed to decode path: missing value"],
  [{ op: "add" }, 400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"],
  [Array(JSON_PATCH_OPERATIONS_MAX + 1).fill({ op: "test", path: "/n" }), 413, "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"],
])("JSON patch %# is refused", (operations, code, message) => {
  const error = caught(() => applyJsonPatch(DOCUMENT, operations));
  expect(error).toBeInstanceOf(StatusError);
  expect((error as StatusError).code).toBe(code);
  expect(`${error.message} ${String(error.cause)}`).toContain(message);
});

test.each([
  ['{"a":[{"y":1.5,"x":"<é>\\n"}],"b":null}', '{ "b": null, "a": [{"x":"\\u003cé\\u003e\\n", "y": 1.5}] }', true],
  ['"<"', '"<"', false], ['"é"', '"\\u00e9"', false], ['"a/b"', '"a\\/b"', false], ["1", "1.0", false], ["0", "-0", false], ["1e21", "1e+21", true], ["1e21", "1e21", false], ["9007199254740993", "9007199254740993", true],
  ["9007199254740993", "9007199254740992", false], ["{}", "[]", false], ["[]", "{}", false], ["null", "{}", false], ['{"a":1}', '{"a":1,"b":null}', false], ['{"a":1}', '{"a":2,"a":1}', true], ["true", "true", true],
])("a test of what %s is compares its text: %s %s", (value, written, passes) => {
  const text = `[{"op":"test","path":"/v","value":${written}}]`;
  const run = (): unknown => applyJsonPatch({ v: parseJson(value).value }, parseJson(text).value, { written: parseJsonDocument(text) });
  if (passes) expect(run).not.toThrow();
  else expect(run).toThrow("the server rejected our request due to an error in our request");
});

function caught(run: () => unknown): Error {
  try { run(); } catch (error) { return error as Error; }
  throw new Error("did not throw");
}

test.each([
  [{ a: null, n: 1 }, { "x/y": { "~": 1 }, n: 1 }],
  [{ a: { b: null, c: { d: null, e: 1 } } }, { ...DOCUMENT, a: { c: { e: 1 } } }],
  [{ a: { b: [null, { x: null }] } }, { ...DOCUMENT, a: { b: [null, {}] } }],
])("merge patch %j", (patch, expected) => {
  expect(applyMergePatch(DOCUMENT, frozen(patch))).toEqual(expected);
});

test("a merge patch is an object, and shares what it does not touch", () => {
  expect(caught(() => applyMergePatch(DOCUMENT, [])).message).toBe("error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}");
  expect(applyMergePatch(DOCUMENT, { n: 1 })["a"]).toBe(DOCUMENT.a);
});

const POD = builtInSchemas.schemaOf({ group: "", version: "v1", kind: "Pod" })!;
const DEPLOYMENT = builtInSchemas.schemaOf({ group: "apps", version: "v1", kind: "Deployment" })!;

function containersAfter(live: readonly unknown[], patch: readonly unknown[], order?: readonly string[]): unknown {
  const spec = { containers: patch, ...(order ? { "$setElementOrder/containers": order.map((name) => ({ name })) } : {}) };
  return (applyStrategicMerge(frozen({ spec: { containers: live } }), frozen({ spec }), POD)["spec"] as JsonMap)["containers"];
}

test.each([
  ["merges by name", [{ name: "a", image: "1" }, { name: "b" }], [{ name: "b", image: "2" }], undefined, [{ name: "a", image: "1" }, { name: "b", image: "2" }]],
  ["adds after what is there", [{ name: "a" }], [{ name: "b", tty: null }], undefined, [{ name: "b", tty: null }, { name: "a" }]],
  ["deletes", [{ name: "a" }, { name: "b" }], [{ name: "a", $patch: "delete" }], undefined, [{ name: "b" }]],
  ["replaces", [{ name: "a" }, { name: "b" }], [{ $patch: "replace" }, { name: "c" }], undefined, [{ name: "c" }]],
  ["replaces by nothing but items without a directive", [{ name: "a", tty: true }], [{ name: "a", image: "x", $patch: "replace" }], undefined, []],
  ["orders", [{ name: "a" }, { name: "b" }, { name: "c" }], [{ name: "d" }], ["d", "c", "a"], [{ name: "d" }, { name: "b" }, { name: "c" }, { name: "a" }]],
  ["merges lists in lists", [{ name: "a", ports: [{ containerPort: 1, name: "x" }] }], [{ name: "a", ports: [{ containerPort: 1, hostPort: 5 }, { containerPort: 2 }] }], undefined,
    [{ name: "a", ports: [{ containerPort: 1, name: "x", hostPort: 5 }, { containerPort: 2 }] }]],
  ["replaces lists that do not merge", [{ name: "a", args: ["x", "y"] }], [{ name: "a", args: ["z"] }], undefined, [{ name: "a", args: ["z"] }]],
] as const)("strategic merge of a list %s", (_, live, patch, order, expected) => {
  expect(containersAfter(live, patch, order)).toEqual(expected);
});

test("strategic merge of maps and primitive lists", () => {
  const live = frozen({ metadata: { labels: { a: "1", b: "2" }, finalizers: ["x", "y"] }, spec: { nodeName: "n", securityContext: { runAsUser: 1 } } });
  const merge = (patch: JsonMap) => applyStrategicMerge(live, frozen(patch), POD);
  expect(merge({ metadata: { labels: { a: null, c: "3" }, finalizers: ["z"] } })["metadata"]).toEqual({ labels: { b: "2", c: "3" }, finalizers: ["z", "x", "y"] });
  expect(merge({ metadata: { "$deleteFromPrimitiveList/finalizers": ["x"], labels: { $patch: "replace", d: "4" } } })["metadata"]).toEqual({ labels: { d: "4" }, finalizers: ["y"] });
  expect(merge({ metadata: { labels: { $patch: "delete" } } })["metadata"]).toEqual({ labels: {}, finalizers: ["x", "y"] });
  expect(applyStrategicMerge({ metadata: {} }, { metadata: { finalizers: ["b", "c", "a"], "$setElementOrder/finalizers": [] } }, POD)["metadata"]).toEqual({ finalizers: ["a", "c", "b"] });
  expect(merge({ spec: null })["spec"]).toBeUndefined();
  expect(merge({ spec: { nodeName: null } })["metadata"]).toBe(live.metadata);
});

test("$retainKeys clears the other members of a union", () => {
  const live = frozen({ spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } } } });
  expect(applyStrategicMerge(live, { spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } } }, DEPLOYMENT)).toEqual({ spec: { strategy: { type: "Recreate" } } });
  expect(caught(() => applyStrategicMerge({ metadata: { finalizers: [] } }, { metadata: { finalizers: [{ a: 1 }] } }, POD)).message).toBe("cannot merge lists without merge key for string");
  const error = caught(() => applyStrategicMerge(live, { spec: { strategy: { $retainKeys: [], type: "Recreate" } } }, DEPLOYMENT));
  expect([error.message, (error as StatusError).code]).toEqual(["invalid patch format of retainKeys", 400]);
});

test.each([
  [{ spec: { containers: [{ image: "x" }] } }, "map: map[image:x] does not contain declared merge key: name"],
  [{ spec: { containers: [{ name: "a", $patch: "sing" }] } }, "unknown patch type: sing in map: map[$patch:sing name:a]"],
  [{ spec: { containers: [{ name: "a", $patch: 3 }] } }, "unknown patch type: %!s(int64=3) in map: map[$patch:3 name:a]"],
  [{ metadata: { labels: { $patch: null } } }, "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]"],
  [{ metadata: { labels: { $patch: { a: null, b: [null, 1] } } } }, "unknown patch type: map[a:<nil> b:[<nil> %!s(int64=1)]] in map: map[$patch:map[a:<nil> b:[<nil> 1]]]"],
  [{ spec: { "$setElementOrder/containers": null } }, "expected a []interface {}, but received a %!s(<nil>)"],
  [{ spec: { containers: null, "$setElementOrder/containers": [{ name: "a" }] } }, "expected a []interface {}, but received a %!s(<nil>)"],
  [{ spec: { "$setElementOrder/containers": [null] } }, "value for key 0 is not a map"],
  [{ spec: { "$setElementOrder/nodeSelector": [{ key: "a" }] } }, "expected slice or array type, but got: struct"],
  [{ spec: { containers: [{ name: "b" }], "$setElementOrder/containers": [{ name: "a" }] } },
    "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n"],
])("strategic merge %j fails", (patch, message) => {
  expect(caught(() => applyStrategicMerge({ metadata: { labels: {} }, spec: { containers: [{ name: "a" }] } }, patch, POD)).message).toBe(message);
});

test("of a strategic merge patch that has been merged what it has dealt with is gone", () => {
  const document = frozen({ metadata: { labels: { a: "1" } }, spec: { containers: [{ name: "a", env: [{ name: "E" }] }], volumes: [{ name: "v" }] } });
  expect(strategicPatchLeft(document, frozen({
    metadata: { labels: { a: null, b: "2" }, annotations: { c: null }, $patch: "merge" },
    spec: { nodeName: null, "$setElementOrder/containers": [{ name: "a" }], containers: [{ name: "a", tty: true }], volumes: [{ name: "v", $retainKeys: ["name"], secret: null }, { name: "w", $patch: "delete" }, { name: "x", hostPath: null }], securityContext: { runAsUser: null, sysctls: [{ $patch: "delete" }] } },
  }), POD)).toEqual({
    metadata: { labels: { a: null, b: "2" }, annotations: { c: null }, $patch: "merge" },
    spec: { nodeName: null, volumes: [{ name: "v", secret: null }, { name: "w", $patch: "delete" }, { name: "x", hostPath: null }], securityContext: { sysctls: [] } },
  });
  expect(strategicPatchLeft(document, { metadata: { annotations: { c: null } }, spec: { containers: [{ name: "a", tty: null, env: [{ name: "E", value: null }] }] } }, POD)).toEqual(
    { metadata: { annotations: {} }, spec: { containers: [{ name: "a", tty: null, env: [{ name: "E", value: null }] }] } });
});

test("what a patch has looked into has its keys in order, the rest is as it was", () => {
  const document = frozen({ z: 1, data: { y: { q: 1, b: 2 }, c: { f: 1, e: 2 } }, b: 0 });
  expect(JSON.stringify(applyJsonPatch(document, [{ op: "test", path: "/data/y/q", value: 1 }, { op: "add", path: "/a", value: { d: 1, c: 2 } }])))
    .toBe('{"a":{"d":1,"c":2},"b":0,"data":{"c":{"f":1,"e":2},"y":{"b":2,"q":1}},"z":1}');
  expect(JSON.stringify(applyMergePatch(document, { a: { d: 1, c: [{ x: 1, a: 2 }] }, data: { c: { g: 3 } } })))
    .toBe('{"a":{"c":[{"a":2,"x":1}],"d":1},"b":0,"data":{"c":{"e":2,"f":1,"g":3},"y":{"q":1,"b":2}},"z":1}');
});

test("of lists in a list upstream tells where the first item is one", () => {
  const merged = (live: unknown) => caught(() => applyStrategicMerge({ spec: { containers: live } } as JsonMap, { spec: { containers: [[{}]] } }, POD)).message;
  expect(caught(() => applyStrategicMerge({ spec: { volumes: [] } } as JsonMap, { spec: { volumes: [1] } }, POD)).message).toBe("expected a map[string]interface {}, but received a int64");
  expect([merged([]), merged([{ name: "a" }])]).toEqual(["lists of lists are not supported", "list element types are not identical: [[map[name:a]] [[map[]]]]"]);
});

test("strategic merge: an order of very many, with what is no map among them, and what is left of a patch of as many", () => {
  const schema = builtInSchemas.schemaOf({ group: "", version: "v1", kind: "Pod" })!;
  const containers = Array.from({ length: 30_000 }, (_, i) => ({ name: `c${i}`, image: "a" }));
  const document = { spec: { containers } }, names = containers.map(({ name }) => ({ name })), turned = names.toReversed();
  const patched = applyStrategicMerge(document, { spec: { "$setElementOrder/containers": turned, containers: [{ name: "c7", image: "b" }] } }, schema) as { spec: { containers: typeof containers } };
  expect(patched.spec.containers.map(({ name }) => name)).toEqual(turned.map(({ name }) => name));
  expect(patched.spec.containers.filter(({ image }) => image === "b")).toEqual([{ name: "c7", image: "b" }]);
  expect(() => applyStrategicMerge(document, { spec: { "$setElementOrder/containers": [...names.slice(0, 5), 1, ...names.slice(5)] } }, schema)).toThrow("value for key 5 is not a map");
  expect(strategicPatchLeft(document, { spec: { containers: turned.map((one) => ({ ...one, $patch: "replace", image: null })) } }, schema)).toEqual({ spec: { containers: turned.map((one) => ({ ...one, $patch: "replace", image: null })) } });
  expect(strategicPatchLeft(document, { spec: { containers: turned } }, schema)).toEqual({ spec: { containers: turned } });
});

test("strategic merge: very many taken from a list of texts", () => {
  const finalizers = Array.from({ length: 30_000 }, (_, i) => `a.b/${i}`);
  const left = applyStrategicMerge({ metadata: { finalizers } }, { metadata: { "$deleteFromPrimitiveList/finalizers": finalizers.slice(1) } }, builtInSchemas.schemaOf({ group: "", version: "v1", kind: "Pod" })!);
  expect(left).toEqual({ metadata: { finalizers: ["a.b/0"] } });
});
