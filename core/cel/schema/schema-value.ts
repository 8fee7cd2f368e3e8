/**
 * JSON as expressions see it: what a schema says it is. Nothing is copied; elements are looked at when someone asks for them.
 *
 * Lists that the schema calls sets or maps are equal whatever their order, and adding to them adds what is not there. What has the wrong type is an
 * error, but only for who looks at it.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/common/valuesunstructured.go
 */
import { parseDurationNs } from "../../api/meta/duration.ts";
import { isMap, type JsonMap } from "../../api/patch/json-value.ts";
import { timeParseError } from "../../api/schema/time-parse-error.ts";
import { Inside, INT64_SIZE, toJson } from "../value/json.ts";
import { parseTimestamp } from "../value/time.ts";
import { Duration, equal, EvalError, List, Mapping, noSuchOverload, Opaque, Timestamp, type Value } from "../value/value.ts";
import { struct } from "../check/type.ts";
import { additionalOf, isEmbedded, itemsOf, withObjectMeta, type JsonSchema } from "./declared-type.ts";
import { escapeName, unescapeName } from "./escape.ts";

const PRESERVED = struct("unknown");

export function valueOf(json: unknown, schema: JsonSchema): Value {
  if (json === null || json === undefined) return schema.nullable ? null : new EvalError("invalid data, got null for schema with nullable=false");
  if (schema["x-kubernetes-int-or-string"] === true) return intOrString(json);
  switch (schema.type) {
    case "object": return isMap(json) ? new SchemaObject(json, isEmbedded(schema) ? withObjectMeta(schema) : schema) : new EvalError("invalid data, expected a map for the provided schema with type=object");
    case "array": return listValue(json, schema);
    case "string": return typeof json === "string" ? textValue(json, schema.format) : new EvalError(`invalid data, expected string, got ${goType(json)}`);
    case "number": return typeof json === "number" || typeof json === "bigint" ? Number(json) : new EvalError(`invalid data, expected float, got ${goType(json)}`);
    case "integer": return whole(json) ?? new EvalError(`invalid data, expected int, got ${goType(json)}`);
    case "boolean": return typeof json === "boolean" ? json : new EvalError(`invalid data, expected bool, got ${goType(json)}`);
  }
  if (schema["x-kubernetes-preserve-unknown-fields"] === true) return new Preserved(json);
  return new EvalError(
    `invalid type, expected object, array, number, integer, boolean or string, or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ${schema.type ?? ""}`);
}

/** What no 64 bits hold is a float. */
function whole(json: unknown): bigint | undefined {
  if (typeof json === "bigint") return json;
  return typeof json === "number" && Number.isInteger(json) && json >= -INT64_SIZE && json < INT64_SIZE ? BigInt(json) : undefined;
}

function intOrString(json: unknown): Value {
  if (typeof json === "string") return json;
  return whole(json) ?? new EvalError("invalid data, expected XIntOrString value to be either a string or integer");
}

function goType(json: unknown): string {
  if (Array.isArray(json)) return "[]interface {}";
  switch (typeof json) {
    case "string": return "string";
    case "boolean": return "bool";
    case "number": case "bigint": return whole(json) === undefined ? "float64" : "int64";
    default: return "map[string]interface {}";
  }
}

function textValue(text: string, format: string | undefined): Value {
  switch (format) {
    case "duration": return durationValue(text);
    case "date": return parseTimestamp(`${text}T00:00:00Z`) ?? new EvalError(`Invalid date formatted string ${text}: ${timeParseError(text, "day")}`);
    case "date-time": return text === "" ? new Timestamp(0n) : (parseTimestamp(text) ?? parseTimestamp(`${text}Z`) ?? new EvalError(`Invalid date-time formatted string ${text}: ${timeParseError(text, "local")}`));
    case "byte": return bytesValue(text);
    default: return text;
  }
}

const UNITS: readonly (readonly [nanos: bigint, ...names: string[]])[] = [
  [1n, "ns", "nano"], [1_000n, "us", "µs", "micro"], [1_000_000n, "ms", "milli"], [1_000_000_000n, "s", "sec"], [60_000_000_000n, "m", "min"], [3_600_000_000_000n, "h", "hr", "hour"],
  [86_400_000_000_000n, "d", "day"], [604_800_000_000_000n, "w", "wk", "week"],
];

