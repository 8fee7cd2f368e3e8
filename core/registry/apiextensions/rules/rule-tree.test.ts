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

test("of what is in an optional oldSelf the schema is forgotten", () => {
  const optional = (rule: string): { readonly rule: string } => ({ rule, optionalOldSelf: true } as never);
  const fails = (rule: string, properties: Record<string, JSONSchemaProps>, value: object): string[] => told(object(properties, optional(rule)), value, value);
  expect(fails("oldSelf.orValue(self).a == self.a", { a: text }, { a: "x" })).toEqual([]);
  expect(fails("oldSelf.orValue(self).a__dash__b == self.a__dash__b", { "a-b": text }, { "a-b": "x" })).toEqual(['v: Invalid value: "object": no such key: a__dash__b evaluating rule: oldSelf.orValue(self).a__dash__b == self.a__dash__b']);
  expect(fails("oldSelf.value().t == self.t", { t: { type: "string", format: "duration" } }, { t: "1h" })).toEqual(["v: Invalid value: failed rule: oldSelf.value().t == self.t"]);
});
