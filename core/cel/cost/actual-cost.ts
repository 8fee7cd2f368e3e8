/**
 * What a call has cost. Most cost 1; those that read strings cost a tenth of their length.
 *
 * Source: cel-go interpreter/runtimecost.go; kubernetes v1.36 apiserver/pkg/cel/library/cost.go (CallCost)
 */
import type { Overload } from "../check/declarations.ts";
import { Optional, sizeOf, type Value, weightOf } from "../value/value.ts";
import { libraryCost } from "./library-cost.ts";
import { COMPARES_STRINGS, REGEX_FACTOR, STRING_FACTOR } from "./factors.ts";
const READS_FIRST = new Set(["starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote", "string_format"]);

/** `overload`: undefined if it was not known before the call. */
export function actualCost(name: string, overload: Overload | undefined, { args, result }: { readonly args: readonly Value[]; readonly result: Value }): number {
  if (overload?.cost) return overload.cost.actual(args, result);
  const ofLibrary = libraryCost(name)?.actual({ args, result, overload: overload?.id ?? "" });
  return ofLibrary ?? standardCost(overload?.id ?? "", args);
}

/** Calls that look at no element, or at one. */
const LOOKS_AT_NONE: ReadonlySet<string> = new Set(["_+_", "size", "_[_]", "_[?_]", "dyn", "type", "optional.of"]);
/** What is compared beyond that many values is work that cel-go does not count. */
const UNCOUNTED_MAX = 10_000;
/** Comparisons, which look at so many elements for a cost of 1; others at one. */
const COMPARISONS: ReadonlySet<string> = new Set(["_==_", "_!=_"]);
const COMPARED_PER_COST = 1 / STRING_FACTOR;

/**
 * What a call costs before it is made, on top of actualCost, which is told when it was: lists made of lists, again and again, are few bytes and more values than anybody looks
 * at in a day. Upstream, where only the one who asks waits, does not count that. Infinity: more elements than a cost of `limit` allows for.
 */
export function costAhead(name: string, args: readonly Value[], limit: number): number {
  if (LOOKS_AT_NONE.has(name)) return 0;
  const isComparison = COMPARISONS.has(name), perCost = isComparison ? COMPARED_PER_COST : 1;
  let [size, weight] = [0, 0];
  for (const [i, arg] of args.entries()) {
    const [own, ownWeight] = [weightOf(arg) === 0 ? 0 : sizeOf(arg) ?? 0, weightOf(arg)];
    [size, weight] = !isComparison || i === 0 ? [size + own, weight + ownWeight] : [Math.min(size, own), Math.min(weight, ownWeight)]; // nobody goes on where one ends
  }
  if (weight <= UNCOUNTED_MAX) return 0;
  return size > limit * perCost ? Infinity : Math.max(0, weight - size - UNCOUNTED_MAX) / COMPARED_PER_COST;
}

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