/** Go's, or "2 days". */
function durationValue(text: string): Value {
  const nanos = goDuration(text);
  if (nanos !== undefined) return new Duration(nanos);
  let total = 0n;
  let known = false;
  for (const [, digits, word] of text.matchAll(/(?<!\d)(\d+)\s*([A-Za-zµ]+)/g)) {
    const unit = word!.toLowerCase();
    const found = UNITS.find(([, ...names]) => names.some((name, i) => unit === name || (i === names.length - 1 && unit.startsWith(name))));
    if (!found) continue;
    known = true;
    total += BigInt(digits!) * found[0];
  }
  return known ? new Duration(total) : new EvalError(`Invalid duration ${text}: unable to parse ${text} as duration`);
}

function goDuration(text: string): bigint | undefined {
  try {
    return parseDurationNs(text);
  } catch {
    // It may be written the other way.
    return undefined;
  }
}

/** Upstream reads them in the alphabet for URLs. */
function bytesValue(text: string): Value {
  const body = text.replace(/[\r\n]/g, "");
  const wrong = corruptAt(body);
  return wrong !== undefined ? new EvalError(`Invalid byte formatted string ${text}: illegal base64 data at input byte ${wrong}`) : new Uint8Array(Buffer.from(body, "base64url"));
}

/** Where Go says that base64 is illegal: four characters are read at a time, and told of by their first if there are too few. */
function corruptAt(body: string): number | undefined {
  const padding = body.indexOf("="), end = padding < 0 ? body.length : padding;
  const illegal = body.slice(0, end).search(/[^A-Za-z0-9_-]/);
  if (illegal >= 0) return illegal;
  const rest = end % 4;
  if (padding < 0) return rest === 0 ? undefined : end - rest;
  if (rest < 2) return padding;
  if (rest === 2 && body[padding + 1] !== "=") return padding + 1 === body.length ? body.length : padding;
  const last = padding + (rest === 2 ? 2 : 1);
  return last === body.length ? undefined : last;
}

/** Of which the schema says nothing. */
class Preserved extends Opaque {
  override readonly type = PRESERVED;
  override readonly goType = "*common.unknownPreserved";
  readonly json: unknown;
  constructor(json: unknown) { super(); this.json = json; }
  override equals(other: Value): boolean { return Bun.deepEquals(this.json, toJson(other)); }
}

function listValue(json: unknown, schema: JsonSchema): Value {
  if (!Array.isArray(json)) return new EvalError("invalid data, expected an array for the provided schema with type=array");
  const items = itemsOf(schema);
  if (!items) return new EvalError("invalid array type, expected Items with a non-empty Schema");
  switch (schema["x-kubernetes-list-type"]) {
    case undefined: case "": case "atomic": return new SchemaList(json, items);
    case "set": return new SetList(json, items);
    case "map": return new MapList(json, items, (schema["x-kubernetes-list-map-keys"] ?? []).map((key) => escapeName(key) ?? key));
    default: return new EvalError(`invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got ${schema["x-kubernetes-list-type"]}`);
  }
}

class SchemaList extends List {
  readonly json: readonly unknown[];
  readonly items: JsonSchema;
  constructor(json: readonly unknown[], items: JsonSchema) { super(); this.json = json; this.items = items; }
  override get size(): number { return this.json.length; }
  override at(index: number): Value { return valueOf(this.json[index], this.items); }
  override equals(other: Value): boolean | EvalError {
    if (!(other instanceof List)) return noSuchOverload(other);
    if (other.size !== this.size) return false;
    for (let i = 0; i < this.size; i++) {
      const equality = sameAs(this.at(i), other.at(i));
      if (equality !== true) return equality;
    }
    return true;
  }
  override plus(other: Value): Value { return other instanceof List ? new SchemaList([...this.json, ...elementsOf(other)], this.items) : noSuchOverload(other); }
}

