/**
 * What changed between two values, as a unified diff of their JSON with three lines of context. Messages about immutable fields end with one.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/diff/diff.go
 */
import { stringify } from "../../../api/codec/json.ts";

const CONTEXT = 3;
/** The table of the longest common subsequence grows with the product of both lengths; beyond this everything in between counts as replaced. */
const CELLS_MAX = 4_000_000;

interface Edit { readonly sign: " " | "-" | "+"; readonly line: string }

export function jsonDiff(before: unknown, after: unknown): string {
  return hunks(edits(lines(before), lines(after))).map(formatHunk).join("");
}

function lines(value: unknown): string[] { return (stringify(value, 1) ?? "null").split("\n"); }

function edits(before: readonly string[], after: readonly string[]): Edit[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const same = (line: string): Edit => ({ sign: " ", line });
  return [
    ...before.slice(0, head).map(same),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(same),
  ];
}

function middle(before: readonly string[], after: readonly string[]): Edit[] {
  const removed = before.map((line): Edit => ({ sign: "-", line }));
  const added = after.map((line): Edit => ({ sign: "+", line }));
  if (removed.length * added.length > CELLS_MAX) return [...removed, ...added];
  const width = after.length + 1;
  const common = new Uint32Array((before.length + 1) * width); // of before[i…] and after[j…]
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      common[i * width + j] = before[i] === after[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const out: Edit[] = [];
  let i = 0;
  let j = 0;
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) { out.push({ sign: " ", line: before[i]! }); i++; j++; }
    else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) out.push(removed[i++]!);
    else out.push(added[j++]!);
  }
  return [...out, ...removed.slice(i), ...added.slice(j)];
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
