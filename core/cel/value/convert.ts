/**
 * int(x), string(x) and the like. Source: cel-go common/types (ConvertToType)
 */
import { parseDurationNs } from "../../api/meta/duration.ts";
import { BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type } from "../check/type.ts";
import { intOf, uintOf } from "./arithmetic.ts";
import { goFixed, goFloat } from "../../api/meta/go-float.ts";
import { bounded64, goInteger } from "../../api/meta/go-integer.ts";
import { formatTimestamp, parseTimestamp, secondsOf, timestampOf, TIMESTAMP_OVERFLOW } from "./time.ts";
import { Duration, EvalError, isNumber, Timestamp, typeOf, Uint, type Value } from "./value.ts";

const INT_LIMIT = 2 ** 63;
const UINT_LIMIT = 2 ** 64;
const TRUE = new Set(["1", "t", "T", "TRUE", "true", "True"]);
const FALSE = new Set(["0", "f", "F", "FALSE", "false", "False"]);

export function toInt(value: Value): Value {
  if (typeof value === "bigint") return value;
  if (value instanceof Uint) return intOf(value.value);
  if (typeof value === "number") return Number.isNaN(value) || value <= -INT_LIMIT || value >= INT_LIMIT ? new EvalError("integer overflow") : BigInt(Math.trunc(value));
  if (value instanceof Timestamp) return secondsOf(value.nanos);
  if (value instanceof Duration) return value.nanos;
  const whole = typeof value === "string" ? goInteger(value) : undefined;
  if (whole !== undefined) return whole;
  return noConversion(value, INT);
}

export function toUint(value: Value): Value {
  if (value instanceof Uint) return value;
  if (typeof value === "bigint") return uintOf(value);
  if (typeof value === "number") return Number.isNaN(value) || value < 0 || value >= UINT_LIMIT ? new EvalError("unsigned integer overflow") : new Uint(BigInt(Math.trunc(value)));
  const whole = typeof value === "string" && /^\d+$/.test(value) ? bounded64(value) : undefined;
  if (whole !== undefined) return new Uint(whole);
  return noConversion(value, UINT);
}

export function toDouble(value: Value): Value {
  if (isNumber(value)) return Number(value instanceof Uint ? value.value : value);
  const parsed = typeof value === "string" ? parseFloat64(value) : undefined;
  return parsed ?? noConversion(value, DOUBLE);
}

/** As strconv.ParseFloat reads them: in decimals or, with a power of two, in hexadecimals. */
function parseFloat64(text: string): number | undefined {
  if (/^[+-]?(inf|infinity)$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  if (/^nan$/i.test(text)) return Number.NaN;
  const plain = text.replace(/(?<=\d)_(?=\d)/g, "");
  const value = /^[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : hexFloat(text);
  return Number.isFinite(value) ? value : undefined;
}

/** NaN for what is none. */
function hexFloat(text: string): number {
  const plain = text.replace(/(?<=[\da-fx])_(?=[\da-f])/gi, "");
  const [, sign, whole = "", fraction = "", power] = /^([+-]?)0x(?=\.?[\da-f])([\da-f]*)(?:\.([\da-f]*))?p([+-]?\d+)$/i.exec(plain) ?? [];
  return power === undefined ? Number.NaN : Number(`${sign}1`) * Number(BigInt(`0x${whole}${fraction}`)) * 2 ** (Number(power) - 4 * fraction.length);
}

export function toBool(value: Value): Value {
  if (typeof value === "boolean") return value;
  if (typeof value === "string" && TRUE.has(value)) return true;
  return typeof value === "string" && FALSE.has(value) ? false : noConversion(value, BOOL);
}

export function toText(value: Value): Value {
  switch (typeof value) {
    case "string": return value;
    case "boolean": case "bigint": return String(value);
    case "number": return goFloat(value);
  }
  if (value === null) return "null";
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Timestamp) return formatTimestamp(value);
  if (value instanceof Duration) return `${goFixed(Number(value.nanos / 1_000_000_000n) + Number(value.nanos % 1_000_000_000n) / 1e9)}s`;
  if (value instanceof Type) return value.name;
  if (!(value instanceof Uint8Array)) return noConversion(value, STRING);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(value);
  } catch (error) {
    if (error instanceof TypeError) return new EvalError("invalid UTF-8 in bytes, cannot convert to string");
    throw error;
  }
}

export function toBytes(value: Value): Value {
  if (value instanceof Uint8Array) return value;
  return typeof value === "string" ? new TextEncoder().encode(value) : noConversion(value, BYTES);
}

export function toDuration(value: Value): Value {
  if (value instanceof Duration) return value;
  const nanos = typeof value === "string" ? durationText(value) : undefined;
  return nanos === undefined ? noConversion(value, DURATION) : new Duration(nanos);
}

function durationText(text: string): bigint | undefined {
  try {
    return parseDurationNs(text);
  } catch {
    // It is none: the caller says so.
    return undefined;
  }
}

export function toTimestamp(value: Value): Value {
  if (value instanceof Timestamp) return value;
  if (typeof value === "bigint") return timestampOf(value * 1_000_000_000n);
  const parsed = typeof value === "string" ? parseTimestamp(value) : undefined;
  if (!parsed) return noConversion(value, TIMESTAMP);
  const within = timestampOf(parsed.nanos, parsed.offsetMinutes);
  return within instanceof EvalError ? new EvalError(TIMESTAMP_OVERFLOW) : within;
}

function noConversion(value: Value, to: Type): EvalError {
  return value instanceof EvalError ? value : new EvalError(`type conversion error from '${goTypeName(typeOf(value))}' to '${goTypeName(to)}'`);
}

/** Type.String() in Go says where they come from. */
export function goTypeName({ name, parameters }: Type): string { return parameters.length === 0 ? name : `${name}(${parameters.map(goTypeName).join(", ")})`; }
