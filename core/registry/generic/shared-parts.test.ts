import { expect, test, vi } from "vitest";
import { jsonText } from "../../api/codec/json.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { deepFreeze } from "./cached.ts";
import { objectBytes } from "./object-bytes.ts";
import { SharedParts } from "./shared-parts.ts";

interface Made extends ApiObject { readonly spec: { readonly containers: { readonly name: string; readonly env: object[]; readonly resources: object }[]; readonly tolerations: object[]; readonly odd?: unknown } }

const pod = (name: string, value: string, odd?: unknown) => ({
  apiVersion: "v1", kind: "Pod",
  metadata: { name, labels: { app: "a" }, ownerReferences: [{ kind: "ReplicaSet", name: "r", uid: "u" }], annotations: { name }, managedFields: [{ manager: "m", time: name, fieldsV1: { "f:spec": { "f:containers": { 'k:{"name":"app"}': { ".": {} } } } } }] },
  spec: { containers: [{ name: "app", env: [{ name: "A", value }], resources: { limits: { cpu: "1" } } }], tolerations: [{ key: "k", operator: "Exists" }], ...(odd !== undefined && { odd }) },
}) as unknown as Made;

test("what is equal in two objects is one, and both are what they were", () => {
  const parts = new SharedParts();
  const [a, b] = [parts.share(pod("a", "1")), parts.share(pod("b", "2"))];
  expect([JSON.stringify(a), JSON.stringify(b)]).toEqual([JSON.stringify(pod("a", "1")), JSON.stringify(pod("b", "2"))]);
  expect(b.metadata.labels).toBe(a.metadata.labels!);
  expect(b.metadata.ownerReferences).toBe(a.metadata.ownerReferences!);
  expect(b.spec.tolerations).toBe(a.spec.tolerations);
  expect(b.spec.containers[0]!.resources).toBe(a.spec.containers[0]!.resources);
  expect(b.spec.containers[0]!.env).not.toBe(a.spec.containers[0]!.env);
  expect(b.metadata.managedFields![0]!.fieldsV1).toBe(a.metadata.managedFields![0]!.fieldsV1);
  expect(b.metadata.managedFields![0]!.time).toBe("b");
  expect(parts.share(pod("c", "2")).spec.containers).toBe(b.spec.containers);
});

test("who owns what, if that is the very same again, is known without being written once more; in the bytes of objects it is what JSON makes of it", () => {
  const parts = new SharedParts();
  const fieldsV1 = deepFreeze({ "f:metadata": { "f:annotations": { ".": {}, "f:a<b>&": {} } }, "f:spec": { "f:containers": { [`k:{"name":"${"n".repeat(200)}"}`]: { ".": {} } } } });
  const plain = deepFreeze({ "f:spec": { [`f:${"n".repeat(200)}`]: {} } });
  const of = (name: string): ApiObject => ({ ...pod(name, "1"), metadata: { name, managedFields: [{ manager: "m", fieldsV1 }, { manager: "n", fieldsV1: plain }] } }) as unknown as ApiObject;
  const first = parts.share(of("a"));
  const write = vi.spyOn(JSON, "stringify");
  const second = parts.share(of("b"));
  const written = write.mock.calls.map(([value]) => value as unknown);
  write.mockRestore();
  expect(written).not.toContain(fieldsV1);
  for (const made of [first, second]) {
    expect(made.metadata.managedFields!.map((entry) => entry.fieldsV1)).toEqual([fieldsV1, plain]);
    expect(objectBytes(deepFreeze(made)).bytes.toString()).toBe(jsonText(made));
  }
});

test("order counts, integers that JSON does not know stay, and so does a key named __proto__", () => {
  const parts = new SharedParts();
  expect(Object.keys(parts.share(pod("a", "1", { x: 1, y: 2 })).spec.odd as object)).toEqual(["x", "y"]);
  expect(Object.keys(parts.share(pod("b", "1", { y: 2, x: 1 })).spec.odd as object)).toEqual(["y", "x"]);
  expect(parts.share(pod("c", "1", { big: 2n ** 60n })).spec.odd).toEqual({ big: 2n ** 60n });
  const proto = JSON.parse('{"__proto__":{"a":{"b":1}},"c":{"d":1}}') as object;
  for (const name of ["d", "e"]) expect(JSON.stringify(parts.share(pod(name, "1", { proto })).spec.odd)).toBe(JSON.stringify({ proto }));
});

