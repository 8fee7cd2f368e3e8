/**
 * What a custom resource's schema takes out of an object: fields it does not know, and nulls it does not want.
 *
 * Nothing is changed in place: what stays as it is, is returned as it is, so `pruned(object, s) === object` says that there was nothing to prune.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/{pruning/algorithm,defaulting/prunenulls}.go
 */
import { setKey } from "../../../api/codec/json-document.ts";
import { isMap, type JsonMap } from "../../../api/patch/json-value.ts";
import type { Structure } from "./structure.ts";

const META = new Set(["apiVersion", "kind", "metadata"]);

/** `report` is told the path of each field that goes, unsorted. */
export function pruned<T>(value: T, structure: Structure | undefined, report?: (path: string) => void): T {
  return prune(value, structure, "", report) as T;
}

type Report = ((path: string) => void) | undefined;

function prune(value: unknown, structure: Structure | undefined, path: string, report: Report): unknown {
  if (Array.isArray(value)) return mapItems(value, (item, i) => pruneItem(item, structure, `${path}[${i}]`, report));
  if (!isMap(value)) return value;
  return mapEntries(value, (name, field) => {
    if (structure?.embedded && META.has(name)) return field;
    const at = report && (path === "" ? name : `${path}.${name}`);
    if (structure) {
      const property = structure.properties.get(name);
      if (property || structure.hasAdditional) return prune(field, property ?? structure.additional, at ?? "", report);
      if (structure.preserves) return field;
    }
    if (path !== "" || !META.has(name)) report?.(at!);
    return DROPPED;
  });
}

function pruneItem(item: unknown, structure: Structure | undefined, path: string, report: Report): unknown {
  if (!structure?.preserves) return prune(item, structure?.items, path, report);
  return structure.items ? pruneKept(item, structure.items, path, report) : item;
}

/** In a list that keeps what it does not know, items do too, but for what their properties say. */
function pruneKept(value: unknown, structure: Structure, path: string, report: Report): unknown {
  if (Array.isArray(value)) return structure.items ? mapItems(value, (item, i) => pruneKept(item, structure.items!, `${path}[${i}]`, report)) : value;
  if (!isMap(value)) return value;
  return mapEntries(value, (name, field) => {
    if (structure.embedded && META.has(name)) return field;
    const property = structure.properties.get(name);
    return property || structure.hasAdditional ? prune(field, property ?? structure.additional, `${path}.${name}`, report) : field;
  });
}

/** Without nulls that the schema neither allows nor replaces by a default. */
export function withoutNulls<T>(value: T, structure: Structure | undefined): T {
  return dropNulls(value, structure) as T;
}

function dropNulls(value: unknown, structure: Structure | undefined): unknown {
  if (!structure) return value;
  if (Array.isArray(value)) return mapItems(value, (item) => dropNulls(item, structure.items));
  if (!isMap(value)) return value;
  return mapEntries(value, (name, field) => {
    const below = structure.at(name);
    if (field === null && below && !below.nullable && below.byDefault === undefined) return DROPPED;
    return dropNulls(field, below);
  });
}

/** As a new value of a field: there is to be none. */
export const DROPPED: unique symbol = Symbol("dropped");

/** The same map if `change` changes nothing. */
export function mapEntries(map: JsonMap, change: (name: string, value: unknown) => unknown): JsonMap {
  let changed: Record<string, unknown> | undefined;
  for (const name of Object.keys(map)) {
    const value = map[name];
    const next = change(name, value);
    if (next === value) continue;
    changed ??= { ...map };
    if (next === DROPPED) delete changed[name];
    else setKey(changed, name, next);
  }
  return changed ?? map;
}

/** The same list if `change` changes nothing. */
export function mapItems(list: readonly unknown[], change: (item: unknown, index: number) => unknown): readonly unknown[] {
  let changed: unknown[] | undefined;
  for (let i = 0; i < list.length; i++) {
    const next = change(list[i], i);
    if (next === list[i]) continue;
    changed ??= [...list];
    changed[i] = next;
  }
  return changed ?? list;
}
