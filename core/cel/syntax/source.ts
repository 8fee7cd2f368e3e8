/**
 * What is wrong with an expression, shown where it is wrong, in the words and the form of cel-go:
 *
 *   ERROR: <input>:1:7: undeclared reference to 'y' (in container '')
 *    | x && y
 *    | ......^
 *
 * Lines count from 1, columns of the text from 1, both in code points.
 */
export interface Issue {
  /** Where in the text, in UTF-16 units; undefined for what has no place. */
  readonly at: number | undefined;
  readonly message: string;
}

const SHOWN_MAX = 100;
const SNIPPET_MAX = 16_384;

interface Place {
  readonly line: number;
  /** From 0. */
  readonly column: number;
  readonly text: string;
}

/** Sorted by place; of more than a hundred only the first hundred. */
export function describeIssues(source: string, issues: readonly Issue[]): string {
  const shown = issues.slice(0, SHOWN_MAX).toSorted((a, b) => (a.at ?? -1) - (b.at ?? -1)).map((issue) => describe(source, issue));
  if (issues.length > SHOWN_MAX) shown.push(`${issues.length - SHOWN_MAX} more errors were truncated`);
  return shown.join("\n");
}

function describe(source: string, { at, message }: Issue): string {
  if (at === undefined) return `ERROR: <input>:-1:0: ${message}`;
  const { line, column, text } = placeOf(source, at);
  const head = `ERROR: <input>:${line}:${source === "" ? 0 : column + 1}: ${message}`;
  if (source === "" || Buffer.byteLength(text) > SNIPPET_MAX) return head;
  const points = [...text.replaceAll("\t", " ")];
  const before = points.slice(0, column).map((point) => (isWide(point) ? "．" : "."));
  return `${head}\n | ${points.join("")}\n | ${before.join("")}${isWide(points[column]) ? "＾" : "^"}`;
}

function placeOf(source: string, at: number): Place {
  const before = source.slice(0, at);
  const start = before.lastIndexOf("\n") + 1;
  const end = source.indexOf("\n", at);
  return { line: before.split("\n").length, column: [...before.slice(start)].length, text: source.slice(start, end < 0 ? source.length : end) };
}

function isWide(point: string | undefined): boolean { return point !== undefined && point.codePointAt(0)! > 0x7f; }
