/**
 * Lists that are sets or maps have no two items that are the same.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go
 */
import { inKeyOrder } from "../../../api/codec/json-document.ts";
import { child, duplicate, type FieldError, index, invalid, key } from "../../../api/meta/field-error.ts";
import { isMap } from "../../../api/patch/json-value.ts";
import type { Structure } from "./structure.ts";

export function* validateLists(value: unknown, structure: Structure | undefined, path: string): Iterable<FieldError> {
  if (!structure?.has.keyedLists) return;
  if (Array.isArray(value)) {
    yield* validateList(value, structure, path);
    for (const [i, item] of value.entries()) yield* validateLists(item, structure.items, index(path, i));
  } else if (isMap(value)) {
    for (const [name, field] of Object.entries(value)) {
      const property = structure.properties.get(name);
      yield* validateLists(field, property ?? structure.additional, property ? child(path, name) : key(path, name));
    }
  }
}

function* validateList(items: readonly unknown[], { listType, listMapKeys }: Structure, path: string): Iterable<FieldError> {
  if (listType === "set") for (const i of repeated(items)) yield duplicate(index(path, i), inKeyOrder(items[i]));
  if (listType !== "map") return;
  for (const [i, item] of items.entries()) {
    if (item === null || isMap(item)) continue;
    yield invalid(index(path, i), item, "must be an object for an array of list-type map");
    return;
  }
  const keys = items.map((item) => Object.fromEntries(listMapKeys.flatMap((name) => (isMap(item) && Object.hasOwn(item, name) ? [[name, item[name]]] : []))));
  for (const i of repeated(keys)) yield duplicate(index(path, i), inKeyOrder(keys[i]));
}

/** The first repetition of each item that is repeated. */
function repeated(items: readonly unknown[]): number[] {
  const seen = new Map<string, number>();
  const found: number[] = [];
  for (const [i, item] of items.entries()) {
    const text = identity(item);
    const times = seen.get(text) ?? 0;
    if (times === 1) found.push(i);
    seen.set(text, times + 1);
  }
  return found;
}

function identity(value: unknown): string {
  return JSON.stringify(inKeyOrder(value), (_, inner: unknown) => (typeof inner === "bigint" ? { bigint: String(inner) } : inner));
}
