/** Lists and maps that grow while a comprehension makes them. No one else sees them before they are done. */
import { show } from "./show.ts";
import { EvalError, identityOf, List, listFrom, mapFrom, MapOfValues, type Mapping, noSuchOverload, type Value } from "./value.ts";

export class MutableList extends List {
  readonly #values: Value[] = [];
  override get size(): number { return this.#values.length; }
  override at(index: number): Value { return this.#values[index]!; }
  override plus(other: Value): Value {
    if (!(other instanceof List)) return noSuchOverload(other);
    for (const value of other) this.#values.push(value);
    return this;
  }
  frozen(): List { return listFrom(this.#values); }
}

export class MutableMap extends MapOfValues {
  readonly #entries: Map<unknown, readonly [key: Value, value: Value]>;
  constructor(entries: Map<unknown, readonly [key: Value, value: Value]> = new Map()) { super(entries); this.#entries = entries; }
  /** An EvalError for a key that is there. */
  insert(key: Value, value: Value): Value {
    if (this.find(key) !== undefined) return alreadyThere(key);
    this.#entries.set(identityOf(key), [key, value]);
    return this;
  }
  frozen(): Mapping { return new MapOfValues(this.#entries); }
}

/** A map with one entry more. */
export function inserted(map: Mapping, key: Value, value: Value): Value {
  if (map instanceof MutableMap) return map.insert(key, value);
  if (map.find(key) !== undefined) return alreadyThere(key);
  return mapFrom([...[...map.keys()].map((each) => [each, map.find(each)!] as const), [key, value]]);
}

function alreadyThere(key: Value): EvalError { return new EvalError(`insert failed: key ${show(key)} already exists`); }
