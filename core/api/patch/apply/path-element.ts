/**
 * Path elements: how a set of fields names a step from a value to a part of it.
 *
 *   f:spec                                    a field, or a key of a map
 *   k:{"containerPort":80,"protocol":"TCP"}   the item of a list with these keys
 *   v:"finalizer.example.com"                 the item of a set
 *   i:3                                       an index; only old objects have them
 *
 * They are kept in this, their wire form, so that sets need no translation; the JSON inside is canonical (keys sorted, no blanks).
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 fieldpath/{element,serialize-pe}.go, typed/helpers.go
 */
import { inKeyOrder } from "../../codec/json-document.ts";
import { jsonText, parseJson } from "../../codec/json.ts";
import { goQuote } from "../../meta/go-quote.ts";
import { isMap, isScalar, type JsonMap, valueAt } from "../json-value.ts";
import type { ListSchema } from "../schema.ts";
import { TypedError } from "./typed-error.ts";

export type PathElement = string;

export function fieldElement(name: string): PathElement { return `f:${name}`; }

/** The element of a list item. Throws TypedError for an item that cannot be told from others. */
export function itemElement(list: ListSchema, item: unknown): PathElement {
  return list.keys.length > 0 ? keyedElement(list, item) : setElement(item);
}

function keyedElement({ keys, keysAsDefined = keys, items }: ListSchema, item: unknown): PathElement {
  if (item === null || item === undefined) throw new TypedError("associative list with keys may not have a null element");
  if (!isMap(item)) throw new TypedError("associative list with keys may not have non-map elements");
  let text = "";
  for (const key of keys) {
    const given = valueAt(item, key), value = given === undefined ? items.map?.field(key)?.default : given;
    if (value === undefined) continue; // an item without this key is another item than one with it, be it null
    text += `${text === "" ? "" : ","}${quoteJson(key)}:${quoteJson(value)}`;
  }
  if (text === "") {
    const named = `[${keysAsDefined.map(goQuote).join(" ")}]`;
    throw new TypedError(`associative list with keys has an element that omits all key fields ${named} (and doesn't have default values for any key fields)`);
  }
  return `k:{${text}}`;
}

function setElement(item: unknown): PathElement {
  if (isScalar(item)) return `v:${quoteJson(item)}`;
  if (Array.isArray(item)) throw new TypedError("not supported: associative list with lists as elements");
  if (item === null || item === undefined) throw new TypedError("associative list without keys has an element that's an explicit null");
  throw new TypedError("associative list without keys has an element that's a map type");
}

const PLAIN = /^[\w./:@ -]*$/;

function quoteJson(value: unknown): string {
  if (typeof value === "string") return PLAIN.test(value) ? `"${value}"` : jsonText(value);
  return typeof value === "number" ? withLongExponent(String(value)) : jsonText(value);
}

/** An exponent has two digits at least in the library that writes these. */
function withLongExponent(number: string): string { return number.replace(/e-(\d)$/, "e-0$1"); }

/** The canonical spelling of an element a client wrote; undefined for a kind from the future, which is dropped. Throws for nonsense. */
export function canonicalElement(written: string): PathElement | undefined {
  if (written.length < 2) throw new Error("key must be 2 characters long:");
  if (written[1] !== ":") throw new Error(`missing colon: ${written}`);
  switch (written[0]) {
    case "f": return written;
    case "i": {
      if (!/^i:[+-]?\d+$/.test(written)) throw new Error(`strconv.Atoi: parsing ${goQuote(written.slice(2))}: invalid syntax`);
      return `i:${Number(written.slice(2))}`;
    }
    case "v": return `v:${quoteJson(inKeyOrder(parseJson(written.slice(2)).value))}`;
    case "k": {
      const key = parseJson(written.slice(2)).value;
      if (!isMap(key)) throw new Error(`not the key of a list item: ${written}`);
      return `k:${jsonText(inKeyOrder(key))}`;
    }
    default: return undefined;
  }
}

/** `.spec`, `[name="web"]`, `[="x"]`, `[3]`: as conflicts and errors print it. */
export function formatElement(element: PathElement): string {
  const text = element.slice(2);
  switch (element[0]) {
    case "f": return `.${text}`;
    case "k": {
      const key = parseJson(text).value as JsonMap;
      return `[${Object.keys(key).map((name) => `${name}=${formatValue(key[name])}`).join(",")}]`;
    }
    case "v": return `[=${formatValue(parseJson(text).value)}]`;
    default: return `[${text}]`;
  }
}

function formatValue(value: unknown): string {
  if (typeof value === "string") return goQuote(value);
  if (Array.isArray(value)) return `[${value.map(formatValue).join(",")}]`;
  if (isMap(value)) return Object.keys(value).sort().map((key) => `${key}=${formatValue(value[key])}`).join("");
  return String(value);
}

const KIND_RANKS: Readonly<Record<string, number>> = { ".": 0, f: 1, k: 2, v: 3, i: 4 };

/** One key whose value is a string of characters that come after the quote which ends it: then the texts are in the order of what they mean. */
const PLAIN_KEY = /^k:\{"[A-Za-z]+":"[#-[\]-~]*"\}$/;

/** Fields before keyed items before set items before indices; numbers by size. `.` comes first. */
export function compareElements(a: PathElement, b: PathElement): number {
  if (a === b) return 0;
  const ranks = KIND_RANKS[a[0]!]! - KIND_RANKS[b[0]!]!;
  if (ranks !== 0) return ranks;
  if (a[0] === "f" || (PLAIN_KEY.test(a) && PLAIN_KEY.test(b))) return a < b ? -1 : 1;
  return compareValues(parseJson(a.slice(2)).value, parseJson(b.slice(2)).value);
}

/** Numbers before strings before booleans before null; keys as lists of name and value. */
function compareValues(a: unknown, b: unknown): number {
  if (isMap(a) && isMap(b)) return compareKeys(Object.entries(a), Object.entries(b));
  const [left, right] = [rankOf(a), rankOf(b)];
  if (left !== right) return left - right;
  return (a as string | number) < (b as string | number) ? -1 : (a as string | number) > (b as string | number) ? 1 : 0;
}

function compareKeys(a: readonly [string, unknown][], b: readonly [string, unknown][]): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    if (a[i]![0] !== b[i]![0]) return a[i]![0] < b[i]![0] ? -1 : 1;
    const difference = compareValues(a[i]![1], b[i]![1]);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function rankOf(value: unknown): number { return typeof value === "number" || typeof value === "bigint" ? 0 : typeof value === "string" ? 1 : typeof value === "boolean" ? 2 : 3; }
