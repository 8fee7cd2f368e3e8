/**
 * "%s has %d".format([name, count]): what each clause makes of a value, and what is wrong with a format whose arguments are known.
 *
 * Numbers are written as in American English: %f puts commas between thousands, %e writes 1.500000×10⁰³.
 *
 * Source: cel-go ext/formatting.go
 */
import { compareText } from "../../api/meta/compare-text.ts";
import { bounded64 } from "../../api/meta/go-integer.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { ERROR, type Kind, type Type } from "../check/type.ts";
import type { Checked } from "../check/checker.ts";
import type { Expr } from "../syntax/expr.ts";
import { toDouble, toText } from "../value/convert.ts";
import { Duration, EvalError, isError, List, Mapping, Timestamp, typeOf, Uint, type Value } from "../value/value.ts";

const PRECISION = 6;
const INT_MAX = 2n ** 63n - 1n, LARGEST = 2n ** 64n - 1n;
/** A larger one is not read. Source: golang.org/x/text/internal/format parser.go */
const PRECISION_MAX = 10_000_009;
const UNREAD = "%!(NOVERB)";
const TEXT_KINDS: readonly Kind[] = ["list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"];
const SUPERSCRIPTS: Readonly<Record<string, string>> = { 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹", "-": "⁻", "+": "" };

interface Clause {
  readonly letter: string;
  readonly precision: number | undefined;
}

/** What a clause can be asked of, and how it says so. */
const CLAUSES: Readonly<Record<string, { readonly kinds: readonly Kind[]; readonly wrong: string; readonly format: (value: Value, clause: Clause) => string }>> = {
  s: { kinds: TEXT_KINDS, wrong: "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps", format: (value) => text(value) },
  d: { kinds: ["int", "uint"], wrong: "decimal clause can only be used on integers", format: (value) => String(wholeOf(value)) },
  f: { kinds: ["double", "string"], wrong: "fixed-point clause can only be used on doubles", format: (value, { precision }) => fixedPoint(value, precision ?? PRECISION) },
  e: { kinds: ["double", "string"], wrong: "scientific clause can only be used on doubles", format: (value, { precision }) => scientific(value, precision ?? PRECISION) },
  b: { kinds: ["int", "uint", "bool"], wrong: "only integers and bools can be formatted as binary", format: (value) => (typeof value === "boolean" ? String(Number(value)) : wholeOf(value).toString(2)) },
  x: { kinds: ["int", "uint", "string", "bytes"], wrong: "only integers, byte buffers, and strings can be formatted as hex", format: (value) => hex(value) },
  X: { kinds: ["int", "uint", "string", "bytes"], wrong: "only integers, byte buffers, and strings can be formatted as hex", format: (value) => hex(value).toUpperCase() },
  o: { kinds: ["int", "uint"], wrong: "octal clause can only be used on integers", format: (value) => wholeOf(value).toString(8) },
};

class FormatError extends Error {
  override readonly name = "FormatError";
  /** Where it is, if known. */
  readonly id: number | undefined;
  constructor(message: string, id?: number) { super(message); this.id = id; }
}

export function formatString(format: string, args: List): Value {
  try {
    return interpolated(format, args.size, (index, clause) => {
      if (index >= args.size) throw outOfRange(index);
      return clause && formatted(args.at(index), clause);
    });
  } catch (error) {
    if (error instanceof FormatError) return new EvalError(error.message);
    throw error;
  }
}

/** What is wrong with a call whose format and arguments are written out; undefined if nothing is. */
export function formatProblem(format: string, args: readonly Expr[], types: Checked["types"]): { readonly id: number | undefined; readonly message: string } | undefined {
  let used = 0;
  try {
    interpolated(format, args.length, (index, clause) => {
      if (!clause) {
        used++;
        return undefined;
      }
      const arg = args[index]!;
      const wrong = clause.letter === "s" ? badText(arg, types) : badKind(arg, CLAUSES[clause.letter]!.kinds, types);
      if (wrong !== undefined) throw during(new FormatError(wrongType(clause, (types.get(wrong) ?? ERROR).name), wrong));
      return "";
    });
  } catch (error) {
    if (error instanceof FormatError) return { id: error.id, message: error.message };
    throw error;
  }
  return args.length > used ? { id: undefined, message: `too many arguments supplied to string.format (expected ${used}, got ${args.length})` } : undefined;
}

function outOfRange(index: number): FormatError { return new FormatError(`index ${index} out of range`); }

/** `argument`: asked for each clause, first without it, then with it; `count`: how many there are. */
function interpolated(format: string, count: number, argument: (index: number, clause?: Clause) => string | undefined): string {
  let result = "";
  let index = 0;
  for (let i = 0; i < format.length;) {
    if (format[i] !== "%") {
      result += format[i++];
      continue;
    }
    if (format[i + 1] === "%") {
      result += "%";
      i += 2;
      continue;
    }
    argument(index);
    if (i + 1 >= format.length) throw new FormatError("unexpected end of string");
    if (index >= count) throw outOfRange(index);
    const { clause, length } = clauseAt(format.slice(i + 1));
    result += argument(index++, clause) ?? "";
    i += 1 + length;
  }
  return result;
}

function clauseAt(rest: string): { readonly clause: Clause; readonly length: number } {
  const precision = /^\.(\d*)/.exec(rest);
  const length = precision?.[0].length ?? 0;
  const parsing = (message: string): FormatError => new FormatError(`could not parse formatting clause: ${message}`);
  if (precision && length >= rest.length) throw parsing("error while parsing precision: could not find end of precision specifier");
  const unread = precision?.[1] === "" ? "invalid syntax" : (bounded64(precision?.[1] ?? "0") ?? LARGEST) > INT_MAX ? "value out of range" : undefined;
  if (unread) throw parsing(`error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "${precision![1]}": ${unread}`);
  const letter = rest[length]!;
  if (!Object.hasOwn(CLAUSES, letter)) throw parsing(`unrecognized formatting clause "${firstByte(rest.slice(length))}"`);
  return { clause: { letter, precision: precision ? Number(precision[1]) : undefined }, length: length + 1 };
}

/** Upstream reads bytes. */
function firstByte(text: string): string { return String.fromCharCode(Buffer.from(text)[0]!); }

function formatted(value: Value, clause: Clause): string {
  const { kinds, format } = CLAUSES[clause.letter]!;
  const type = typeOf(value);
  if (!kinds.includes(type.kind) || (typeof value === "string" && "fe".includes(clause.letter) && !["NaN", "Infinity", "-Infinity"].includes(value))) throw during(new FormatError(wrongType(clause, type.name)));
  return format(value, clause);
}

function during(error: FormatError): FormatError { return new FormatError(`error during formatting: ${error.message}`, error.id); }
function wrongType({ letter }: Clause, type: string): string { return `${CLAUSES[letter]!.wrong}, was given ${type}`; }

function text(value: Value): string {
  if (value instanceof List) return `[${[...value].map(nested).join(", ")}]`;
  if (value instanceof Mapping) return mapText(value);
  const converted = toText(value);
  if (isError(converted)) throw during(new FormatError(`could not convert argument ${goQuote(converted.message)} to string`));
  return converted as string;
}

function mapText(map: Mapping): string {
  const entries = [...map.keys()].map((key) => {
    const { kind, name } = typeOf(key);
    if (!["string", "bool", "int", "uint"].includes(kind)) throw during(new FormatError(`no formatting function for map key of type ${name}`));
    return [nested(key), nested(map.find(key)!)] as const;
  });
  return `{${entries.sort(([a], [b]) => compareText(a, b)).map(([key, value]) => `${key}:${value}`).join(", ")}}`;
}

/** In a list or a map: as it would be written in an expression. */
function nested(value: Value): string {
  if (typeof value === "string") return goQuote(value);
  if (value instanceof Uint8Array) return `b${goQuote(text(value))}`;
  if (typeof value === "number") return Number.isFinite(value) ? `${Object.is(value, -0) ? "-" : ""}${rounded(value, PRECISION, PRECISION)}` : goQuote(Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
  if (value instanceof Timestamp) return `timestamp(${goQuote(text(value))})`;
  if (value instanceof Duration) return `duration(${goQuote(text(value))})`;
  const { kind, name } = typeOf(value);
  if (!TEXT_KINDS.includes(kind)) throw during(new FormatError(`no formatting function for ${name}`));
  return text(value);
}

function wholeOf(value: Value): bigint { return value instanceof Uint ? value.value : (value as bigint); }

function hex(value: Value): string {
  if (typeof value === "bigint" || value instanceof Uint) return wholeOf(value).toString(16);
  return Buffer.from(value as string | Uint8Array).toString("hex");
}

/** NaN and the infinities as they are written here. */
function unusual(number: number): string | undefined {
  if (Number.isNaN(number)) return "NaN";
  return Number.isFinite(number) ? undefined : number > 0 ? "∞" : "-∞";
}

/** Of large precisions upstream keeps what a byte holds as the fewest digits, and what a 16-bit integer holds as the most. */
function fixedPoint(value: Value, precision: number): string {
  if (precision > PRECISION_MAX) return UNREAD;
  const number = toDouble(value) as number;
  const [digitsMin, digitsMax] = [precision & 0xff, (precision << 16) >> 16];
  const [whole, fraction] = (unusual(number) ?? rounded(number, digitsMin, digitsMax)).split(".") as [string, string | undefined];
  const grouped = inThousands(whole);
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** What is no number stays as it is. */
function inThousands(whole: string): string {
  const [, sign, digits] = /^(-?)(\d+)$/.exec(whole) ?? [];
  if (sign === undefined || digits === undefined) return whole;
  const first = digits.length % 3 || 3;
  return `${sign}${[digits.slice(0, first), ...(digits.slice(first).match(/\d{3}/g) ?? [])].join(",")}`;
}

/** Upstream reads the precision as a width, of 16 bits: there are always six digits. */
function scientific(value: Value, width: number): string {
  if (width > PRECISION_MAX) return UNREAD;
  const number = toDouble(value) as number;
  const special = unusual(number);
  if (special !== undefined) return special.padStart(width & 0xffff);
  const [mantissa, exponent] = inPowers(number);
  const padded = `${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  return `${mantissa}×10${[...padded].map((character) => SUPERSCRIPTS[character]).join("")}`.padStart(width & 0xffff);
}

/** As it is exactly: an integer over a power of ten. */
function exactly(number: number): { readonly unscaled: bigint; readonly digits: number } {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, Math.abs(number));
  const [high, low] = [bits.getUint32(0), bits.getUint32(4)];
  const raised = high >>> 20;
  const mantissa = (BigInt((high & 0xfffff) | (raised === 0 ? 0 : 0x100000)) << 32n) | BigInt(low);
  const exponent = Math.max(raised, 1) - 1075;
  return exponent >= 0 ? { unscaled: mantissa << BigInt(exponent), digits: 0 } : { unscaled: mantissa * 5n ** BigInt(-exponent), digits: -exponent };
}

/** To the nearest, and of two that are as near to the even one. */
function divided(value: bigint, by: bigint): bigint {
  const [quotient, rest] = [value / by, (value % by) * 2n];
  return rest > by || (rest === by && quotient % 2n === 1n) ? quotient + 1n : quotient;
}

/** With as many decimals as it takes, within these bounds; a `digitsMax` below zero is none. */
function rounded(number: number, digitsMin: number, digitsMax: number): string {
  let { unscaled, digits } = exactly(number);
  if (digitsMax >= 0 && digits > digitsMax) [unscaled, digits] = [divided(unscaled, 10n ** BigInt(digits - digitsMax)), digitsMax];
  const text = String(unscaled).padStart(digits + 1, "0");
  const fraction = text.slice(text.length - digits).replace(/0+$/, "").padEnd(digitsMin, "0");
  const whole = text.slice(0, text.length - digits);
  return `${number < 0 ? "-" : ""}${whole}${digits > 0 || digitsMin > 0 ? (fraction && `.${fraction}`) : ""}`;
}

/** 1.500000 and the power of ten it is to be multiplied with. */
function inPowers(number: number): readonly [mantissa: string, exponent: number] {
  const { unscaled, digits } = exactly(number);
  const length = String(unscaled).length;
  const surplus = length - 1 - PRECISION;
  const kept = surplus > 0 ? divided(unscaled, 10n ** BigInt(surplus)) : unscaled * 10n ** BigInt(-surplus);
  const text = String(kept).padStart(PRECISION + 1, "0");
  const exponent = unscaled === 0n ? 0 : length - 1 - digits + (text.length > PRECISION + 1 ? 1 : 0);
  return [`${number < 0 ? "-" : ""}${text[0]!}.${text.slice(1, PRECISION + 1)}`, exponent];
}

function badKind(arg: Expr, kinds: readonly Kind[], types: Checked["types"]): number | undefined {
  const { kind } = types.get(arg.id) as Type;
  return kind === "dyn" || kinds.includes(kind) ? undefined : arg.id;
}

function badText(arg: Expr, types: Checked["types"]): number | undefined {
  const parts = arg.kind === "list" ? arg.elements : arg.kind === "map" ? arg.entries.flatMap(({ key, value }) => [key, value]) : [];
  const own = badKind(arg, TEXT_KINDS, types);
  if (own !== undefined) return own;
  for (const part of parts) {
    const wrong = badText(part, types);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}
