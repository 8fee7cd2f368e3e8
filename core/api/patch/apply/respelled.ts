/**
 * Lists that were sent otherwise than they are stored, though they mean the same: with an empty list in them where none is stored, with `1000m` for `1`.
 * Upstream compares what it has in memory where a list is owned as a whole, so that who sends one has changed it.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 value/listreflect.go EqualsUsing
 */
import { isMap, type JsonMap } from "../json-value.ts";
import { ANYTHING_ATOMIC, childNode, type ListSchema, type MapSchema, type SchemaNode, shapeOf } from "../schema.ts";
import { EMPTY_SET, type FieldSet, LEAF, sortKeys } from "./field-set.ts";
import { fieldElement, itemElement, type PathElement } from "./path-element.ts";

/** The fields that are in both objects and have something `respelled` in a list of `after`. */
export function respelledFields(schema: SchemaNode, before: JsonMap, after: JsonMap, respelled: ReadonlySet<object>): FieldSet {
  return below(schema, before, after) ?? EMPTY_SET;

  function below(node: SchemaNode, old: unknown, next: unknown): FieldSet | undefined {
    if (old === next || typeof old !== "object" || typeof next !== "object" || old === null || next === null) return undefined;
    switch (shapeOf(node, next)) {
      case "scalar": return undefined;
      case "map": return isMap(old) && isMap(next) ? inMap(node.map!, old, next) : undefined;
      case "list": return Array.isArray(old) && Array.isArray(next) ? inList(node.list!, old, next) : undefined;
    }
  }

  function inMap(map: MapSchema, old: JsonMap, next: JsonMap): FieldSet | undefined {
    if (map.atomic) return hasRespelledList(next) ? LEAF : undefined;
    let set: FieldSet | undefined;
    for (const key in next) {
      const found = below(childNode(map, key) ?? ANYTHING_ATOMIC, old[key], next[key]);
      if (found) (set ??= {})[fieldElement(key)] = found;
    }
    return set && sortKeys(set);
  }

  function inList(list: ListSchema, old: readonly unknown[], next: readonly unknown[]): FieldSet | undefined {
    if (list.atomic) return isRespelled(next) ? LEAF : undefined;
    const olds = new Map<PathElement, unknown>(old.map((item) => [itemElement(list, item), item]));
    let set: FieldSet | undefined;
    for (const item of next) {
      const element = itemElement(list, item);
      const found = below(list.items, olds.get(element), item);
      if (found) (set ??= {})[element] = found;
    }
    return set && sortKeys(set);
  }

  function hasRespelledList(value: unknown): boolean {
    if (Array.isArray(value)) return isRespelled(value);
    return isMap(value) && Object.values(value).some(hasRespelledList);
  }

  function isRespelled(value: unknown): boolean {
    if (typeof value !== "object" || value === null) return false;
    return respelled.has(value) || Object.values(value).some(isRespelled);
  }
}
