/** The filters of a JSONPath: `[?(@.type=="Ready")]`, `[?(@.port > 80)]`, `[?(@.name)]`. */
import { follow, JsonPathError, parseSteps, type Step } from "./json-path.ts";
import { isNumber } from "./numbers.ts";

/** Whether an item of a list stays. */
export type Filter = (item: unknown) => boolean;

const COMPARISON = /^([^!<>=]+)([!<>=]+)(.+?)$/s;

/** `text` has "[?(" at `start`; `end` is after the closing bracket. Throws JsonPathError. */
export function parseFilter(text: string, start: number): { readonly filter: Filter; readonly end: number } {
  const close = closing(text, start + 3);
  if (text[close + 1] !== "]") throw new JsonPathError("unclosed array expect ]");
  const inside = text.slice(start + 3, close);
  const match = COMPARISON.exec(inside);
  return { filter: match ? comparison(parseSteps(match[1]!), match[2]!, parseSteps(match[3]!)) : exists(parseSteps(inside)), end: close + 2 };
}

/** The parenthesis that ends the filter: not one in quotes. */
function closing(text: string, start: number): number {
  let quote: string | undefined;
  for (let at = start; at < text.length; at++) {
    const char = text[at]!;
    if (quote !== undefined) {
      if (char === quote && text[at - 1] !== "\\") quote = undefined;
    } else if (char === "\"" || char === "'") quote = char;
    else if (char === ")") return at;
  }
  throw new JsonPathError("unterminated filter");
}

function exists(steps: readonly Step[]): Filter {
  return (item) => {
    try {
      return follow(steps, [item]).length > 0;
    } catch (error) {
      if (!(error instanceof JsonPathError)) throw error;
      return false; // what cannot be followed does not exist
    }
  };
}

function comparison(left: readonly Step[], operator: string, right: readonly Step[]): Filter {
  return (item) => {
    const a = one(follow(left, [item]));
    const b = one(follow(right, [item]));
    if (a === NOTHING || b === NOTHING) return false;
    const test = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
    if (!test) throw new JsonPathError(`unrecognized filter operator ${operator}`);
    if (typeof a === "boolean" && operator !== "==" && operator !== "!=") throw new JsonPathError("invalid type for comparison");
    return test(compare(a, b));
  };
}

const NOTHING = Symbol("nothing found");

function one(values: readonly unknown[]): unknown {
  if (values.length > 1) throw new JsonPathError("can only compare one element at a time");
  return values.length === 0 ? NOTHING : values[0];
}

const OPERATORS: Readonly<Record<string, (order: number) => boolean>> = {
  "==": (order) => order === 0, "!=": (order) => order !== 0, "<": (order) => order < 0, "<=": (order) => order <= 0, ">": (order) => order > 0, ">=": (order) => order >= 0,
};

function compare(a: unknown, b: unknown): number {
  const numbers = isNumber(a) && isNumber(b) && isFloat(a) === isFloat(b); // upstream compares none of the one with one of the other
  if (!numbers && (isNumber(a) || typeof a !== typeof b || (typeof a !== "string" && typeof a !== "boolean"))) throw new JsonPathError("incompatible types for comparison");
  return (a as string) < (b as string) ? -1 : (a as string) > (b as string) ? 1 : 0;
}

function isFloat(value: unknown): boolean { return typeof value === "number" && !Number.isSafeInteger(value); }
