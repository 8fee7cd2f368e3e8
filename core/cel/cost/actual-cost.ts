/**
 * What a call has cost. Most cost 1; those that read strings cost a tenth of their length.
 *
 * Source: cel-go interpreter/runtimecost.go; kubernetes v1.36 apiserver/pkg/cel/library/cost.go (CallCost)
 */
import type { Overload } from "../check/declarations.ts";
import { OPERATORS } from "../syntax/expr.ts";
import { List, nestedWeight, Optional, sizeOf, type Value } from "../value/value.ts";
import { libraryCost } from "./library-cost.ts";
import { COMPARES_STRINGS, REGEX_FACTOR, STRING_FACTOR } from "./factors.ts";
const READS_FIRST = new Set(["starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote", "string_format"]);

/** Those that look at all that is within what they are given. */
const LOOKS_WITHIN: ReadonlySet<string> = new Set(["_==_", "_!=_", "@in", "distinct", "flatten", "format", "indexOf", "lastIndexOf", "sets.contains", "sets.equivalent", "sets.intersects"]);
const WITHIN_FREE = 2000, WITHIN_FACTOR = 0.01;

const SEARCH_FREE = 200, SEARCH_FACTOR = 0.01;

/** What is charged before a call. */
export function costAhead(name: string, overload: Overload | undefined, args: readonly Value[]): number {
  return (overload?.cost?.ahead ? overload.cost.actual(args, null) : 0) + costWithin(name, args) + costOfSearch(name, overload, args) + args.reduce<number>((sum, arg) => sum + costOfLength(arg), 0);
}

const LENGTH_FREE = 2000, LENGTH_FACTOR = 0.01;

/** Upstream lets how long a text is be told, a letter of it be taken, and it be a key, for next to nothing, however long it is. A hundred of them are read for what an expression may cost. */
export function costOfLength(value: Value): number { return typeof value === "string" ? Math.floor(Math.max(0, value.length - LENGTH_FREE) * LENGTH_FACTOR) : 0; }

/** Upstream asks how many elements a list has, however large they are; of many that a few lists within lists make of themselves it would go through all, for nothing. */
function costWithin(name: string, args: readonly Value[]): number {
  if (!LOOKS_WITHIN.has(name)) return 0;
  return args.reduce<number>((sum, arg) => sum + Math.floor(Math.max(0, nestedWeight(arg) - WITHIN_FREE) * WITHIN_FACTOR), 0);
}

/** Where no type says that it is a list, upstream looks through one for nothing: `object.a.all(x, x in object.b)` would take as long as both are long, multiplied. */
function costOfSearch(name: string, overload: Overload | undefined, [, within]: readonly Value[]): number {
  return name === OPERATORS.in && overload === undefined && within instanceof List ? Math.floor(Math.max(0, within.size - SEARCH_FREE) * SEARCH_FACTOR) : 0;
}

/** After a call. `overload`: undefined if it was not known before. */
export function actualCost(name: string, overload: Overload | undefined, { args, result }: { readonly args: readonly Value[]; readonly result: Value }): number {
  if (overload?.cost) return overload.cost.ahead ? 0 : overload.cost.actual(args, result);
  const ofLibrary = libraryCost(name)?.actual({ args, result, overload: overload?.id ?? "" });
  return (ofLibrary ?? standardCost(overload?.id ?? "", args)) + (name === "format" ? costOfWriting(result) : 0);
}

const WRITTEN_FREE = 40_000;

/** Upstream charges a format for its own length alone; what is written may be as long as the whole object, or as wide as it says. */
function costOfWriting(written: Value): number { return typeof written === "string" ? Math.floor(Math.max(0, written.length - WRITTEN_FREE) * STRING_FACTOR) : 0; }

function standardCost(overload: string, args: readonly Value[]): number {
  if (READS_FIRST.has(overload)) return Math.ceil(costSize(args[0]!) * STRING_FACTOR);
  if (COMPARES_STRINGS.has(overload)) return Math.ceil(Math.min(costSize(args[0]!), costSize(args[1]!)) * STRING_FACTOR);
  switch (overload) {
    case "in_list": return costSize(args[1]!);
    case "add_string": case "add_bytes": return Math.ceil((costSize(args[0]!) + costSize(args[1]!)) * STRING_FACTOR);
    case "matches_string": return Math.ceil((1 + costSize(args[0]!)) * STRING_FACTOR) * Math.ceil(costSize(args[1]!) * REGEX_FACTOR);
    case "contains_string": return Math.ceil(costSize(args[0]!) * STRING_FACTOR) * Math.ceil(costSize(args[1]!) * STRING_FACTOR);
    default: return 1;
  }
}

/** What has no size counts as 1. */
function costSize(value: Value): number {
  return sizeOf(value) ?? (value instanceof Optional && value.value !== undefined ? costSize(value.value) : 1);
}
