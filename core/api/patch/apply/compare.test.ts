import { expect, test } from "vitest";
import { builtInSchemas } from "../facts-schema.ts";
import { excludeFields } from "./field-filter.ts";
import { updateManagedFields } from "./update.ts";

const schema = builtInSchemas.schemaOf({ group: "", version: "v1", kind: "Pod" })!;
const filter = excludeFields("status");

interface Made { readonly metadata: { readonly name: string; readonly labels: object; readonly managedFields?: readonly { readonly fieldsV1: object }[] } }

function fieldsOf(name: string, labels: object, image = "a"): object {
  const updated: Made = { apiVersion: "v1", kind: "Pod", metadata: { name, labels }, spec: { containers: [{ name: "app", image }] }, status: {} } as Made;
  return updateManagedFields<Made>({ live: undefined, updated, manager: "m", apiVersion: "v1", schema, nowMs: 0, filter }).metadata.managedFields![0]!.fieldsV1;
}

const SPEC = { "f:containers": { 'k:{"name":"app"}': { ".": {}, "f:image": {}, "f:name": {} } } };

test("new objects of one spec and the same other fields are owned by the very same set, whatever their names; with other fields by another one", () => {
  const labelled = { "f:metadata": { "f:labels": { ".": {}, "f:app": {} } }, "f:spec": SPEC };
  const first = fieldsOf("a", { app: "1" });
  expect(first).toEqual(labelled);
  expect(fieldsOf("b", { app: "2" })).toBe(first);
  expect(fieldsOf("c", { app: "1", tier: "x" })).toEqual({ "f:metadata": { "f:labels": { ".": {}, "f:app": {}, "f:tier": {} } }, "f:spec": SPEC });
  expect(fieldsOf("d", {})).toEqual({ "f:metadata": { "f:labels": {} }, "f:spec": SPEC });
  expect(fieldsOf("e", { app: "1" }, "b")).toEqual(labelled);
  expect(fieldsOf("f", { app: "3" })).toBe(first);
});
