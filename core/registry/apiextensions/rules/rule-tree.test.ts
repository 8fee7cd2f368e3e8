import { expect, test } from "vitest";
import type { JSONSchemaProps } from "../../../api/gen/apiextensions.v1.ts";
import { formatFieldError } from "../../../api/meta/field-error.ts";
import { Structure } from "../custom/structure.ts";
import { ruleTree } from "./rule-tree.ts";

const text: JSONSchemaProps = { type: "string" };
const object = (properties: Record<string, JSONSchemaProps>, ...rules: { readonly rule: string }[]): JSONSchemaProps => ({ type: "object", properties, "x-kubernetes-validations": rules });
const told = (schema: JSONSchemaProps, value: unknown, old: unknown): string[] => ruleTree(new Structure(schema), { root: false })!.check(value, { old, path: "v" }).errors.map(formatFieldError);

test("a message speaks of oldSelf where a rule beside it does, and never of an optional one", () => {
  const asks = { rule: "self.a == ''", message: "plain", messageExpression: "oldSelf.a" };
  expect(told(object({ a: text }, asks), { a: "new" }, { a: "old" })).toEqual(["v: Invalid value: plain"]);
  expect(told(object({ a: text }, asks, { rule: "oldSelf == oldSelf" }), { a: "new" }, { a: "old" })).toEqual(["v: Invalid value: old"]);
  const optional = { rule: "oldSelf.hasValue() && false", optionalOldSelf: true, message: "plain", messageExpression: "oldSelf.hasValue() ? 'there was one' : 'there was none'" };
  expect(told(object({ a: text }, optional), { a: "new" }, { a: "old" })).toEqual(["v: Invalid value: plain"]);
});

test("rules below a field of no type are not asked", () => {
  const never: JSONSchemaProps = { type: "string", "x-kubernetes-validations": [{ rule: "false" }] };
  const loose: JSONSchemaProps = { "x-kubernetes-preserve-unknown-fields": true, properties: { a: never } };
  const value = { loose: { a: "x" }, list: [{ a: "x" }], b: "x" };
  const properties = { loose, list: { type: "array", items: loose } };
  expect(ruleTree(new Structure(object(properties)), { root: false })).toBeUndefined();
  expect(told(object({ ...properties, b: never }), value, undefined)).toEqual(['v.b: Invalid value: "x": failed rule: false']);
});

test("of what is in an optional oldSelf the schema is forgotten", () => {
  const optional = (rule: string): { readonly rule: string } => ({ rule, optionalOldSelf: true } as never);
  const fails = (rule: string, properties: Record<string, JSONSchemaProps>, value: object): string[] => told(object(properties, optional(rule)), value, value);
  expect(fails("oldSelf.orValue(self).a == self.a", { a: text }, { a: "x" })).toEqual([]);
  expect(fails("oldSelf.orValue(self).a__dash__b == self.a__dash__b", { "a-b": text }, { "a-b": "x" })).toEqual(['v: Invalid value: "object": no such key: a__dash__b evaluating rule: oldSelf.orValue(self).a__dash__b == self.a__dash__b']);
  expect(fails("oldSelf.value().t == self.t", { t: { type: "string", format: "duration" } }, { t: "1h" })).toEqual(["v: Invalid value: failed rule: oldSelf.value().t == self.t"]);
  expect(fails("type(oldSelf.value().n) == double", { n: { type: "number" } }, { n: 1e21 })).toEqual([]);
  expect(told({ type: "integer", "x-kubernetes-validations": [optional("oldSelf.hasValue()")] }, 1, {})).toEqual([]);
});

test("a set has what is added to it once, in the order it comes, however much that is", () => {
  const set: JSONSchemaProps = { type: "array", items: text, "x-kubernetes-list-type": "set" };
  const rules = ["size(self.a + ['c', 'b', 'c']) == 3", "(self.a + ['c', 'b', 'c'])[1] == 'c'", "(self.a + self.b).size() == 60001"].map((rule) => ({ rule }));
  const many = Array.from({ length: 60_000 }, (_, i) => `v${i}`);
  expect(told(object({ a: set, b: set }, ...rules), { a: ["a"], b: many }, undefined)).toEqual([]);
  expect(told(object({ a: set, b: set }, { rule: "(self.a + self.b).size() == 60000" }), { a: many, b: many }, undefined)).toEqual([]);
});

