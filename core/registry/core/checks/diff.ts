/**
 * What changed between two values, as a unified diff of their JSON with three lines of context. Messages about immutable fields end with one.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/diff/diff.go; github.com/pmezard/go-difflib difflib.go
 */
import { jsonText } from "../../../api/codec/json.ts";

const CONTEXT = 3;
/** Finding the longest run of lines in both may take as many steps as the product of both lengths, and that of what is before and after it as many again; beyond this everything in between counts as replaced. */
const STEPS_MAX = 4_000_000;
/** In a text of so many lines, those that are there more often than one in a hundred times are no place to begin at. */
const [MANY_LINES, POPULAR_PER] = [200, 100];

interface Edit { readonly sign: " " | "-" | "+"; readonly line: string }
/** Lines that both have: before[at…], after[to…]. */
interface Run { readonly at: number; readonly to: number; readonly length: number }
interface Part { readonly at: number; readonly atEnd: number; readonly to: number; readonly toEnd: number }

export function jsonDiff(before: unknown, after: unknown): string {
  return hunks(edits(lines(before), lines(after))).map(formatHunk).join("");
}

function lines(value: unknown): string[] { return (value === undefined ? "null" : jsonText(value, { indent: 1 })).split("\n"); }

function edits(before: readonly string[], after: readonly string[]): Edit[] {
  const out: Edit[] = [];
  let [at, to] = [0, 0];
  for (const run of [...commonRuns(before, after), { at: before.length, to: after.length, length: 0 }]) {
    for (; at < run.at; at++) out.push({ sign: "-", line: before[at]! });
    for (; to < run.to; to++) out.push({ sign: "+", line: after[to]! });
    for (const end = at + run.length; at < end; at++, to++) out.push({ sign: " ", line: before[at]! });
  }
  return out;
}

/** The longest, and those before and after it. */
function commonRuns(before: readonly string[], after: readonly string[]): Run[] {
  const places = placesOf(after), left = { steps: STEPS_MAX };
  const within = (part: Part): Run[] => {
    const run = left.steps <= 0 || (part.atEnd - part.at) * (part.toEnd - part.to) > STEPS_MAX ? undefined : longestRun(before, after, part, { places, left });
    if (!run) return [];
    const [atEnd, toEnd] = [run.at + run.length, run.to + run.length];
    return [...within({ ...part, atEnd: run.at, toEnd: run.to }), run, ...within({ ...part, at: atEnd, to: toEnd })];
  };
  if (before.length * after.length <= STEPS_MAX) return within({ at: 0, atEnd: before.length, to: 0, toEnd: after.length });
  const { head, tail } = sameEnds(before, after);
  const tailAt = { at: before.length - tail, to: after.length - tail };
  return [{ at: 0, to: 0, length: head }, ...within({ at: head, atEnd: tailAt.at, to: head, toEnd: tailAt.to }), { ...tailAt, length: tail }];
}

function sameEnds(before: readonly string[], after: readonly string[]): { readonly head: number; readonly tail: number } {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < most - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  return { head, tail };
}

function placesOf(after: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const places = Map.groupBy(after.keys(), (i) => after[i]!);
  if (after.length < MANY_LINES) return places;
  const most = Math.floor(after.length / POPULAR_PER) + 1;
  return new Map([...places].filter(([, found]) => found.length <= most));
}

/** The first of the longest. */
function longestRun(before: readonly string[], after: readonly string[], { at: from, atEnd, to: toFrom, toEnd }: Part, { places, left }: { readonly places: ReadonlyMap<string, readonly number[]>; readonly left: { steps: number } }): Run | undefined {
  let [at, to, length] = [from, toFrom, 0];
  let ending = new Map<number, number>(); // lengths of those that end at a line of `after`
  for (let i = from; i < atEnd; i++) {
    const next = new Map<number, number>();
    left.steps--;
    for (const j of places.get(before[i]!) ?? []) {
      left.steps--;
      if (j < toFrom) continue;
      if (j >= toEnd) break;
      const found = (ending.get(j - 1) ?? 0) + 1;
      next.set(j, found);
      if (found > length) [at, to, length] = [i - found + 1, j - found + 1, found];
    }
    ending = next;
  }
  while (at > from && to > toFrom && before[at - 1] === after[to - 1]) { at--; to--; length++; }
  while (at + length < atEnd && to + length < toEnd && before[at + length] === after[to + length]) length++;
  return length > 0 ? { at, to, length } : undefined;
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
