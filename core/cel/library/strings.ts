/**
 * More of strings: charAt, indexOf, replace, split, substring, trim, join, format, strings.quote. Positions count code points.
 *
 * Source: cel-go ext/strings.go (version 2, the one Kubernetes has)
 */
import { defineFunction, method, overload, type Library } from "../check/declarations.ts";
import { DYN, INT, STRING, listOf } from "../check/type.ts";
import { show } from "../value/show.ts";
import { countPoints, EvalError, type List, listFrom, type Value } from "../value/value.ts";
import { formatString } from "./string-format.ts";

const STRINGS = listOf(STRING);
/** unicode.IsSpace */
const IS_SPACE = /[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const QUOTES: Readonly<Record<string, string>> = { "\x07": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"' };

export const stringsLibrary: Library = {
  functions: [
    defineFunction("charAt", method("string_char_at_int", [STRING, INT], STRING, ([text, index]) => charAt(text as string, index as bigint))),
    defineFunction("indexOf",
      method("string_index_of_string", [STRING, STRING], INT, ([text, part]) => indexOf(text as string, part as string, 0n)),
      method("string_index_of_string_int", [STRING, STRING, INT], INT, ([text, part, from]) => indexOf(text as string, part as string, from as bigint))),
    defineFunction("lastIndexOf",
      method("string_last_index_of_string", [STRING, STRING], INT, ([text, part]) => lastIndexOf(text as string, part as string)),
      method("string_last_index_of_string_int", [STRING, STRING, INT], INT, ([text, part, from]) => lastIndexFrom(text as string, part as string, from as bigint))),
    defineFunction("lowerAscii", method("string_lower_ascii", [STRING], STRING, ([text]) => (text as string).replace(/[A-Z]+/g, (letters) => letters.toLowerCase()))),
    defineFunction("upperAscii", method("string_upper_ascii", [STRING], STRING, ([text]) => (text as string).replace(/[a-z]+/g, (letters) => letters.toUpperCase()))),
    defineFunction("replace",
      method("string_replace_string_string", [STRING, STRING, STRING], STRING, ([text, old, by]) => replace(text as string, old as string, { by: by as string, times: -1n })),
      method("string_replace_string_string_int", [STRING, STRING, STRING, INT], STRING, ([text, old, by, times]) => replace(text as string, old as string, { by: by as string, times: times as bigint }))),
    defineFunction("split",
      method("string_split_string", [STRING, STRING], STRINGS, ([text, separator]) => listFrom(split(text as string, separator as string, -1n))),
      method("string_split_string_int", [STRING, STRING, INT], STRINGS, ([text, separator, parts]) => listFrom(split(text as string, separator as string, parts as bigint)))),
    defineFunction("substring",
      method("string_substring_int", [STRING, INT], STRING, ([text, start]) => substring(text as string, start as bigint)),
      method("string_substring_int_int", [STRING, INT, INT], STRING, ([text, start, end]) => substring(text as string, start as bigint, end as bigint))),
    defineFunction("trim", method("string_trim", [STRING], STRING, ([text]) => trim(text as string))),
    defineFunction("format", method("string_format", [STRING, listOf(DYN)], STRING, ([format, args]) => formatString(format as string, args as List))),
    defineFunction("strings.quote", overload("strings_quote", [STRING], STRING, ([text]) => quote(text as string))),
    defineFunction("join",
      method("list_join", [STRINGS], STRING, ([list]) => join(list as List, "")),
      method("list_join_string", [STRINGS, STRING], STRING, ([list, separator]) => join(list as List, separator as string))),
  ],
};

function outOfRange(index: bigint): EvalError { return new EvalError(`index out of range: ${index}`); }

/** From both ends, one by one: an expression for spaces at the end tries again from each space there is. */
function trim(text: string): string {
  let start = 0, end = text.length;
  while (start < end && IS_SPACE.test(text[start]!)) start++;
  while (end > start && IS_SPACE.test(text[end - 1]!)) end--;
  return text.slice(start, end);
}

/** A text by its code points. Nothing is made of it: who looks at one of them, and at the next, costs no more than he is charged. */
interface Points { readonly length: number; slice(start: number, end?: number): string }

function pointsOf(text: string): Points {
  const length = countPoints(text);
  if (length === text.length) return text;
  return { length, slice: (start, end) => text.slice(unitsBefore(text, start), end === undefined ? undefined : unitsBefore(text, end)) };
}

function unitsBefore(text: string, point: number): number {
  let at = 0;
  for (let i = 0; i < point && at < text.length; i++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return at;
}

function charAt(text: string, index: bigint): Value {
  const points = pointsOf(text), at = Number(index);
  return index < 0n || index > BigInt(points.length) ? outOfRange(index) : points.slice(at, at + 1);
}

function indexOf(text: string, part: string, from: bigint): Value {
  if (part === "") return from;
  if (from < 0n) return outOfRange(from);
  const points = pointsOf(text);
  if (from >= BigInt(points.length)) return -1n;
  const start = points.slice(0, Number(from)).length;
  const found = text.indexOf(part, start);
  return found < 0 ? -1n : BigInt(countPoints(text.slice(0, found)));
}

function lastIndexOf(text: string, part: string): Value {
  const points = countPoints(text);
  if (part === "") return BigInt(points);
  return points === 0 ? -1n : lastIndexFrom(text, part, BigInt(points - 1));
}

function lastIndexFrom(text: string, part: string, from: bigint): Value {
  if (part === "") return from;
  if (from < 0n) return outOfRange(from);
  const points = pointsOf(text);
  if (from >= BigInt(points.length)) return -1n;
  const found = text.lastIndexOf(part, points.slice(0, Number(from)).length);
  return found < 0 ? -1n : BigInt(countPoints(text.slice(0, found)));
}

/** An empty `old` stands before each code point and at the end. */
function replace(text: string, old: string, { by, times }: { readonly by: string; readonly times: bigint }): string {
  if (old === by || times === 0n) return text;
  if (old !== "") return split(text, old, times < 0n ? -1n : times + 1n).join(by);
  const points = [...text];
  const replaced = points.map((point, i) => (times < 0n || BigInt(i) < times ? by + point : point)).join("");
  return times < 0n || BigInt(points.length) < times ? replaced + by : replaced;
}

/** At most `parts` of them, the last with what is left; all if that is negative. */
function split(text: string, separator: string, parts: bigint): readonly string[] {
  if (parts === 0n) return [];
  const all = separator === "" ? [...text] : text.split(separator);
  if (parts < 0n || BigInt(all.length) <= parts) return all;
  const kept = Number(parts) - 1;
  return [...all.slice(0, kept), all.slice(kept).join(separator)];
}

function substring(text: string, start: bigint, end?: bigint): Value {
  const points = pointsOf(text);
  const length = BigInt(points.length);
  if (end !== undefined && start > end) return new EvalError(`invalid substring range. start: ${start}, end: ${end}`);
  if (start < 0n || start > length) return outOfRange(start);
  if (end !== undefined && (end < 0n || end > length)) return outOfRange(end);
  return points.slice(Number(start), end === undefined ? undefined : Number(end));
}

function join(list: List, separator: string): Value {
  const parts: string[] = [];
  for (const part of list) {
    if (typeof part !== "string") return new EvalError(`join: invalid input: ${show(part)}`);
    parts.push(part);
  }
  return parts.join(separator);
}

function quote(text: string): string { return `"${text.toWellFormed().replace(/[\x07\b\f\n\r\t\v\\"]/g, (character) => QUOTES[character]!)}"`; }
