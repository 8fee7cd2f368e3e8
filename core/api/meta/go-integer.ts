/** Whole numbers of 64 bits as Go reads them, and in its words why a text is none. Source: go1.26 strconv/number.go */
import { goQuote } from "./go-quote.ts";

const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);
const DIGITS_MAX = 64;

/** `reader`: the function of strconv that the message names. Throws an Error with that message. */
export function parseGoInteger(text: string, reader: "Atoi" | "ParseInt" = "ParseInt"): bigint {
  const wrong = (why: string): Error => new Error(`strconv.${reader}: parsing ${goQuote(text)}: ${why}`);
  const [, sign, digits = ""] = /^([+-]?)0*(\d+)$/.exec(text) ?? [];
  if (digits === "") throw wrong("invalid syntax");
  if (digits.length > DIGITS_MAX) throw wrong("value out of range");
  const value = sign === "-" ? -BigInt(digits) : BigInt(digits);
  if (value > MAX || value < MIN) throw wrong("value out of range");
  return value;
}
