/**
 * An object without some of its fields. A container whose parts are removed stays, empty if need be; one that is in the set goes.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 typed/remove.go
 */
import { isMap, type JsonMap, put } from "../json-value.ts";
import { childNode, type ListSchema, type MapSchema, type SchemaNode, shapeOf } from "../schema.ts";
import { type FieldSet, hasElement, isEmptySet } from "./field-set.ts";
import { fieldElement, itemElement } from "./path-element.ts";

export function removeFields(schema: SchemaNode, object: JsonMap, set: FieldSet): JsonMap {
  return isEmptySet(set) ? object : (removeFrom(schema, object, set) as JsonMap);
}

function removeFrom(schema: SchemaNode | undefined, value: unknown, set: FieldSet): unknown {
  if (schema === undefined) return value;
  const shape = shapeOf(schema, value);
  if (shape === "map" && isMap(value) && !schema.map!.atomic) return removeFromMap(schema.map!, value, set);
  if (shape === "list" && Array.isArray(value) && !schema.list!.atomic) return removeFromList(schema.list!, value, set);
  return value;
}

function removeFromMap(schema: MapSchema, map: JsonMap, set: FieldSet): JsonMap {
  const kept: Record<string, unknown> = {};
  for (const key of Object.keys(map)) {
    const element = fieldElement(key);
    const below = set[element];
    if (below === undefined) put(kept, key, map[key]);
    else if (!hasElement(set, element)) put(kept, key, removeFrom(childNode(schema, key), map[key], below));
  }
  return kept;
}

function removeFromList(schema: ListSchema, list: readonly unknown[], set: FieldSet): readonly unknown[] {
  const kept: unknown[] = [];
  for (const item of list) {
    const element = itemElement(schema, item);
    const below = set[element];
    if (below === undefined) kept.push(item);
    else if (!hasElement(set, element)) kept.push(removeFrom(schema.items, item, below));
  }
  return kept;
}