test("a format may be called anything", () => {
  for (const format of ["constructor", "toString", "__proto__"]) expect(told(object({ a: { type: "string", format } }, { rule: "self.a.size() < 3" }), { a: "long" }, undefined)).toEqual(["v: Invalid value: failed rule: self.a.size() < 3"]);
});

test.each<[string, JSONSchemaProps, unknown, string]>([
  ["a day", { type: "string", format: "date" }, "2020-1-01", 'Invalid date formatted string 2020-1-01: parsing time "2020-1-01" as "2006-01-02": cannot parse "1-01" as "01"'],
  ["a day and more", { type: "string", format: "date" }, "2020-01-01T", 'Invalid date formatted string 2020-01-01T: parsing time "2020-01-01T": extra text: "T"'],
  ["a time", { type: "string", format: "date-time" }, "k2", 'Invalid date-time formatted string k2: parsing time "k2" as "2006-01-02T15:04:05": cannot parse "k2" as "2006"'],
  ["a time in a zone", { type: "string", format: "date-time" }, "2020-01-01T00:00:00.5+1", 'Invalid date-time formatted string 2020-01-01T00:00:00.5+1: parsing time "2020-01-01T00:00:00.5+1": extra text: "+1"'],
  ["an object", { type: "object", properties: {} }, 1, "invalid data, expected a map for the provided schema with type=object"],
  ["an int, as it is too large for one", { type: "integer" }, 2 ** 63, "invalid data, expected int, got float64"],
  ["an int or a string", { "x-kubernetes-int-or-string": true }, -(2 ** 64), "invalid data, expected XIntOrString value to be either a string or integer"],
  ...([["1", 0], ["YWJjZ", 4], ["YW", 0], ["YWI=", undefined], ["YW=", 3], ["YW=x", 2], ["Y=", 1], ["YWJj=", 4], ["YWI==", 4], ["YW===", 4], ["Y$", 1]] as const).flatMap(([text, at]): [string, JSONSchemaProps, unknown, string][] =>
    at === undefined ? [] : [[`bytes (${text})`, { type: "string", format: "byte" }, text, `Invalid byte formatted string ${text}: illegal base64 data at input byte ${at}`]]),
])("what cannot be read as %s is no equal of anything", (_, schema, value, problem) => {
  expect(told(object({ a: schema }, { rule: "self == oldSelf" }), { a: value }, { a: value })).toEqual([`v: Invalid value: "object": ${problem} evaluating rule: self == oldSelf`]);
});

test.each<[string, JSONSchemaProps]>([["list", {}], ["list with keys", { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] }]])("what cannot be read is no equal of anything within a %s either", (_, list) => {
  const byte: JSONSchemaProps = { type: "string", format: "byte" };
  const items: JSONSchemaProps = list["x-kubernetes-list-type"] ? { type: "object", properties: { k: text, b: byte } } : byte;
  const value = { a: [list["x-kubernetes-list-type"] ? { k: "k", b: "Y$" } : "Y$"] };
  const rule = "self.a == oldSelf.a";
  expect(told(object({ a: { type: "array", items, ...list } }, { rule }), value, value)).toEqual([`v: Invalid value: "object": Invalid byte formatted string Y$: illegal base64 data at input byte 1 evaluating rule: ${rule}`]);
});

test("rules of a list's items cannot be asked where the schema says object, and those further in are not", () => {
  const inner = object({ n: { type: "integer", "x-kubernetes-validations": [{ rule: "self < 5" }] } }, { rule: "self.n >= 0" });
  const misplaced = (type: string): JSONSchemaProps => object({ list: { type, items: inner } as JSONSchemaProps });
  const value = { list: [{ n: 8 }] };
  expect(told(misplaced("object"), value, value)).toEqual(['v.list[0]: Invalid value: "object": rule compiler initialization error: failed to convert to declType for CEL validation rules']);
  expect(told(misplaced("array"), value, value)).toEqual(["v.list[0].n: Invalid value: 8: failed rule: self < 5"]);
});