/** What cannot be read is equal to nothing, and says why. */
function sameAs(mine: Value, theirs: Value): boolean | EvalError { return mine instanceof EvalError ? mine : equal(mine, theirs); }
function elementsOf(list: List): readonly unknown[] { return toJson(list) as unknown[]; }
function keyOf(json: unknown): string { return JSON.stringify(json, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)) ?? ""; }

class SetList extends SchemaList {
  override equals(other: Value): boolean | EvalError {
    if (!(other instanceof List)) return noSuchOverload(other);
    if (other.size !== this.size) return false;
    const own = new Set(this.json.map(keyOf));
    return elementsOf(other).every((element) => own.has(keyOf(element)));
  }
  override plus(other: Value): Value {
    if (!(other instanceof List)) return noSuchOverload(other);
    const known = new Set(this.json.map(keyOf)), added: unknown[] = [];
    for (const element of elementsOf(other)) {
      const key = keyOf(element);
      if (known.has(key)) continue;
      known.add(key);
      added.push(element);
    }
    return new SetList([...this.json, ...added], this.items);
  }
}

class MapList extends SchemaList {
  readonly #keys: readonly string[];
  constructor(json: readonly unknown[], items: JsonSchema, keys: readonly string[]) { super(json, items); this.#keys = keys; }
  override equals(other: Value): boolean | EvalError {
    if (!(other instanceof List)) return noSuchOverload(other);
    if (other.size !== this.size) return false;
    const own = new Map(this.json.map((element) => [this.#keyOf(element), element]));
    for (const element of other) {
      const mine = own.get(this.#keyOf(toJson(element)));
      if (mine === undefined) return false;
      const equality = sameAs(valueOf(mine, this.items), element);
      if (equality !== true) return equality;
    }
    return true;
  }
  /** Elements with the same keys take the others' places. */
  override plus(other: Value): Value {
    if (!(other instanceof List)) return noSuchOverload(other);
    const byKey = new Map(this.json.map((element) => [this.#keyOf(element), element]));
    for (const element of elementsOf(other)) byKey.set(this.#keyOf(element), element);
    return new MapList([...byKey.values()], this.items, this.#keys);
  }
  #keyOf(element: unknown): string { return keyOf(this.#keys.map((key) => (isMap(element) ? (element[key] ?? null) : null))); }
}

class SchemaObject extends Mapping {
  readonly json: JsonMap;
  readonly #schema: JsonSchema;
  readonly #inside = new Inside();
  #size: number | undefined;
  constructor(json: JsonMap, schema: JsonSchema) { super(); this.json = json; this.#schema = schema; }

  override get size(): number { return (this.#size ??= Object.keys(this.json).length); }

  override find(key: Value): Value | undefined {
    if (typeof key !== "string") return noSuchOverload(key);
    const isFields = this.#schema.properties !== undefined;
    const name = isFields ? unescapeName(key) : key;
    if (name === undefined || !Object.hasOwn(this.json, name)) return undefined;
    const json = this.json[name];
    const schema = this.#at(name);
    // A field that is null is not there.
    return schema === undefined || (isFields && json === null) ? undefined : this.#inside.of(name, () => valueOf(json, schema));
  }

  override *keys(): Iterable<Value> {
    for (const name of Object.keys(this.json)) if (this.#at(name)) yield this.#schema.properties ? (escapeName(name) ?? name) : name;
  }

  override equals(other: Value): boolean | EvalError {
    if (!(other instanceof Mapping)) return noSuchOverload(other);
    if (other.size !== this.size) return false;
    for (const [name, json] of Object.entries(this.json)) {
      if (!this.#at(name)) {
        if (!(other instanceof SchemaObject)) return noSuchOverload(other);
        if (Object.hasOwn(other.json, name) && !Bun.deepEquals(json, other.json[name])) return false;
        continue;
      }
      const [mine, theirs] = [this.find(name), other.find(name)];
      if ((mine === undefined) !== (theirs === undefined)) return false;
      const equality = mine === undefined || sameAs(mine, theirs!);
      if (equality !== true) return equality;
    }
    return true;
  }

  #at(name: string): JsonSchema | undefined {
    const { properties } = this.#schema;
    if (properties) return Object.hasOwn(properties, name) ? properties[name] : undefined;
    return additionalOf(this.#schema);
  }
}
