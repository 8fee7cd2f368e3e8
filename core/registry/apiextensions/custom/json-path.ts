/**
 * JSONPath as kubectl and CustomResourceDefinitions write it: `.status.conditions[?(@.type=="Ready")].status`, `.spec.ports[*].port`, `..name`.
 *
 *   compileJsonPath(".spec.replicas").find(object)     → the values found, in order; none if nothing is there
 *
 * A compiled path is a list of steps; each takes the values found so far to the next ones.
 *
 * Source: kubernetes v1.36 client-go/util/jsonpath (what it accepts and finds)
 */
import { formatGo, isMap } from "../../../api/patch/json-value.ts";
import { parseFilter, type Filter } from "./json-path-filter.ts";

export interface JsonPath {
  /** Throws for what only the data shows, an index out of bounds, a filter on what is no list; and for words and operators that nobody knows, which are no faults of the path to upstream. */
  find(root: unknown): readonly unknown[];
}

export class JsonPathError extends Error { override readonly name = "JsonPathError"; }

export type Step =
  | { readonly type: "field"; readonly name: string }
  | { readonly type: "wildcard" }
  | { readonly type: "recursive" }
  | { readonly type: "slice"; readonly from: number | undefined; readonly to: number | undefined; readonly step: number; readonly single: boolean }
  | { readonly type: "union"; readonly paths: readonly (readonly Step[])[] }
  | { readonly type: "filter"; readonly filter: Filter }
  | { readonly type: "literal"; readonly value: unknown }
  | { readonly type: "word"; readonly name: string };

/** Without braces around it. Throws JsonPathError. */
export function compileJsonPath(text: string): JsonPath {
  const steps = parseSteps(text);
  return { find: (root) => follow(steps, [root]) };
}

export function follow(steps: readonly Step[], values: readonly unknown[]): readonly unknown[] {
  let found = values;
  for (const step of steps) found = take(step, found);
  return found;
}

