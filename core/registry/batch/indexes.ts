/** Lists of indexes of pods, `0,3-5`: ascending, below the number of completions. Source: kubernetes v1.36 pkg/apis/batch/validation/validation.go */
import { parseGoInteger } from "../../api/meta/go-integer.ts";
import { goQuote } from "../../api/meta/go-quote.ts";

interface Interval { readonly first: number; readonly last: number }

/** How many there are. Throws an Error with what is wrong. */
export function countIndexes(text: string, completions: number): number {
  let last: number | undefined;
  let total = 0;
  for (const part of text === "" ? [] : text.split(",")) {
    const interval = parseInterval(part, completions);
    if (last !== undefined && last >= interval.first) throw new Error(`non-increasing order, previous: ${last}, current: ${interval.first}`);
    total += interval.last - interval.first + 1;
    last = interval.last;
  }
  return total;
}

function parseInterval(text: string, completions: number): Interval {
  const limits = text.split("-");
  if (limits.length > 2) throw new Error(`the fragment ${goQuote(text)} violates the requirement that an index interval can have at most two parts separated by '-'`);
  const first = parseIndex(limits[0]!, completions);
  if (limits.length === 1) return { first, last: first };
  const last = parseIndex(limits[1]!, completions);
  if (first >= last) throw new Error(`non-increasing order, previous: ${first}, current: ${last}`);
  return { first, last };
}

function parseIndex(text: string, completions: number): number {
  const value = readIndex(text);
  if (value >= completions) throw new Error(`too large index: ${goQuote(text)}`);
  return value;
}

function readIndex(text: string): number {
  try {
    return Number(parseGoInteger(text));
  } catch (cause) {
    throw new Error(`cannot convert string to integer for index: ${goQuote(text)}`, { cause });
  }
}

/** The first index in both lists; parts that cannot be read are passed over: they are refused elsewhere. */
export function firstOverlap(a: string, b: string, completions: number): number | undefined {
  const [left, right] = [readable(a, completions), readable(b, completions)];
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    const [x, y] = [left[i]!, right[j]!];
    if (x.first <= y.last && y.first <= x.last) return Math.max(x.first, y.first);
    if (x.first <= y.first) i++;
    else j++;
  }
  return undefined;
}

function readable(text: string, completions: number): Interval[] {
  return (text === "" ? [] : text.split(",")).flatMap((part) => {
    try {
      return [parseInterval(part, completions)];
    } catch {
      return []; // the check of its format says what is wrong with it
    }
  });
}
