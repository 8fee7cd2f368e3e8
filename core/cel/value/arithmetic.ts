/**
 * + - * / % of values. What cannot be computed is an EvalError: there is no overflow that goes unnoticed.
 *
 * Source: cel-go common/types/{int,uint,double,string,bytes,duration,timestamp,overflow}.go
 */
import { durationOf, timestampOf } from "./time.ts";
import { Duration, EvalError, List, Mapping, noSuchOverload, Timestamp, Uint, type Value } from "./value.ts";

const [INT_MIN, INT_MAX, UINT_MAX] = [-(2n ** 63n), 2n ** 63n - 1n, 2n ** 64n - 1n];

export function intOf(value: bigint): bigint | EvalError { return value < INT_MIN || value > INT_MAX ? new EvalError("integer overflow") : value; }
export function uintOf(value: bigint): Uint | EvalError { return value < 0n || value > UINT_MAX ? new EvalError("unsigned integer overflow") : new Uint(value); }

export function add(a: Value, b: Value): Value {
  if (typeof a === "string") return typeof b === "string" ? a + b : noSuchOverload(b);
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? new Uint8Array(Buffer.concat([a, b])) : noSuchOverload(b);
  if (a instanceof List || a instanceof Mapping) return a.plus(b);
  if (a instanceof Duration) {
    if (b instanceof Duration) return durationOf(a.nanos + b.nanos);
    return b instanceof Timestamp ? timestampOf(b.nanos + a.nanos, b.offsetMinutes) : noSuchOverload(b);
  }
  if (a instanceof Timestamp) return b instanceof Duration ? timestampOf(a.nanos + b.nanos, a.offsetMinutes) : noSuchOverload(b);
  return ofNumbers(a, b, { whole: (x, y) => x + y, real: (x, y) => x + y });
}

export function subtract(a: Value, b: Value): Value {
  if (a instanceof Duration) return b instanceof Duration ? durationOf(a.nanos - b.nanos) : noSuchOverload(b);
  if (a instanceof Timestamp) {
    if (b instanceof Timestamp) return durationOf(a.nanos - b.nanos);
    return b instanceof Duration ? timestampOf(a.nanos - b.nanos, a.offsetMinutes) : noSuchOverload(b);
  }
  return ofNumbers(a, b, { whole: (x, y) => x - y, real: (x, y) => x - y });
}

export function multiply(a: Value, b: Value): Value { return ofNumbers(a, b, { whole: (x, y) => x * y, real: (x, y) => x * y }); }

export function divide(a: Value, b: Value): Value {
  return ofNumbers(a, b, { whole: (x, y) => (y === 0n ? new EvalError("division by zero") : x / y), real: (x, y) => x / y });
}

export function modulo(a: Value, b: Value): Value {
  if (typeof a === "number") return noSuchOverload();
  return ofNumbers(a, b, { whole: (x, y) => (y === 0n ? new EvalError("modulus by zero") : x === INT_MIN && y === -1n ? new EvalError("integer overflow") : x % y), real: () => noSuchOverload() });
}

export function negate(value: Value): Value {
  if (typeof value === "bigint") return intOf(-value);
  if (typeof value === "number") return -value;
  return value instanceof Duration ? durationOf(-value.nanos) : noSuchOverload(value);
}

function ofNumbers(a: Value, b: Value, { whole, real }: { readonly whole: (x: bigint, y: bigint) => bigint | EvalError; readonly real: (x: number, y: number) => number | EvalError }): Value {
  if (typeof a === "bigint" && typeof b === "bigint") {
    const result = whole(a, b);
    return typeof result === "bigint" ? intOf(result) : result;
  }
  if (typeof a === "number" && typeof b === "number") return real(a, b);
  if (a instanceof Uint && b instanceof Uint) {
    const result = whole(a.value, b.value);
    return typeof result === "bigint" ? uintOf(result) : result;
  }
  return noSuchOverload(b);
}
