/**
 * The set of fields a configuration mentions: what an applier comes to own.
 *
 * Leaves are in it, and so are the items of lists, the keys of maps that are no struct fields, nulls and empty maps.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 typed/tofieldset.go
 */
import { isEmptyMap, isMap, type JsonMap } from "../json-value.ts";
import { ANYTHING_ATOMIC, childNode, type ListSchema, type MapSchema, type SchemaNode, shapeOf } from "../schema.ts";
import { EMPTY_SET, type FieldSet, LEAF, sortKeys } from "./field-set.ts";
import { fieldElement, itemElement, type PathElement } from "./path-element.ts";

export function fieldSetOf(schema: SchemaNode, object: JsonMap): FieldSet {
  const set = nodeOf(schema, object);
  return set === undefined || set === LEAF ? EMPTY_SET : set;
}

/** LEAF: the value itself; a tree: what is in it; undefined: nothing. */
function nodeOf(schema: SchemaNode, value: unknown): FieldSet | undefined {
  switch (shapeOf(schema, value)) {
    case "scalar": return LEAF;
    case "map": return schema.map!.atomic ? LEAF : isMap(value) ? mapSet(schema.map!, value) : undefined;
    case "list": return schema.list!.atomic ? LEAF : Array.isArray(value) ? listSet(schema.list!, value) : undefined;
  }
}

function mapSet(schema: MapSchema, map: JsonMap): FieldSet | undefined {
  let set: FieldSet | undefined;
  for (const key in map) {
    const value = map[key];
    if (value === undefined) continue;
    const inside = nodeOf(childNode(schema, key) ?? ANYTHING_ATOMIC, value);
    const itself = value === null || (isMap(value) && isEmptyMap(value)) || schema.field(key) === undefined;
    const node = itself ? withSelf(inside) : inside;
    if (node !== undefined) (set ??= {})[fieldElement(key)] = node;
  }
  return set && sortKeys(set);
}

function withSelf(node: FieldSet | undefined): FieldSet { return node === undefined || isEmptyMap(node) ? LEAF : { ".": LEAF, ...node }; }

/** An item that occurs more than once is owned as a whole. */
function listSet(schema: ListSchema, list: readonly unknown[]): FieldSet | undefined {
  let set: FieldSet | undefined;
  const seen = new Set<PathElement>();
  for (const item of list) {
    const element = itemElement(schema, item);
    (set ??= {})[element] = seen.has(element) ? LEAF : withSelf(nodeOf(schema.items, item));
    seen.add(element);
  }
  return set && sortKeys(set);
}
