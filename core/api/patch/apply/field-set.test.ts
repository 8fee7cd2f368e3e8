import { expect, test } from "vitest";
import { growth } from "../../../../test/reads.ts";
import { customResourceSchema } from "../openapi-schema.ts";
import { excludeFields, includeFields } from "./field-filter.ts";
import { difference, equalSets, formatPath, intersection, parseFieldSet, pathsOf, recursiveDifference, setOf, union } from "./field-set.ts";
import { itemElement } from "./path-element.ts";
import { parentManagedFields, scaleManagedFields } from "./scale.ts";
import { keepTimesIfUnchanged } from "./timestamps.ts";
import { managerName } from "./managers.ts";
import { validateTyped } from "./validate-typed.ts";

const paths = (text: string): readonly (readonly string[])[] => text.split(" ").filter(Boolean).map((path) => path.split(".").map((name) => `f:${name}`));
const set = (text: string) => setOf(...paths(text));
const print = (tree: ReturnType<typeof set>) => [...pathsOf(tree)].map((path) => formatPath(path).slice(1)).join(" ");

test.each([
  ["a b", "b c", "a b c", "b", "a", "a"],
  ["a a.b a.c", "a.b", "a a.b a.c", "a.b", "a a.c", "a a.c"],
  ["a.b.c a.d", "a.b", "a.b a.d a.b.c", "", "a.d a.b.c", "a.d"],
  ["a", "a.b", "a a.b", "", "a", "a"],
  ["", "a", "a", "", "", ""],
])("sets %j and %j", (a, b, both, common, rest, bare) => {
  const [left, right] = [set(a), set(b)];
  expect([union(left, right), intersection(left, right), difference(left, right), recursiveDifference(left, right)].map(print)).toEqual([both, common, rest, bare]);
  expect(equalSets(union(left, right), union(right, left))).toBe(true);
  expect(union(left, left)).toBe(left);
});

test("what a client wrote is put into upstream's form and order", () => {
  const written = { "f:b": {}, "f:a": { 'k:{"port":443,"name":"y"}': {}, 'k: {"name":"x", "port":80}': { ".": {}, "f:name": {} }, "z:future": {} } };
  expect(JSON.stringify(parseFieldSet(written))).toBe(JSON.stringify({ "f:a": { 'k:{"name":"x","port":80}': { ".": {}, "f:name": {} }, 'k:{"name":"y","port":443}': {} }, "f:b": {} }));
  expect(() => parseFieldSet({ nonsense: {} })).toThrow("missing colon: nonsense");
});

test("a set that a client wrote in other words is the same set", () => {
  const written = { ".": {}, "f:a": { ".": 1 }, "f:b": null, "f:c": { ".": {}, 'v:{"b":1,"a":2}': { ".": { "f:x": {} } } } };
  expect(JSON.stringify(parseFieldSet(written))).toBe(JSON.stringify({ "f:a": {}, "f:b": {}, "f:c": { ".": {}, 'v:{"a":2,"b":1}': {} } }));
  expect([parseFieldSet({ ".": {} }), parseFieldSet({ "v:1e-07": {} })]).toEqual([{}, { "v:1e-07": {} }]);
});

test("an item without its keys is told with the keys as the definition lists them", () => {
  const { root } = customResourceSchema({ type: "object", properties: { list: { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["zone", "name"], items: { type: "object", properties: { zone: { type: "string" }, name: { type: "string" } } } } } }, { apiVersion: "e.com/v1", kind: "E" });
  expect(() => validateTyped(root, { list: [{}] })).toThrow('omits all key fields ["zone" "name"] (and');
  expect(itemElement(root.map!.field("list")!.node.list!, { name: "a", zone: "b" })).toBe('k:{"name":"a","zone":"b"}');
});

test("keys that are numbers sort by size", () => {
  const tree = parseFieldSet({ 'k:{"port":443}': {}, 'k:{"port":80}': {}, "v:10": {}, "v:9": {}, "i:2": {}, "f:z": {} });
  expect(Object.keys(tree)).toEqual(["f:z", 'k:{"port":80}', 'k:{"port":443}', "v:9", "v:10", "i:2"]);
});

test("filters keep what a subresource may own", () => {
  const owned = set("spec.replicas spec.containers.x.image spec.containers.x.resources.limits status.ready");
  expect(print(excludeFields("status")(owned))).toBe("spec.replicas spec.containers.x.image spec.containers.x.resources.limits");
  expect(print(includeFields("spec.containers.*.resources")(owned))).toBe("spec.containers.x.resources.limits");
});

