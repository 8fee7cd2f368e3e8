/**
 * IntOrString: a number, or a string that is mostly a percentage of something or the name of a port.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/intstr/intstr.go
 */
import { goQuote } from "./go-quote.ts";

export type IntOrString = number | string;

/** The number itself; a string that is one; 0 for every other string. */
export function intValue(value: IntOrString): number { return typeof value === "number" ? value : parseInteger(value) ?? 0; }

/**
 * "25%" of `total`, rounded as asked; a plain number is itself.
 * Throws `invalid value for IntOrString: …` for a string that is no percentage.
 */
export function scaleIntOrPercent(value: IntOrString, { total, roundUp }: { readonly total: number; readonly roundUp: boolean }): number {
  if (typeof value === "number") return value;
  const part = (percentOf(value) * total) / 100;
  return roundUp ? Math.ceil(part) : Math.floor(part);
}

function percentOf(value: string): number {
  if (!value.endsWith("%")) throw new Error("invalid value for IntOrString: invalid type: string is not a percentage");
  const digits = value.slice(0, -1);
  const percent = parseInteger(digits);
  if (percent === undefined) throw new Error(`invalid value for IntOrString: invalid value ${goQuote(value)}: strconv.Atoi: parsing ${goQuote(digits)}: ${whyNoInteger(digits)}`);
  return percent;
}

/** The percentage of "25%", or undefined when it is none. */
export function percentValue(value: IntOrString): number | undefined {
  return typeof value === "string" && /^[0-9]+%$/.test(value) ? Number(value.slice(0, -1)) : undefined;
}

function parseInteger(text: string): number | undefined { return /^[+-]?\d+$/.test(text) && isInt64(text) ? Number(text) : undefined; }

function isInt64(text: string): boolean {
  const digits = text.replace(/^[+-]?0*/, "");
  return digits.length < 19 || (digits.length === 19 && digits <= (text.startsWith("-") ? "9223372036854775808" : "9223372036854775807"));
}

/** What comes after more digits than fit is not read any more. */
function whyNoInteger(text: string): string {
  const digits = /^[+-]?0*(\d*)/.exec(text)![1]!;
  const isOver = digits.length > 20 || (digits.length === 20 && digits > UINT64_MAX);
  return isOver || /^[+-]?\d+$/.test(text) ? "value out of range" : "invalid syntax";
}
const UINT64_MAX = "18446744073709551615";