test("what has not been met for long is forgotten", () => {
  const parts = new SharedParts();
  const first = parts.share(pod("a", "1"));
  for (let i = 0; i < 1_000; i++) parts.share(pod(`b-${i}`, String(i + 10)));
  expect(parts.share(pod("c", "1")).spec.tolerations).toBe(first.spec.tolerations);
  expect(parts.share(pod("d", "1")).spec.containers[0]!.env).not.toBe(first.spec.containers[0]!.env);
});

test("of what is read from the store objects are shared alike, and what is sealed is left alone", () => {
  const parts = new SharedParts();
  const [a, b] = ["a", "b"].map((name) => parts.shareStored(pod(name, "1")));
  expect(b!.spec.containers).toBe(a!.spec.containers);
  const sealed = { sealed: "k8s:enc:secretbox:v1:key:…" };
  expect(parts.shareStored(sealed)).toBe(sealed);
});

test("what is taken over from the object that is replaced is not looked at again", () => {
  const before = pod("a", "1");
  const next = { ...before, metadata: { ...before.metadata, managedFields: before.metadata.managedFields!.map((entry) => ({ ...entry, time: "later" })) }, status: {} };
  const parts = new SharedParts();
  expect(parts.share(next, before)).toBe(next);
  expect(Object.isFrozen(next.spec.containers[0]!.resources)).toBe(false);
  expect(parts.share({ ...before, spec: { ...before.spec, odd: { x: 1 } } }, before).spec.containers).toBe(before.spec.containers);
  expect(Object.isFrozen(before.spec.containers[0]!.resources)).toBe(false);
  const other = parts.share(pod("b", "2"), before);
  expect(other.spec.containers).not.toBe(next.spec.containers);
  expect(parts.share(pod("c", "2")).spec.containers).toBe(other.spec.containers);
});

test("a spec is known again by its text, as long as it is met now and then", () => {
  const parts = new SharedParts();
  const { texts, spec } = parts.recognize({ containers: [{ name: "a" }] });
  expect(spec).toBeUndefined();
  const stored = Object.freeze({ containers: [{ name: "a" }], dnsPolicy: "ClusterFirst" });
  parts.remember(texts, stored);
  expect(parts.recognize({ containers: [{ name: "a" }] }).spec).toBe(stored);
  expect(parts.recognize({ containers: [{ name: "b" }] }).spec).toBeUndefined();
  expect([parts.recognize(undefined), parts.recognize({ big: 2n ** 60n }), parts.recognize({ text: "x".repeat(20_000) })]).toEqual(Array(3).fill({ texts: {}, spec: undefined }));
  for (let i = 0; i < 64; i++) parts.remember({ whole: `other ${i}`, outline: undefined }, stored);
  expect(parts.recognize({ containers: [{ name: "a" }] }).spec).toBeUndefined();
});

test("a spec is known by its outline where texts of its own are all that is new in it, and an equal one is still the very same", () => {
  const own = { apart: (spec: object) => ({ outline: { ...spec, text: "" }, texts: [(spec as { text: string }).text] }), together: (known: object, texts: readonly unknown[]) => ({ ...known, text: texts[0] }) };
  const parts = new SharedParts(own), common = { a: 1 };
  const recognize = (text: string): { text: string; common: object } | undefined => parts.recognize({ text, common: { a: 1 } }).spec as never;
  expect(recognize("one")).toBeUndefined();
  const first = Object.freeze({ text: "one", common, filled: true });
  parts.remember(parts.recognize({ text: "one", common: { a: 1 } }).texts, first);
  expect(recognize("one")).toBe(first);
  const second = recognize("two")!;
  expect([second, second.common, Object.isFrozen(second)]).toEqual([{ text: "two", common, filled: true }, common, true]);
  expect(second.common).toBe(common);
  parts.remember(parts.recognize({ text: "two", common: { a: 1 } }).texts, second);
  expect(recognize("one")).toBe(first);
  expect(recognize("two")).toBe(second);
  expect(recognize("x".repeat(20_000))!.text).toHaveLength(20_000);
  expect(parts.recognize({ text: "two", common: { a: 2 } }).spec).toBeUndefined();
});

test("a part as long as a schema is not looked into", () => {
  const parts = new SharedParts();
  const large = (length: number) => ({ common: { "a.b/c": "d" }, text: "x".repeat(length) });
  const common = (name: string, length: number) => (parts.share(pod(name, "1", large(length))).spec.odd as { common: object }).common;
  expect(common("a", 10_000)).toBe(common("b", 10_001));
  const [c, d] = [pod("c", "1", large(40_000)), pod("d", "1", large(40_001))];
  expect((parts.share(d).spec.odd as { common: object }).common).toBe((d.spec.odd as { common: object }).common);
  expect(parts.share(c).spec.odd).toBe(c.spec.odd);
});