test("a Scale shows who owns the replicas, and gives them back to the parent; when it was written is not told there", () => {
  const replicas = new Map([["apps/v1", "spec.replicas"]]);
  const entry = (manager: string, fields: string) => ({ manager, operation: "Apply" as const, apiVersion: "apps/v1", time: "2026-01-01T00:00:00Z", fieldsType: "FieldsV1", fieldsV1: set(fields) });
  const parent = [entry("alice", "spec.paused spec.replicas"), entry("bob", "spec.paused")];
  const shown = scaleManagedFields(parent, replicas)!;
  expect(shown).toEqual([{ ...entry("alice", "spec.replicas"), apiVersion: "autoscaling/v1" }]);
  const scaled = [{ manager: "hpa", operation: "Update" as const, apiVersion: "autoscaling/v1", time: "2026-01-01T00:00:09Z", fieldsType: "FieldsV1", fieldsV1: set("spec.replicas"), subresource: "scale" }];
  expect(parentManagedFields({ parent, scale: shown, apiVersion: "apps/v1", paths: replicas })).toEqual(parent);
  expect(parentManagedFields({ parent, scale: scaled, apiVersion: "apps/v1", paths: replicas })).toEqual(
    [entry("alice", "spec.paused"), entry("bob", "spec.paused"), { ...scaled[0], apiVersion: "apps/v1", time: undefined }]);
  const updater = { ...entry("carol", "spec.paused spec.replicas"), operation: "Update" as const };
  const unchanged = parentManagedFields({ parent: [updater], scale: scaleManagedFields([updater], replicas), apiVersion: "apps/v1", paths: replicas });
  expect(unchanged).toEqual([{ ...updater, time: undefined, fieldsV1: set("spec.replicas") }, { ...updater, fieldsV1: set("spec.paused") }]);
});

test("a write that only moves times keeps the old ones", () => {
  const object = (time: string, size: number) => ({ metadata: { managedFields: [{ manager: "a", operation: "Apply", time, fieldsV1: {} }] }, spec: { size } });
  expect(keepTimesIfUnchanged(object("1", 1), object("2", 1))).toEqual(object("1", 1));
  expect(keepTimesIfUnchanged(object("1", 1), object("2", 2))).toEqual(object("2", 2));
});

test("a writer without a name is its program", () => {
  expect([managerName("m", "kubectl/v1"), managerName("", "kubectl\u200b/v1.36 (linux)"), managerName(undefined, undefined), managerName("", "x".repeat(200)).length]).toEqual(["m", "kubectl", "", 128]);
});

test("custom resources: without a definition anything goes, with one only what it says", () => {
  const free = customResourceSchema(undefined, { apiVersion: "e/v1", kind: "K" }).root.map!;
  expect([free.element !== undefined, free.field("metadata")?.node.map?.field("finalizers")?.node.list?.atomic]).toEqual([true, false]);
  const strict = customResourceSchema({ type: "object", properties: { spec: { type: "object", properties: { port: { "x-kubernetes-int-or-string": true } } } } }, { apiVersion: "e/v1", kind: "K" }).root.map!;
  expect([strict.element, strict.field("spec")?.node.map?.element]).toEqual([undefined, undefined]);
  expect(strict.field("spec")?.node.map?.field("port")?.node).toMatchObject({ scalar: "untyped", list: { atomic: true }, map: { atomic: true } });
});

test("a number below a millionth has two digits after the e", () => {
  expect(itemElement({ keys: [] } as never, 1e-7)).toBe("v:1e-07");
  expect(itemElement({ keys: ["k"] } as never, { k: 1.5e-10 })).toBe(`k:{"k":1.5e-10}`);
});

