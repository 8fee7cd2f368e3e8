/**
 * JSON as expressions see it when no schema says what it is: whole numbers are int, others double; objects are maps. Nothing is copied.
 *
 *   fromJson({ spec: { replicas: 3 } })
 *   toJson(value)                          what no JSON says, such as a type, is null
 */
import { Type } from "../check/type.ts";
import { show } from "./show.ts";
import { Duration, EvalError, List, Mapping, Opaque, Optional, Timestamp, Uint, type Value } from "./value.ts";

/** Numbers as large as this are no int. */
export const INT64_SIZE = 2 ** 63;

export type JsonObject = Readonly<Record<string, unknown>>;

export function fromJson(json: unknown): Value {
  switch (typeof json) {
    case "string": case "boolean": case "bigint": return json;
    case "number": return Number.isInteger(json) && Math.abs(json) < INT64_SIZE ? BigInt(json) : json;
    case "object": return json === null ? null : Array.isArray(json) ? new JsonList(json) : new JsonMapping(json as JsonObject);
    default: return null;
  }
}

export function toJson(value: Value): unknown {
  if (typeof value === "object" && value !== null && "json" in value) return value.json; // it is made of JSON, or says how it would be
  if (value instanceof List) return [...value].map(toJson);
  if (value instanceof Mapping) return Object.fromEntries([...value.keys()].map((key) => [show(key), toJson(value.find(key)!)]));
  if (value instanceof Optional) return value.value === undefined ? null : toJson(value.value);
  if (value instanceof Uint) return numberOf(value.value);
  if (typeof value === "bigint") return numberOf(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof Timestamp || value instanceof Duration) return show(value);
  return value instanceof Type || value instanceof EvalError || value instanceof Opaque ? null : value;
}

/** One that is too large for a number stays as it is. */
export function numberOf(value: bigint): number | bigint { return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value; }

class JsonList extends List {
  readonly json: readonly unknown[];
  constructor(json: readonly unknown[]) { super(); this.json = json; }
  override get size(): number { return this.json.length; }
  override at(index: number): Value { return fromJson(this.json[index]); }
}

class JsonMapping extends Mapping {
  readonly json: JsonObject;
  readonly #inside = new Inside();
  #listed: readonly string[] | undefined;
  constructor(json: JsonObject) { super(); this.json = json; }
  override get size(): number { return this.#names().length; }
  override find(key: Value): Value | undefined {
    if (typeof key !== "string" || !Object.hasOwn(this.json, key) || this.json[key] === undefined) return undefined;
    return this.#inside.of(key, () => fromJson(this.json[key]));
  }
  override keys(): Iterable<Value> { return this.#names(); }
  /** Listed once: of a large object that takes longer than any one question may. */
  #names(): readonly string[] { return (this.#listed ??= Object.keys(this.json).filter((name) => this.json[name] !== undefined)); }
}

/** What was found in an object, as long as someone asks about it: maps know how many entries they have, and no text is read twice. */
export class Inside {
  readonly #found = new Map<string, Value>();
  of(key: string, value: () => Value): Value {
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const found = value();
    if (typeof found === "object" && found !== null && !(found instanceof List)) this.#found.set(key, found);
    return found;
  }
}
