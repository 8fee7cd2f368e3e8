/**
 * JSON values as patches handle them: read without stepping into prototypes, compared, copied on write, and named as Go names them in errors.
 *
 * Values may be deeply frozen and are never changed here. Integers beyond 2^53 are bigints.
 */
import { goNumber } from "../meta/go-float.ts";

export type JsonMap = Readonly<Record<string, unknown>>;

export function isMap(value: unknown): value is JsonMap { return typeof value === "object" && value !== null && !Array.isArray(value); }

export function isScalar(value: unknown): value is string | number | bigint | boolean { return value !== null && value !== undefined && typeof value !== "object"; }

/** What is no text is as good as none. */
export function textOf(value: unknown): string { return typeof value === "string" ? value : ""; }

/** The own value of a key, undefined if there is none. Keys come from clients: `constructor` and `__proto__` are labels like any other. */
export function valueAt(map: JsonMap, key: string): unknown {
  const value = map[key];
  if (value === undefined) return undefined;
  return typeof value === "function" || (key === "__proto__" && !Object.hasOwn(map, key)) ? undefined : value;
}

/** Sets a key on a map we are building. */
export function put(map: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(map, key, { value, writable: true, enumerable: true, configurable: true });
  else map[key] = value;
}

export function isEmptyMap(map: object): boolean {
  for (const _ in map) return false;
  return true;
}

/** Deep equality of JSON. The order of keys does not matter, and a key that is undefined is not there. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!equalJson(a[i], b[i])) return false;
    return true;
  }
  if (Array.isArray(b)) return false;
  return coversKeys(a as JsonMap, b as JsonMap, true) && coversKeys(b as JsonMap, a as JsonMap, false);
}

function coversKeys(a: JsonMap, b: JsonMap, compare: boolean): boolean {
  for (const key in a) {
    const left = a[key];
    if (left === undefined) continue;
    const right = valueAt(b, key);
    if (right === undefined || (compare && !equalJson(left, right))) return false;
  }
  return true;
}

/** A value as Go's %v prints it: `map[a:1 b:[x y]]`, with keys sorted. */
export function formatGo(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(formatGo).join(" ")}]`;
  if (isMap(value)) return `map[${Object.keys(value).sort().map((key) => `${key}:${formatGo(value[key])}`).join(" ")}]`;
  return typeof value === "number" ? goNumber(value) : String(value);
}

/** As Go's %s prints what should have been a text. Within a list or a map nothing is told without the verb. */
export function formatGoText(value: unknown): string { return value === null || value === undefined ? "%!s(<nil>)" : formatGoPart(value); }

function formatGoPart(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(formatGoPart).join(" ")}]`;
  if (isMap(value)) return `map[${Object.keys(value).sort().map((key) => `${key}:${formatGoPart(value[key])}`).join(" ")}]`;
  return `%!s(${goTypeOf(value)}=${formatGo(value)})`;
}

/** What reflect.TypeOf says of a decoded JSON value. */
export function goTypeOf(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  if (isMap(value)) return "map[string]interface {}";
  if (typeof value === "number") return Number.isInteger(value) && Math.abs(value) < 2 ** 63 ? "int64" : "float64";
  return typeof value === "bigint" ? "int64" : typeof value === "boolean" ? "bool" : "string";
}

/** The JSON kind as encoding/json names it when it cannot decode a value. */
export function jsonKindOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "number";
  return value === null || value === undefined ? "null" : typeof value;
}

/** What a patch adds: it brings no nulls along, except as items of lists. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isMap(value)) return value;
  const kept: Record<string, unknown> = {};
  for (const key in value) if (value[key] !== null) put(kept, key, withoutNulls(value[key]));
  return kept;
}