function take(step: Step, values: readonly unknown[]): readonly unknown[] {
  switch (step.type) {
    case "literal": return [step.value];
    case "word": throw new JsonPathError(`unrecognized identifier ${step.name}`);
    case "union": return step.paths.flatMap((path) => [...follow(path, values)]);
    case "recursive": return values.flatMap(descend);
    case "wildcard": return values.flatMap(contents);
    case "field": return values.flatMap((value) => (isMap(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : []));
    case "slice": return values.flatMap((value) => (value === null || value === undefined ? [] : sliced(step, value)));
    case "filter": return values.flatMap((value) => {
      if (!Array.isArray(value)) throw new JsonPathError(`${formatGo(value)} is not array or slice and cannot be filtered`);
      return value.filter((item) => step.filter(item));
    });
  }
}

function sliced({ from, to, step, single }: Extract<Step, { type: "slice" }>, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new JsonPathError(`${typeof value} is not array or slice`);
  const { length } = value;
  let start = from ?? 0;
  let end = single ? start + 1 : (to ?? length);
  if (start < 0) start += length;
  if (end < 0 || (end === 0 && single)) end += length;
  if (start === end) return [];
  if (start >= length || start < 0) throw new JsonPathError(`array index out of bounds: index ${start}, length ${length}`);
  if (end > length || end < 0) throw new JsonPathError(`array index out of bounds: index ${end - 1}, length ${length}`);
  if (start > end) throw new JsonPathError(`starting index ${start} is greater than ending index ${end}`);
  if (step <= 0) throw new JsonPathError("step must be > 0");
  return value.slice(start, end).filter((_, i) => i % step === 0);
}

/** The value itself if it holds others, and all that is in it, outermost first. */
function descend(value: unknown): unknown[] {
  const inside = contents(value);
  return inside.length === 0 ? [] : [value, ...inside.flatMap(descend)];
}

function contents(value: unknown): unknown[] {
  if (Array.isArray(value)) return value as unknown[];
  return isMap(value) ? Object.keys(value).sort().map((name) => value[name]) : [];
}

const SLICE = /^(-?\d*)(:-?\d*)?(:-?\d*)?$/;
const TERMINATORS = new Set([" ", "\t", "\r", "\n", ".", ",", "[", "]", "$", "@", "{", "}"]);

/** Throws JsonPathError. */
export function parseSteps(text: string): Step[] {
  const steps: Step[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text[at]!;
    if (text.startsWith("[?(", at)) {
      const { filter, end } = parseFilter(text, at);
      steps.push({ type: "filter", filter });
      at = end;
    } else if (text.startsWith("..", at)) {
      if (steps.at(-1)?.type === "recursive") throw new JsonPathError("invalid multiple recursive descent");
      steps.push({ type: "recursive" });
      at += 2;
      if (at < text.length && /[\p{L}\p{Nd}_]/u.test(text[at]!)) at = field(text, at, steps);
    } else if (char === "[") at = brackets(text, at, steps);
    else if (char === ".") at = field(text, at + 1, steps);
    else if (char === " " || char === "@" || char === "$") at++;
    else if (char === "\"" || char === "'") at = quoted(text, at, steps);
    else at = literal(text, at, steps);
  }
  return steps;
}

function field(text: string, start: number, steps: Step[]): number {
  let at = start;
  while (at < text.length && !TERMINATORS.has(text[at]!)) at += text[at] === "\\" ? 2 : 1;
  if (at > text.length) throw new JsonPathError("unexpected end after \\");
  const name = text.slice(start, at);
  steps.push(name === "*" ? { type: "wildcard" } : { type: "field", name: name.replaceAll("\\", "") });
  return at;
}

function brackets(text: string, start: number, steps: Step[]): number {
  const end = text.indexOf("]", start);
  if (end < 0) throw new JsonPathError("unterminated array");
  const inside = text.slice(start + 1, end);
  const parts = inside.split(",");
  if (parts.length > 1) steps.push({ type: "union", paths: parts.map((part) => parseSteps(`[${part.trim()}]`)) });
  else if (/^'[^']*'$/.test(inside)) steps.push(...parseSteps(`.${inside.slice(1, -1)}`));
  else steps.push(slice(inside === "*" ? ":" : inside));
  return end + 1;
}

function slice(text: string): Step {
  const match = SLICE.exec(text);
  if (!match) throw new JsonPathError(`invalid array index ${text}`);
  const number = (part: string): number | undefined => (part === "" || part === "-" ? undefined : Number(part));
  const [, first = "", second, third] = match;
  return { type: "slice", from: number(first), to: number(second?.slice(1) ?? ""), step: number(third?.slice(1) ?? "") ?? 1, single: second === undefined };
}

function quoted(text: string, start: number, steps: Step[]): number {
  const quote = text[start]!;
  let at = start + 1;
  while (at < text.length && text[at] !== quote) at += text[at] === "\\" ? 2 : 1;
  if (at >= text.length) throw new JsonPathError("unterminated quoted string");
  steps.push({ type: "literal", value: text.slice(start + 1, at).replace(/\\(.)/g, "$1") });
  return at + 1;
}

function literal(text: string, start: number, steps: Step[]): number {
  const number = /^[+-]?[\d.]+/.exec(text.slice(start))?.[0];
  if (number !== undefined) {
    if (!Number.isFinite(Number(number))) throw new JsonPathError(`cannot parse number ${number}`);
    steps.push({ type: "literal", value: Number(number) });
    return start + number.length;
  }
  const word = /^[\p{L}\p{Nd}_]+/u.exec(text.slice(start))?.[0];
  if (word === undefined) throw new JsonPathError(`unrecognized character in action: U+${text.codePointAt(start)!.toString(16).toUpperCase().padStart(4, "0")} '${text[start]}'`);
  steps.push(word === "true" || word === "false" ? { type: "literal", value: word === "true" } : { type: "word", name: word });
  return start + word.length;
}
