/** Whole numbers of 64 bits as Go reads them, and in its words why a text is none. Source: go1.26 strconv/number.go */
import { goQuote } from "./go-quote.ts";

const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);
const DIGITS_MAX = 64;
const UINT64_MAX = 2n ** 64n - 1n, UINT64_DIGITS = 20;

/** `reader`: the function of strconv that the message names. Throws an Error with that message. */
export function parseGoInteger(text: string, reader: "Atoi" | "ParseInt" = "ParseInt"): bigint {
  const value = read(text);
  if (typeof value === "bigint") return value;
  throw new Error(`strconv.${reader}: parsing ${goQuote(text)}: ${value}`);
}

/** Undefined for what is none. */
export function goInteger(text: string | undefined): bigint | undefined {
  const value = text === undefined ? undefined : read(text);
  return typeof value === "bigint" ? value : undefined;
}

/** An integer of an object to reckon with: one that no double holds is a bigint in there, whatever its type says. */
export function asDouble(integer: number): number { return Number(integer); }

/** The integer of 64 bits after it, to the digit. After the largest there is none, and it stays: Go's would begin anew below zero. */
export function integerAfter(integer: number): number {
  const next = BigInt(integer) + 1n, short = Number(next);
  return Number.isSafeInteger(short) ? short : (next > MAX ? MAX : next) as unknown as number;
}

/** As numbers in labels and taints are compared: false if one of them is none. */
export function isLessInteger(a: string | undefined, b: string | undefined): boolean {
  const [left, right] = [goInteger(a), goInteger(b)];
  return left !== undefined && right !== undefined && left < right;
}

/** Digits alone, as a number; undefined for one that 64 bits do not hold. A row of a million takes long to become a number, for nothing. */
export function bounded64(digits: string): bigint | undefined {
  const plain = digits.replace(/^0+/, "");
  const value = plain.length > UINT64_DIGITS ? undefined : BigInt(plain);
  return value === undefined || value > UINT64_MAX ? undefined : value;
}

function read(text: string): bigint | "invalid syntax" | "value out of range" {
  const [, sign, written = ""] = /^([+-]?)(\d+)$/.exec(text) ?? [];
  if (written === "") return "invalid syntax";
  const digits = written.replace(/^0+/, "");
  if (digits.length > DIGITS_MAX) return "value out of range";
  const value = sign === "-" ? -BigInt(digits) : BigInt(digits);
  return value > MAX || value < MIN ? "value out of range" : value;
}
