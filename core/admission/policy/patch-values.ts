/**
 * Values of expressions as the fields of a configuration and as the values of a JSON patch.
 *
 *   Object.spec{replicas: 3, nodeSelector: {"a": "b"}}     {"replicas":3,"nodeSelector":{"a":"b"}}
 *   Object.spec{template: {"spec": {"paused": true}}}      the map within the map is no JSON: it is a Foreign and fits no schema
 *
 * Fields of Objects are taken for JSON, and what lists and maps hold that are written there; not what is written within those. What comes
 * from the request's objects is JSON all the way down.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/mutation/dynamic/objects.go, apiserver/pkg/admission/plugin/policy/mutating/patch/json_patch.go; cel-go v0.26 common/types ConvertToNative
 */
import { formatDurationNs } from "../../api/meta/duration.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { fieldElement, formatElement, itemElement } from "../../api/patch/apply/path-element.ts";
import { type Misfit, TypedError } from "../../api/patch/apply/typed-error.ts";
import { isMap, type JsonMap } from "../../api/patch/json-value.ts";
import { childNode, type SchemaNode, shapeOf } from "../../api/patch/schema.ts";
import { JsonPatchValue, ObjectValue } from "../../cel/admission/patch-types.ts";
import { Type } from "../../cel/check/type.ts";
import { QuantityValue } from "../../cel/library/quantity.ts";
import { numberOf, toJson } from "../../cel/value/json.ts";
import { show } from "../../cel/value/show.ts";
import { Duration, JoinedLists, List, Mapping, Opaque, Optional, Timestamp, Uint, type Value } from "../../cel/value/value.ts";

/** What no JSON says, as Go prints it. */
export class Foreign {
  /** Its type. */
  readonly type: string;
  /** With %v. */
  readonly plain: string;
  /** With %#v. */
  readonly syntax: string;
  constructor(type: string, plain: string, syntax = plain) { this.type = type; this.plain = plain; this.syntax = syntax; }
}

/** A map in which Foreigns may stand. Throws an Error for keys that are no strings. */
export function configurationOf({ fields }: ObjectValue): JsonMap {
  return Object.fromEntries([...fields].map(([name, value]) => [name, fieldOf(name, value)]));
}

/** Throws TypedError for the first Foreign that the schema does not take for anything. */
export function refuseForeign(schema: SchemaNode, value: unknown): void {
  const [first] = misfitsIn(schema, value, "");
  if (first) throw new TypedError([first]);
}

function fieldOf(name: string, value: Value): unknown {
  if (isWritten(value, List)) return [...value].map(nativeOf);
  if (!isWritten(value, Mapping)) return nativeOf(value);
  return Object.fromEntries([...value.keys()].map((key) => {
    if (typeof key !== "string") throw new Error(`fail to convert field ${goQuote(name)}: map key ${quotedKey(key)} is of type ${goClassOf(key)}, not string`);
    return [key, nativeOf(value.find(key)!)];
  }));
}

/** What Go holds for it. */
function nativeOf(value: Value): unknown {
  if (value === null) return new Foreign("structpb.NullValue", "NULL_VALUE", "0");
  if (value instanceof ObjectValue) {
    try {
      return configurationOf(value);
    } catch (error) {
      return new Foreign("*types.Err", (error as Error).message);
    }
  }
  if (value instanceof Uint) return new Foreign("uint64", String(value.value), `0x${value.value.toString(16)}`);
  if (value instanceof Uint8Array) return new Foreign("[]uint8", `[${value.join(" ")}]`, `[]uint8{${[...value].map((byte) => `0x${byte.toString(16)}`).join(", ")}}`);
  if (value instanceof Timestamp) return timeOf(value);
  if (value instanceof Duration) return new Foreign("time.Duration", formatDurationNs(value.nanos), String(value.nanos));
  if (value instanceof Type) return value.text;
  if (value instanceof Optional) return value.value === undefined ? null : nativeOf(value.value);
  if (value instanceof JoinedLists) return [...value].map(nativeOf);
  if (isWritten(value, List)) return new Foreign("[]ref.Val", `[${[...value].map(show).join(" ")}]`, `[]ref.Val{${[...value].map(syntaxOf).join(", ")}}`);
  if (isWritten(value, Mapping)) {
    const entries = [...value.keys()].map((key) => [key, value.find(key)!] as const).sort(([a], [b]) => (show(a) < show(b) ? -1 : 1));
    const joined = (separator: string, text: (value: Value) => string): string => entries.map((entry) => entry.map(text).join(":")).join(separator);
    return new Foreign("map[ref.Val]ref.Val", `map[${joined(" ", show)}]`, `map[ref.Val]ref.Val{${joined(", ", syntaxOf)}}`);
  }
  if (value instanceof QuantityValue) return new Foreign("*resource.Quantity", String(value.quantity));
  return value instanceof Opaque ? new Foreign(value instanceof JsonPatchValue ? value.goType : value.type.name, value.type.name) : toJson(value);
}

function timeOf({ nanos }: Timestamp): Foreign {
  const date = new Date(Number(nanos / 1_000_000n));
  const [year, month, day, hours, minutes, seconds] = [date.getUTCFullYear(), date.toLocaleString("en-US", { month: "long", timeZone: "UTC" }), date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()];
  return new Foreign("time.Time", `${date.toISOString().slice(0, 19).replace("T", " ")} +0000 UTC`, `time.Date(${year}, time.${month}, ${day}, ${hours}, ${minutes}, ${seconds}, ${nanos % 1_000_000_000n}, time.UTC)`);
}

