/**
 * An applied configuration laid over a live object. Nothing is removed; where both set a leaf, the configuration wins.
 *
 * A list of keyed items keeps the live order as long as it can; items the configuration names come in its order.
 * Result parts that equal the live ones are the live ones.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 typed/merge.go
 */
import { isEmptyMap, isMap, type JsonMap, put, valueAt } from "../json-value.ts";
import { ANYTHING_ATOMIC, childNode, type ListSchema, type MapSchema, type SchemaNode, shapeOf } from "../schema.ts";
import { itemElement, type PathElement } from "./path-element.ts";

/** Throws TypedError if the items of a list cannot be told apart. */
export function mergeTyped(schema: SchemaNode, live: JsonMap, applied: JsonMap): JsonMap {
  return (mergeValues(schema, live, applied) ?? {}) as JsonMap;
}

/** undefined is absent, on both ways. */
function mergeValues(schema: SchemaNode, live: unknown, applied: unknown): unknown {
  if (live === applied) return live;
  switch (shapeOf(schema, applied === undefined ? live : applied)) {
    case "scalar": return applied === undefined ? live : applied;
    case "map": return mergeMaps(schema.map!, live, applied);
    case "list": return mergeLists(schema.list!, live, applied);
  }
}

function mergeMaps(schema: MapSchema, live: unknown, applied: unknown): unknown {
  const left = isMap(live) && !isEmptyMap(live) ? live : undefined;
  const right = isMap(applied) && !isEmptyMap(applied) ? applied : undefined;
  if (schema.atomic || (left === undefined && right === undefined)) return applied === undefined ? live : applied;
  if (right === undefined) return left;
  const merged: Record<string, unknown> = { ...left };
  let changed = left === undefined;
  for (const key in right) {
    const before = left === undefined ? undefined : valueAt(left, key);
    const value = mergeValues(childNode(schema, key) ?? ANYTHING_ATOMIC, before, right[key]);
    if (value === before || value === undefined) continue;
    put(merged, key, value);
    changed = true;
  }
  return changed ? merged : left;
}

function mergeLists(schema: ListSchema, live: unknown, applied: unknown): unknown {
  const left = Array.isArray(live) && live.length > 0 ? (live as readonly unknown[]) : undefined;
  const right = Array.isArray(applied) && applied.length > 0 ? (applied as readonly unknown[]) : undefined;
  if (schema.atomic || (left === undefined && right === undefined)) return applied === undefined ? live : applied;
  if (right === undefined) return left;
  const merged = left === undefined ? right : weaveItems(schema, left, right);
  return left !== undefined && merged.length === left.length && merged.every((item, at) => item === left[at]) ? left : merged;
}

interface Item { readonly element: PathElement; readonly value: unknown }

function weaveItems(schema: ListSchema, left: readonly unknown[], right: readonly unknown[]): readonly unknown[] {
  const lefts = left.map((value): Item => ({ element: itemElement(schema, value), value }));
  const rights = right.map((value): Item => ({ element: itemElement(schema, value), value }));
  const liveItems = new Map<PathElement, unknown>();
  // of items that occur twice neither is what the applied one is merged into
  for (const { element, value } of lefts) liveItems.set(element, liveItems.has(element) ? null : value);
  const appliedElements = new Set(rights.map(({ element }) => element));
  const shared = rights.filter(({ element }) => liveItems.has(element)).map(({ element }) => element);
  const merged: unknown[] = [];
  const taken = new Set<PathElement>();
  let s = 0;
  const take = ({ element, value }: Item): void => {
    taken.add(element);
    merged.push(mergeValues(schema.items, liveItems.get(element), value));
    if (shared[s] === element) s++;
  };
  let l = 0;
  let r = 0;
  while (l < lefts.length || r < rights.length) {
    const item = lefts[l];
    if (item !== undefined && r < rights.length) {
      if (item.element === rights[r]!.element) { take(rights[r]!); l++; r++; continue; }
      // in both, but its turn is another: the configuration's order decides
      if (appliedElements.has(item.element) && shared[s] !== undefined && shared[s] !== item.element) { l++; continue; }
    }
    if (item !== undefined) {
      if (!appliedElements.has(item.element)) { merged.push(item.value); l++; continue; }
      if (taken.has(item.element)) l++;
    }
    if (r < rights.length) take(rights[r++]!);
  }
  return merged;
}
