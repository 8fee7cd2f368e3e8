/**
 * What changed between two values, as a unified diff of their JSON with three lines of context. Messages about immutable fields end with one.
 *
 * Of the lines that stay, the longest run is found first, then the longest before it and the longest behind it. Where two are as long, the earlier one counts.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/diff/diff.go, github.com/pmezard/go-difflib
 */
import { jsonText } from "../../../api/codec/json.ts";

const CONTEXT = 3;
/** In a text of so many lines … */
const MANY_LINES = 200;
/** … a line that is more than this part of it, as a bracket is, says nothing of what stays. */
const COMMON_PART = 1 / 100;
/** Comparisons: what differs much takes the square of its length. Beyond this only the beginning and the end are found to stay. */
const STEPS_MAX = 500_000;

interface Edit { readonly sign: " " | "-" | "+"; readonly line: string }

/** Lines that stay: where they are in the one text and in the other. */
interface Run { readonly before: number; readonly after: number; readonly count: number }

/** A part of both texts. */
interface Part { readonly before: number; readonly beforeEnd: number; readonly after: number; readonly afterEnd: number }

export function jsonDiff(before: unknown, after: unknown): string {
  return hunks(edits(lines(before), lines(after))).map(formatHunk).join("");
}

function lines(value: unknown): string[] { return (value === undefined ? "null" : jsonText(value, { indent: 1 })).split("\n"); }

function edits(before: readonly string[], after: readonly string[]): Edit[] {
  const out: Edit[] = [];
  let [i, j] = [0, 0];
  const runs = longestRuns(before, after) ?? ends(before, after);
  for (const run of [...runs, { before: before.length, after: after.length, count: 0 }]) {
    while (i < run.before) out.push({ sign: "-", line: before[i++]! });
    while (j < run.after) out.push({ sign: "+", line: after[j++]! });
    for (const end = i + run.count; i < end; j++) out.push({ sign: " ", line: before[i++]! });
  }
  return out;
}

/** undefined: it would take too long. */
function longestRuns(before: readonly string[], after: readonly string[]): Run[] | undefined {
  const places = placesOf(after);
  const runs: Run[] = [];
  let steps = 0;

  const search = (part: Part): boolean => {
    const run = longestRun(part);
    if (!run) return false;
    const { before: at, after: to, count } = run;
    if (count === 0) return true;
    if (part.before < at && part.after < to && !search({ ...part, beforeEnd: at, afterEnd: to })) return false;
    runs.push(run);
    return !(at + count < part.beforeEnd && to + count < part.afterEnd) || search({ ...part, before: at + count, after: to + count });
  };

  const longestRun = (part: Part): Run | undefined => {
    let best: Run = { before: part.before, after: part.after, count: 0 };
    let lengths = new Map<number, number>(); // of the run that ends with the line before this one, and with the after's line there
    for (let i = part.before; i < part.beforeEnd; i++) {
      const next = new Map<number, number>();
      for (const j of places.get(before[i]!) ?? []) {
        if (j >= part.afterEnd) break;
        if (++steps > STEPS_MAX) return undefined;
        if (j < part.after) continue;
        const count = (lengths.get(j - 1) ?? 0) + 1;
        next.set(j, count);
        if (count > best.count) best = { before: i - count + 1, after: j - count + 1, count };
      }
      if (++steps > STEPS_MAX) return undefined;
      lengths = next;
    }
    return widened(best, part);
  };

  /** Common lines beside it belong to it. */
  const widened = ({ before: at, after: to, count }: Run, part: Part): Run => {
    while (at > part.before && to > part.after && before[at - 1] === after[to - 1]) { at--; to--; count++; }
    while (at + count < part.beforeEnd && to + count < part.afterEnd && before[at + count] === after[to + count]) count++;
    return { before: at, after: to, count };
  };

  return search({ before: 0, beforeEnd: before.length, after: 0, afterEnd: after.length }) ? runs : undefined;
}

/** Where each line is, but for those that are too common. */
function placesOf(text: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const places = Map.groupBy(text.keys(), (at) => text[at]!);
  if (text.length < MANY_LINES) return places;
  const countMax = Math.floor(text.length * COMMON_PART) + 1;
  for (const [line, { length }] of [...places]) if (length > countMax) places.delete(line);
  return places;
}

function ends(before: readonly string[], after: readonly string[]): Run[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  return [{ before: 0, after: 0, count: head }, { before: before.length - tail, after: after.length - tail, count: tail }];
}

interface Hunk { readonly beforeStart: number; readonly afterStart: number; readonly edits: readonly Edit[] }

/** Changes closer than twice the context share a hunk. */
function hunks(all: readonly Edit[]): Hunk[] {
  const changed = all.flatMap(({ sign }, at) => (sign === " " ? [] : [at]));
  const ranges: { from: number; to: number }[] = [];
  for (const at of changed) {
    const last = ranges.at(-1);
    if (last && at - last.to <= 2 * CONTEXT + 1) last.to = at;
    else ranges.push({ from: at, to: at });
  }
  return ranges.map(({ from, to }) => {
    const start = Math.max(0, from - CONTEXT);
    const ahead = all.slice(0, start);
    return {
      beforeStart: ahead.filter(({ sign }) => sign !== "+").length + 1,
      afterStart: ahead.filter(({ sign }) => sign !== "-").length + 1,
      edits: all.slice(start, to + CONTEXT + 1),
    };
  });
}

function formatHunk({ beforeStart, afterStart, edits: shown }: Hunk): string {
  const range = (start: number, other: "+" | "-"): string => {
    const count = shown.filter(({ sign }) => sign !== other).length;
    if (count === 1) return String(start);
    return `${count === 0 ? start - 1 : start},${count}`;
  };
  return `@@ -${range(beforeStart, "+")} +${range(afterStart, "-")} @@\n${shown.map(({ sign, line }) => `${sign}${line}\n`).join("")}`;
}
