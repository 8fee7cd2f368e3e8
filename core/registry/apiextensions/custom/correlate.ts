/**
 * A value and what it was before, node by node: which part of the old object is the same thing as a part of the new one.
 *
 * Fields go by name, items of a list that is a map by its keys; items of any other list have no past. What has not changed need not be valid: rules may
 * have become stricter since it was written.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/common/{equality,maplist}.go
 */
import { isMap, type JsonMap } from "../../../api/patch/json-value.ts";
import type { Structure } from "./structure.ts";

/** Does what takes time, and adds it up. */
export type Timed = <T>(work: () => T) => T;

export class Correlated {
  readonly value: unknown;
  readonly old: unknown;
  readonly #structure: Structure;
  readonly #timed: Timed | undefined;
  #equal: boolean | undefined;
  #oldItems: ReadonlyMap<string, unknown> | undefined;
  readonly #children = new Map<string | number, Correlated | undefined>();

  /** `timed`: comparisons. */
  constructor(value: unknown, old: unknown, structure: Structure, timed?: Timed) {
    this.value = value;
    this.old = old;
    this.#structure = structure;
    this.#timed = timed;
  }

  /** Whether nothing has changed, as far as the schema can tell: a field it does not name makes all around it count as changed, and so does an object's own metadata. */
  get unchanged(): boolean { return (this.#equal ??= this.#timed ? this.#timed(() => this.#isUnchanged()) : this.#isUnchanged()); }

  field(name: string): Correlated | undefined {
    return this.#child(name, () => {
      const structure = this.#structure.at(name);
      if (!structure || !isMap(this.value) || !isMap(this.old) || !Object.hasOwn(this.value, name) || !Object.hasOwn(this.old, name)) return undefined;
      return new Correlated(this.value[name], this.old[name], structure, this.#timed);
    });
  }

  item(index: number): Correlated | undefined {
    return this.#child(index, () => {
      const { items, listType, listMapKeys } = this.#structure;
      if (!items || listType !== "map" || !Array.isArray(this.value) || !Array.isArray(this.old)) return undefined;
      this.#oldItems ??= keyedItems(this.old, listMapKeys);
      const key = itemKey(this.value[index], listMapKeys);
      const old = key === undefined ? undefined : this.#oldItems.get(key);
      return old === undefined ? undefined : new Correlated(this.value[index], old, items, this.#timed);
    });
  }

  #isUnchanged(): boolean {
    const { value, old } = this;
    if (isMap(value) && isMap(old)) return Object.keys(value).length === Object.keys(old).length && Object.keys(value).every((name) => this.field(name)?.unchanged);
    const { items, listType } = this.#structure;
    if (!items || listType !== "map" || !Array.isArray(value) || !Array.isArray(old)) return Bun.deepEquals(value, old);
    return value.length === old.length && value.every((_, i) => this.item(i)?.unchanged);
  }

  #child(key: string | number, make: () => Correlated | undefined): Correlated | undefined {
    if (!this.#children.has(key)) this.#children.set(key, make());
    return this.#children.get(key);
  }
}

function keyedItems(items: readonly unknown[], keys: readonly string[]): ReadonlyMap<string, unknown> {
  const found = new Map<string, unknown>();
  for (const item of items) {
    const key = itemKey(item, keys);
    if (key !== undefined && !found.has(key)) found.set(key, item);
  }
  return found;
}

/** Undefined for what is no item of such a list, or lacks a key. */
export function itemKey(item: unknown, keys: readonly string[]): string | undefined {
  if (!isMap(item)) return undefined;
  const values = keys.map((key) => (Object.hasOwn(item, key) ? (item as JsonMap)[key] : undefined));
  if (values.some((value) => value === undefined || value === null || typeof value === "object")) return undefined;
  return JSON.stringify(values.map((value) => (typeof value === "bigint" ? { bigint: String(value) } : value)));
}