/** Whether it was made in the expression. */
function isWritten<T extends List | Mapping>(value: Value, type: abstract new (...args: never[]) => T): value is T & Value {
  return value instanceof type && !(value instanceof JoinedLists) && !("json" in value);
}

function* misfitsIn(schema: SchemaNode, value: unknown, path: string): Iterable<Misfit> {
  if (value instanceof Foreign) yield* misfitOf(schema, value, path);
  else if (Array.isArray(value)) for (const [i, item] of value.entries()) yield* misfitsInItem(schema, item, { i, path });
  else if (isMap(value)) {
    for (const [key, field] of Object.entries(value)) {
      const child = schema.map && childNode(schema.map, key);
      if (child) yield* misfitsIn(child, field, `${path}${formatElement(fieldElement(key))}`);
    }
  }
}

function* misfitsInItem({ list }: SchemaNode, item: unknown, { i, path }: { readonly i: number; readonly path: string }): Iterable<Misfit> {
  if (!list) return;
  if (item instanceof Foreign && list.keys.length > 0) yield { path, message: `element ${i}: associative list with keys may not have non-map elements` };
  else yield* misfitsIn(list.items, item, `${path}${formatElement(list.atomic || item instanceof Foreign ? `i:${i}` : elementOf(list, item, i))}`);
}

function elementOf(list: NonNullable<SchemaNode["list"]>, item: unknown, i: number): string {
  try {
    return itemElement(list, item);
  } catch {
    return `i:${i}`; // what is wrong with it is told by whoever checks all
  }
}

function* misfitOf(schema: SchemaNode, { type, plain, syntax }: Foreign, path: string): Iterable<Misfit> {
  if (!schema.map && !schema.list && !schema.scalar) return;
  const shape = shapeOf(schema, {});
  if (shape !== "scalar") { yield { path, message: `expected ${shape}, got &{${plain}}` }; return; }
  switch (schema.scalar!) {
    case "numeric": yield { path, message: `expected numeric (int or float), got ${type}` }; return;
    case "string": yield { path, message: `expected string, got &value.valueUnstructured{Value:${syntax}}` }; return;
    case "boolean": yield { path, message: `expected boolean, got &{${plain}}` }; return;
    case "untyped": yield { path, message: `expected any scalar, got &{${plain}}` };
  }
}

/** As the value of an operation. Throws an Error for what has no JSON. */
export function operandOf(value: Value): unknown {
  if (value instanceof ObjectValue) return structOf(configurationOf(value));
  if (typeof value === "number") return finite(value);
  if (value instanceof Duration) return `${Number(value.nanos) / 1e9}s`;
  if (typeof value === "bigint" || value instanceof Uint) {
    const number = numberOf(value instanceof Uint ? value.value : value);
    return typeof number === "bigint" ? String(number) : number;
  }
  if (value instanceof Type) throw new Error("type conversion not supported for 'type'");
  if (value instanceof JsonPatchValue) throw new Error("cannot convert to native type: *structpb.Value");
  if (value instanceof Optional) {
    if (value.value === undefined) throw new Error("optional.none() dereference");
    return operandOf(value.value);
  }
  if (value instanceof Opaque) throw new Error(`type conversion error from '${value.type.name.replace(/^(kubernetes|net)\.(?=\w+$)/, "").replace("NamedFormat", "Format")}' to '*structpb.Value'`);
  if (value instanceof List) return "json" in value ? value.json : [...value].map(operandOf);
  if (!(value instanceof Mapping)) return toJson(value);
  return "json" in value ? value.json : Object.fromEntries([...value.keys()].map((key) => [operandKey(key), operandOf(value.find(key)!)]));
}

function operandKey(key: Value): string {
  if (typeof key === "string") return key;
  throw new Error(typeof key === "boolean" ? "type conversion error from bool to 'string'" : `unsupported type conversion from '${key instanceof Uint ? "uint" : "int"}' to string`);
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new Error(`json: error calling MarshalJSON for type *structpb.Value: proto: google.protobuf.Value.number_value: invalid ${Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf"} value`);
}

/** Bytes and whole numbers without a sign are JSON here. */
function structOf(value: unknown): unknown {
  if (typeof value === "number") return finite(value);
  if (value instanceof Foreign) {
    if (value.type === "uint64") return Number(value.plain);
    if (value.type === "[]uint8") return Buffer.from((value.plain.match(/\d+/g) ?? []).map(Number)).toString("base64");
    throw new Error(`proto: invalid type: ${value.type}`);
  }
  if (Array.isArray(value)) return value.map(structOf);
  return isMap(value) ? Object.fromEntries(Object.entries(value).map(([key, field]) => [key, structOf(field)])) : value;
}

/** Foreigns that no schema knew anything about, as JSON. */
export function withoutForeign(value: unknown): unknown {
  if (value instanceof Foreign) return value.plain;
  if (Array.isArray(value)) return value.map(withoutForeign);
  return isMap(value) ? Object.fromEntries(Object.entries(value).map(([key, field]) => [key, withoutForeign(field)])) : value;
}

/** The Go type of the value itself. */
function goClassOf(value: Value): string {
  if (typeof value === "bigint") return "types.Int";
  if (typeof value === "boolean") return "types.Bool";
  return value instanceof Uint ? "types.Uint" : "types.String";
}

/** As Go's %q prints a key: numbers are runes to it. */
function quotedKey(key: Value): string {
  const whole = key instanceof Uint ? key.value : key;
  if (typeof whole !== "bigint") return `%!q(${goClassOf(key)}=${show(key)})`;
  return `'${goQuote(String.fromCodePoint(Number(BigInt.asUintN(20, whole)))).slice(1, -1)}'`;
}

function syntaxOf(value: Value): string { return typeof value === "string" ? goQuote(value) : show(value); }
