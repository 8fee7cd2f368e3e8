/**
 * What a mutation makes of an object.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/mutating/patch/{json_patch,smd}.go
 */
import { inKeyOrder, jsonNodeOf } from "../../api/codec/json-document.ts";
import { formatGvk, gvkOf } from "../../api/meta/gvk.ts";
import { internalError } from "../../api/meta/status-error.ts";
import { diagnose } from "../../api/schema/diagnose.ts";
import { builtInFacts, type StructType } from "../../api/schema/facts.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { mergeTyped } from "../../api/patch/apply/merge-typed.ts";
import { validateTyped } from "../../api/patch/apply/validate-typed.ts";
import { applyJsonPatch } from "../../api/patch/json-patch.ts";
import { isMap, type JsonMap } from "../../api/patch/json-value.ts";
import type { ObjectSchema, SchemaNode } from "../../api/patch/schema.ts";
import { JsonPatchValue, misnamed, ObjectValue } from "../../cel/admission/patch-types.ts";
import { List, type Value } from "../../cel/value/value.ts";
import { configurationOf, operandOf, refuseForeign, withoutForeign } from "./patch-values.ts";

/** `schema`: of the kind, if it is known among those of its group. Throws an Error that says why it does not apply. */
export function patched(object: Readonly<ApiObject>, value: Value, schema: ObjectSchema | undefined): JsonMap {
  const before = object as unknown as JsonMap;
  return value instanceof List ? jsonPatched(before, value) : applied(before, value, schema);
}

function jsonPatched(object: JsonMap, operations: List): JsonMap {
  const patch = [...operations].map(operationOf);
  let next: JsonMap;
  try {
    next = applyJsonPatch(object, patch, { computed: true });
  } catch (error) {
    const why = (error as Error).cause instanceof Error ? ((error as Error).cause as Error).message : (error as Error).message;
    if (/^testing value .* failed: test failed$/s.test(why)) return object; // a test that fails means that nothing is to be done
    throw new Error(`JSON Patch: ${why}`, { cause: error });
  }
  checkKnown(object, next);
  return next;
}

/** Throws 500 for fields that a built-in kind does not have: its own, unless it says of itself that it is of another one. */
function checkKnown(before: JsonMap, object: JsonMap): void {
  const type = typeOf({ apiVersion: object["apiVersion"] || before["apiVersion"], kind: object["kind"] || before["kind"] });
  const { strict } = type ? diagnose(type, jsonNodeOf(object)) : { strict: [] };
  if (strict.length > 0) throw internalError(new Error(`strict decoding error: ${strict.join(", ")}`));
}

function operationOf(value: Value): JsonMap {
  if (!(value instanceof JsonPatchValue)) throw new Error("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch");
  const { op, path, from, value: given } = value;
  if (given instanceof ObjectValue) checkNames(given, given.type.name); // it stands for what its type says
  return { op, path, ...(from !== "" && { from }), ...(given !== undefined && { value: operandIn(given) }) };
}

function operandIn(value: Value): unknown {
  try {
    return inKeyOrder(operandOf(value)); // as a map is written
  } catch (error) {
    throw new Error(`JSONPath valueExpression evaluated to a type that could not marshal to JSON: ${(error as Error).message}`, { cause: error });
  }
}

function checkNames(value: Value, root?: string): void {
  const wrong = misnamed(value, root === undefined ? undefined : [root]);
  if (wrong.length > 0) throw new Error(`type mismatch: ${wrong.join("\n")}`);
}

function applied(object: JsonMap, value: Value, schema: ObjectSchema | undefined): JsonMap {
  if (!(value instanceof ObjectValue)) throw new Error("unsupported return type from ApplyConfiguration expression");
  checkNames(value);
  const written: JsonMap = { ...fieldsOf(value), apiVersion: object["apiVersion"], kind: object["kind"] };
  const merged = merge(object, written, schema);
  checkFits(merged);
  return merged;
}

/** Throws an Error for what the type of a built-in kind cannot hold: it counts by the failurePolicy, unlike what operations make of an object. */
function checkFits(object: JsonMap): void {
  const type = typeOf(object);
  const why = type && diagnose(type, jsonNodeOf(object)).error;
  if (why !== undefined) throw new Error(`unable to convert unstructured object to ${formatGvk(gvkOf(object as unknown as ApiObject))}: ${conversionError(why)}`);
}

/** What a decoder says, as a conversion says it. */
function conversionError(why: string): string {
  const [, type] = /^json: cannot unmarshal number \S*\.\S* into .* of type (u?int\d*)$/.exec(why) ?? [];
  if (type !== undefined) return `cannot convert float64 to ${type}`;
  const [, given] = /^json: cannot unmarshal (\w+) into Go struct field \S+ of type string$/.exec(why) ?? []; // of a type with a decoder of its own: schemas let no other pass
  if (given !== undefined) return `json: cannot unmarshal ${given} into Go value of type string`;
  return why.startsWith("illegal base64") ? `error decoding from json: ${why}` : why;
}

function merge(object: JsonMap, written: JsonMap, schema: ObjectSchema | undefined): JsonMap {
  try {
    if (!schema) throw new Error(`failed to convert patch object to typed object: no corresponding type for ${formatGvk(gvkOf(object as unknown as ApiObject))}`);
    const { root } = schema;
    const configuration = validated(root, written);
    const atomics = [...atomicsIn(root, configuration, "")];
    if (atomics.length > 0) throw new Error(`invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(", ")}`);
    if (!typeOf(object)) checkFitting(root, object);
    return mergeTyped(root, object, configuration);
  } catch (error) {
    throw new Error(`error applying patch: ${(error as Error).message}`, { cause: error });
  }
}

function fieldsOf(value: ObjectValue): JsonMap {
  try {
    return configurationOf(value);
  } catch (error) {
    throw new Error("invalid return type: *dynamic.ObjectVal", { cause: error });
  }
}

function validated(root: SchemaNode, written: JsonMap): JsonMap {
  try {
    refuseForeign(root, written);
    const configuration = withoutForeign(written) as JsonMap;
    validateTyped(root, configuration);
    return configuration;
  } catch (error) {
    throw new Error(`failed to convert patch object to typed object: ${(error as Error).message}`, { cause: error });
  }
}

/** A custom resource is nobody's to check before it has been admitted. */
function checkFitting(root: SchemaNode, object: JsonMap): void {
  try {
    validateTyped(root, object, { duplicates: true });
  } catch (error) {
    throw new Error(`failed to convert original object to typed object: ${(error as Error).message}`, { cause: error });
  }
}

/** Of a built-in kind. */
function typeOf({ apiVersion, kind }: JsonMap): StructType | undefined { return builtInFacts.typeOf(gvkOf({ apiVersion: String(apiVersion), kind: String(kind) })); }

/** Where it sets what is replaced as a whole: what others have put there would be lost. */
function* atomicsIn(node: SchemaNode, value: unknown, path: string): Iterable<string> {
  if (isMap(value) && node.map) {
    if (node.map.atomic) yield path;
    for (const [name, field] of Object.entries(value)) {
      const below = node.map.field(name)?.node;
      if (below) yield* atomicsIn(below, field, `${path}.${name}`);
    }
  }
  if (Array.isArray(value) && node.list) {
    if (node.list.atomic) yield path;
    for (const [i, item] of value.entries()) yield* atomicsIn(node.list.items, item, `${path}[${i}]`);
  }
}
