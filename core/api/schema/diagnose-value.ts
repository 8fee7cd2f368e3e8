/**
 * Why a value does not fit its type, in the words of the converter that strategic merge patches and server-side apply end in. It fills Go's structs
 * from maps in the order of their fields, and tells of the first that does not fit without a word of where it stands.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/runtime/converter.go FromUnstructuredWithValidation
 */
import { jsonNodeOf } from "../codec/json-document.ts";
import { diagnose, type Diagnosis } from "./diagnose.ts";
import type { ListType, MapType, Scalar, ScalarType, StructType, Type } from "./facts.ts";
import { goTypeName } from "./go-type-name.ts";

type GoKind = "string" | "bool" | "int64" | "float64" | "slice" | "map";

/** `strict` is in order of the alphabet. */
export function diagnoseValue(type: StructType, value: unknown): Diagnosis {
  const strict: string[] = [];
  const error = unfit(type, value, "", strict);
  return { error, strict: error === undefined ? strict.sort() : [] };
}

function unfit(type: Type, value: unknown, path: string, strict: string[]): string | undefined {
  if (value === null || value === undefined) return undefined;
  switch (type.kind) {
    case "struct": return unfitStruct(type, value, path, strict);
    case "map": return unfitMap(type, value, path, strict);
    case "list": return unfitList(type, value, path, strict);
    case "scalar": return unfitScalar(type, value);
    case "special": return diagnose(type, jsonNodeOf(value)).error; // its own decoder reads it
  }
}

function unfitStruct(type: StructType, value: unknown, path: string, strict: string[]): string | undefined {
  const kind = goKindOf(value);
  if (kind !== "map") return `cannot restore struct from: ${kind}`;
  for (const { name, type: inner } of type.fields) {
    const error = unfit(inner, (value as Record<string, unknown>)[name], within(path, name), strict);
    if (error !== undefined) return error;
  }
  for (const key of Object.keys(value as object)) if (!type.field(key)) strict.push(`unknown field "${within(path, key)}"`);
  return undefined;
}

function unfitMap(type: MapType, value: unknown, path: string, strict: string[]): string | undefined {
  const kind = goKindOf(value);
  return kind === "map" ? firstOf(Object.values(value as object), (entry) => unfit(type.values, entry, path, strict)) : `cannot restore map from ${kind}`;
}

function unfitList(type: ListType, value: unknown, path: string, strict: string[]): string | undefined {
  const kind = goKindOf(value);
  return kind === "slice" ? firstOf(value as unknown[], (item, index) => unfit(type.items, item, `${path}[${index}]`, strict)) : `cannot restore slice from ${kind}`;
}

function unfitScalar(type: ScalarType, value: unknown): string | undefined {
  const from = goKindOf(value);
  if (type.scalar === "bytes") return unfitBytes(type, value, from);
  if (from === "slice" || from === "map") return `unrecognized type: ${type.scalar}`;
  if (from === type.scalar || isNumber(type.scalar) && (from === "int64" || from === "float64" && (type.scalar === "float64" || Number.isInteger(value)))) return undefined;
  const isConvertible = from === "int64" && type.scalar === "string" || from === "float64" && isNumber(type.scalar); // of Go's kinds, if not of JSON's
  return isConvertible ? `cannot convert ${from} to ${goTypeName(type)}` : `unrecognized type: ${type.scalar}`;
}

function unfitBytes(type: ScalarType, value: unknown, from: GoKind): string | undefined {
  if (from === "slice") return firstOf(value as unknown[], (item) => (goKindOf(item) === "int64" || item === null ? undefined : "unrecognized type: uint8"));
  if (from !== "string") return `cannot restore slice from ${from}`;
  const { error } = diagnose(type, jsonNodeOf(value));
  return error === undefined ? undefined : `error decoding from json: ${error}`;
}

function isNumber(scalar: Scalar): boolean { return scalar === "int32" || scalar === "int64" || scalar === "float64"; }

function within(path: string, key: string): string { return path === "" ? key : `${path}.${key}`; }

function firstOf<T>(items: readonly T[], find: (item: T, index: number) => string | undefined): string | undefined {
  for (const [index, item] of items.entries()) {
    const found = find(item, index);
    if (found !== undefined) return found;
  }
  return undefined;
}

function goKindOf(value: unknown): GoKind {
  switch (typeof value) {
    case "string": return "string";
    case "boolean": return "bool";
    case "bigint": return "int64";
    case "number": return Number.isSafeInteger(value) ? "int64" : "float64"; // larger ones of an int64 are bigints
    default: return Array.isArray(value) ? "slice" : "map";
  }
}