test("keyed items are in the order of their keys' values, however those are spelled", () => {
  const ordered = ["", " a", "!", "a", "a b", "a-b", "a.b", "ab", "b\"c", "b\\c", "é"].map((name) => `k:${JSON.stringify({ name })}`);
  const shuffled = ordered.toSorted((a, b) => (Buffer.from(a).toString("hex") < Buffer.from(b).toString("hex") ? 1 : -1));
  expect(Object.keys(parseFieldSet(Object.fromEntries(shuffled.map((key) => [key, {}]))))).toEqual(ordered);
  expect(Object.keys(parseFieldSet({ "f:list": { "k:{\"type\":\"a\"}": {}, "k:{\"name\":\"z\"}": {}, "f:x": {}, "k:{\"name\":\"a\",\"port\":9}": {}, "k:{\"name\":\"a\"}": {}, ".": {} } })["f:list"]!)).toEqual(
    [".", "f:x", "k:{\"name\":\"a\"}", "k:{\"name\":\"a\",\"port\":9}", "k:{\"name\":\"z\"}", "k:{\"type\":\"a\"}"]);
});

test("a key that is null is one, and no default takes its place", () => {
  const item = { type: "object", properties: { k: { type: "string" }, n: { type: "integer", default: 7 } } } as const;
  const { root } = customResourceSchema({ type: "object", properties: { l: { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"], items: item } } }, { apiVersion: "e.com/v1", kind: "E" });
  const list = root.map!.field("l")!.node.list!;
  expect([{ k: null }, { n: null, k: "a" }, { k: "a" }].map((value) => itemElement(list, value))).toEqual(['k:{"k":null,"n":7}', 'k:{"k":"a","n":null}', 'k:{"k":"a","n":7}']);
  expect(Object.keys(parseFieldSet({ 'k:{"k":null}': {}, 'k:{"k":true}': {}, 'k:{"k":"a"}': {}, 'k:{"k":1}': {} }))).toEqual(['k:{"k":1}', 'k:{"k":"a"}', 'k:{"k":true}', 'k:{"k":null}']);
});

test("a number or a text that has a type is of it; an object that may have no keys has none", () => {
  const { root } = customResourceSchema({ type: "object", properties: {
    text: { "x-kubernetes-int-or-string": true, type: "string" }, closed: { type: "object", additionalProperties: false }, lax: { type: "object", "x-kubernetes-preserve-unknown-fields": true, additionalProperties: false },
  } }, { apiVersion: "e.com/v1", kind: "E" });
  expect(() => validateTyped(root, { text: 5 })).toThrow(".text: expected string, got &value.valueUnstructured{Value:5}");
  for (const name of ["closed", "lax"]) expect(() => validateTyped(root, { [name]: { a: 1 } })).toThrow(`.${name}.a: field not declared in schema`);
  expect(() => validateTyped(root, { text: "5", closed: {}, lax: {} })).not.toThrow();
});

test("a string of a format may be any scalar, bytes are a string", () => {
  const { root } = customResourceSchema({ type: "object", properties: Object.fromEntries(["", "byte", "date-time", "uuid"].map((format) => [`a${format}`, { type: "string", format }])) }, { apiVersion: "e.com/v1", kind: "E" });
  for (const name of ["adate-time", "auuid"]) {
    expect(() => validateTyped(root, { [name]: 1 })).not.toThrow();
    expect(() => validateTyped(root, { [name]: [1] })).toThrow(`.${name}: expected any scalar, got &{[1]}`);
  }
  for (const name of ["a", "abyte"]) expect(() => validateTyped(root, { [name]: 1 })).toThrow(`.${name}: expected string, got &value.valueUnstructured{Value:1}`);
});

test("what one element owns is put together from all its spellings", () => {
  const spellings = Array.from({ length: 2000 }, (_, i) => [`k:{"name":"a"${" ".repeat(i)}}`, { [`f:x${i}`]: {} }] as const);
  const set = parseFieldSet(Object.fromEntries([...spellings, ['k: {"name":"a"}', { ".": {} }]]));
  expect(Object.keys(set)).toEqual(['k:{"name":"a"}']);
  expect(Object.keys(set['k:{"name":"a"}']!)).toEqual([".", ...spellings.map((_, i) => `f:x${i}`).sort()]);
});

test("what very many own of what is gone is told without its all being listed for each", () => {
  expect(growth((n, reads) => {
    const children = Object.fromEntries(Array.from({ length: n }, (_, i) => [`v:"${i}"`, {}]));
    const gone = { "f:tags": new Proxy(children, { ownKeys: (all) => { reads.count += n; return Reflect.ownKeys(all); } }) };
    for (let i = 0; i < n; i++) expect(difference({ "f:tags": { ".": {}, [`v:"${i}"`]: {} } }, gone)).toEqual({ "f:tags": {} });
  })).toBeLessThan(3);
});
