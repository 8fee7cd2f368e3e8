/**
 * Quantities: `250m` of a CPU, `1.5Gi` of memory, `1e3` of something. Exact: an integer times a power of ten.
 *
 *   parseQuantity("1.5Gi").value()          1610612736n, rounded up to a whole
 *   parseQuantity("250m").milliNumber()     250
 *   parseQuantity("0.5").toString()         "500m": canonical
 *   addQuantity(a, b), subQuantity(a, b), compareQuantities(a, b), quotient(a, b)
 *
 * Three families of suffixes: decimal (n u m k M G T P E), binary (Ki Mi Gi Ti Pi Ei), exponent (e3). A quantity keeps its family; sums keep
 * the first's. What was parsed prints as it was written when upstream would do so too (it skips normalising what looks canonical).
 * Nothing is smaller than one nano: finer input rounds up, away from zero. Binary quantities stop at 2^63-1.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/api/resource/{quantity,amount,suffix,math}.go
 */
export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

const FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC_WRONG = "unable to parse numeric part of quantity";
const SUFFIX_WRONG = "unable to parse quantity's suffix";

const SHAPE = /^([+-]?)(\d*)(?:\.(\d*))?((?:[eEinumkKMGTP]+[-+]?|[-+])\d*)?$/;
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const BINARY: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
const DECIMAL_SUFFIXES = new Map(Object.entries(DECIMAL).map(([suffix, exponent]) => [exponent, suffix]));
const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL_EXPONENT_MAX = 18;
const NANO = -9;
const INT64_MAX = 2n ** 63n - 1n;
/** Upstream's short cut holds 18 digits; only what takes it keeps its spelling. */
const FAST_DIGITS_MAX = 18;
const FAST_BINARY_DIGITS_MAX = 15;
/** Bounds the work one string can cause. Far beyond anything that is a quantity of something. */
const LENGTH_MAX = 1024;
const EXPONENT_MAX = 1024;

/** value × 10^scale. Immutable. */
export class Quantity {
  readonly unscaled: bigint;
  readonly scale: number;
  readonly format: QuantityFormat;
  #text: string | undefined;

  constructor(unscaled: bigint, { scale = 0, format = "DecimalSI", text }: { readonly scale?: number; readonly format?: QuantityFormat; readonly text?: string } = {}) {
    this.unscaled = unscaled; this.scale = scale; this.format = format; this.#text = text;
  }

  get sign(): -1 | 0 | 1 { return this.unscaled > 0n ? 1 : this.unscaled < 0n ? -1 : 0; }
  get isZero(): boolean { return this.unscaled === 0n; }
  /** However large: `milliValue()` has an end. */
  get isWhole(): boolean { return this.scale >= 0 || this.unscaled % 10n ** BigInt(-this.scale) === 0n; }

  /** In units of 10^scale, rounded away from zero, within int64. */
  scaledValue(scale: number): bigint {
    const shift = this.scale - scale;
    if (shift >= 0) return clampInt64(this.unscaled * 10n ** BigInt(shift));
    return clampInt64(divideAwayFromZero(this.unscaled, 10n ** BigInt(-shift)));
  }
  /** In whole units. */
  value(): bigint { return this.scaledValue(0); }
  milliValue(): bigint { return this.scaledValue(-3); }
  /** `value()` for arithmetic; exact below 2^53. */
  number(): number { return Number(this.value()); }
  /** `milliValue()` for arithmetic: CPU shares, scores. */
  milliNumber(): number { return Number(this.milliValue()); }
  /** Unrounded, as near as upstream's floats come: 3.3 is 33 tenths, 3.3000000000000003. */
  approximate(): number { return this.scale === 0 ? Number(this.unscaled) : Number(this.unscaled) * power(this.scale); }

  /** No finer than 10^scale. */
  roundUp(scale: number): Quantity {
    if (this.scale >= scale) return this;
    return new Quantity(divideAwayFromZero(this.unscaled, 10n ** BigInt(scale - this.scale)), { scale, format: this.format });
  }
  negate(): Quantity { return new Quantity(-this.unscaled, { scale: this.scale, format: this.format }); }

  toString(): string { return (this.#text ??= canonical(this)); }
  toJSON(): string { return this.toString(); }
}

/** Of ten, as Go's math.Pow10 has it. */
function power(exponent: number): number {
  const [steps, rest] = [Math.trunc(exponent / 32) * 32, exponent % 32];
  return exponent < 0 ? Number(`1e${steps}`) / Number(`1e${-rest}`) : Number(`1e${steps}`) * Number(`1e${rest}`);
}

/** What was parsed lately: nearly all quantities of a cluster are a few dozen texts. */
class Parsed {
  static readonly #SIZE_MAX = 1024;
  static readonly #TEXT_LENGTH_MAX = 16;
  readonly #known = new Map<string, Quantity>();

  of(text: string): Quantity {
    const before = this.#known.get(text);
    if (before) return before;
    const quantity = parse(text);
    if (text.length > Parsed.#TEXT_LENGTH_MAX) return quantity;
    if (this.#known.size >= Parsed.#SIZE_MAX) this.#known.clear();
    this.#known.set(text, quantity);
    return quantity;
  }
}

const parsed = new Parsed();

/** As it comes in JSON: spaces around it are none of it. A tab or a line break is, because JSON has to escape it and upstream trims before that. */
export function withoutSpaces(text: string): string {
  let start = 0, end = text.length;
  while (text[start] === " ") start++;
  while (end > start && text[end - 1] === " ") end--; // one by one: an expression would go through a long row of them from each of them
  return text.slice(start, end);
}

/** Throws an Error with upstream's text. Spaces around it are the caller's to trim (JSON decoding does). */
export function parseQuantity(text: string): Quantity { return parsed.of(text); }

function parse(text: string): Quantity {
  if (text === "0") return new Quantity(0n, { text });
  const parts = text.length > LENGTH_MAX ? null : SHAPE.exec(text);
  if (!parts || text === "") throw new Error(text.length > LENGTH_MAX ? NUMERIC_WRONG : FORMAT_WRONG);
  const [, sign = "", all = "", fraction = "", suffix = ""] = parts;
  const digits = all.replace(/^0+/, "");
  const { base, exponent, format } = interpretSuffix(suffix);
  const whole = digits === "" ? "0" : digits;
  const shifted = whole + fraction;
  const magnitude = BigInt(shifted);
  const unscaled = sign === "-" ? -magnitude : magnitude;
  const scale = (base === 10 ? exponent : 0) - fraction.length;

  if (base === 2) {
    const multiplied = unscaled << BigInt(exponent);
    const fast = fraction === "" && isFastBinary(whole, exponent);
    if (fast) return new Quantity(multiplied, { format, ...((magnitude & 7n) !== 0n ? { text } : {}) });
    if (all + fraction === "") throw new Error(NUMERIC_WRONG);
    return limitBinary(multiplied, scale);
  }
  if (shifted.length <= FAST_DIGITS_MAX && scale >= NANO) {
    const asWritten = scale % 3 === 0 && !shifted.endsWith("000") && !shifted.startsWith("0");
    return new Quantity(unscaled, { scale, format, ...(asWritten ? { text } : {}) });
  }
  if (all + fraction === "") throw new Error(NUMERIC_WRONG); // larger than a nano, a suffix alone is zero
  return inNanos(unscaled, scale, format);
}

/** How Go has in memory what its short cut does not hold. */
function inNanos(unscaled: bigint, scale: number, format: QuantityFormat): Quantity {
  const shift = scale - NANO;
  return new Quantity(shift >= 0 ? unscaled * 10n ** BigInt(shift) : divideAwayFromZero(unscaled, 10n ** BigInt(-shift)), { scale: NANO, format });
}

function limitBinary(unscaled: bigint, scale: number): Quantity {
  const rounded = inNanos(unscaled, scale, "BinarySI");
  const size = compareQuantity(rounded.sign < 0 ? rounded.negate() : rounded, new Quantity(INT64_MAX));
  if (size > 0) return new Quantity(rounded.sign < 0 ? -INT64_MAX : INT64_MAX, { format: "BinarySI" });
  const belowOne = !rounded.isZero && rounded.unscaled < 10n ** BigInt(-rounded.scale) && rounded.unscaled > -(10n ** BigInt(-rounded.scale));
  return belowOne ? new Quantity(rounded.unscaled, { scale: rounded.scale }) : rounded;
}

function interpretSuffix(suffix: string): { readonly base: 2 | 10; readonly exponent: number; readonly format: QuantityFormat } {
  const decimal = DECIMAL[suffix];
  if (decimal !== undefined) return { base: 10, exponent: decimal, format: "DecimalSI" };
  const binary = BINARY[suffix];
  if (binary !== undefined) return { base: 2, exponent: binary, format: "BinarySI" };
  const exponent = /^[eE]([-+]?\d+)$/.exec(suffix)?.[1];
  if (exponent === undefined || Math.abs(Number(exponent)) > EXPONENT_MAX) throw new Error(SUFFIX_WRONG);
  return { base: 10, exponent: Number(exponent), format: "DecimalExponent" };
}

export function isQuantity(text: string): boolean {
  try { parseQuantity(text); return true; } catch { return false; /* the only thing it throws is that it is none */ }
}

/** Whole units, as a count or a number of bytes. */
export function quantityOf(value: bigint | number, format: QuantityFormat = "DecimalSI"): Quantity { return new Quantity(BigInt(value), { format }); }
export function milliQuantity(value: bigint | number, format: QuantityFormat = "DecimalSI"): Quantity { return new Quantity(BigInt(value), { scale: -3, format }); }

/** The family is the first's, unless the first is zero. */
export function addQuantity(a: Quantity, b: Quantity): Quantity {
  const format = a.isZero ? b.format : a.format;
  if (a.isZero || b.isZero) return new Quantity(a.unscaled + b.unscaled, { scale: b.isZero ? a.scale : b.scale, format });
  const scale = Math.min(a.scale, b.scale);
  return new Quantity(at(a, scale) + at(b, scale), { scale, format });
}
export function subQuantity(a: Quantity, b: Quantity): Quantity { return addQuantity(a, b.negate()); }
export function maxQuantity(a: Quantity, b: Quantity): Quantity { return compareQuantity(a, b) >= 0 ? a : b; }

export function compareQuantity(a: Quantity, b: Quantity): -1 | 0 | 1 {
  const scale = Math.min(a.scale, b.scale);
  const left = at(a, scale);
  const right = at(b, scale);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** What is larger has no thousandths that int64 holds. */
const WHOLE_WITH_MILLI_MAX = INT64_MAX / 1000n;

/** How often `b` goes into `a`: of whole thousandths where both have them, as upstream reckons it. As fractions 4.2 by 0.6 is more than 7. */
export function quotient(a: Quantity, b: Quantity): number {
  return a.value() <= WHOLE_WITH_MILLI_MAX && b.value() <= WHOLE_WITH_MILLI_MAX ? a.milliNumber() / b.milliNumber() : a.number() / b.number();
}

/** Of strings: for sorting and for semantic equality (`1000m` is `1`). */
export function compareQuantities(a: string, b: string): -1 | 0 | 1 { return a === b ? 0 : compareQuantity(parseQuantity(a), parseQuantity(b)); }

/** The canonical text of what a client wrote: how the server stores it. A JSON number is read as its text. */
export function canonicalQuantity(written: string | number): string {
  const text = withoutSpaces(String(written));
  return isCanonical(text) ? text : parseQuantity(text).toString();
}

/** Whether the text is surely as it would be printed: whole numbers of modest size, as nearly all are. */
function isCanonical(text: string): boolean {
  if (PLAIN_DECIMAL.test(text)) return !PLAIN_THOUSANDS.test(text);
  return PLAIN_BINARY.test(text) && Number.parseInt(text, 10) % 1024 !== 0;
}
const PLAIN_DECIMAL = /^[1-9]\d{0,17}[numkMGTPE]?$/;
const PLAIN_THOUSANDS = /000[numkMGTPE]?$/;
const PLAIN_BINARY = /^[1-9]\d{0,4}[KMG]i$/;
/** No finer than a thousandth, as it is written. */
const COARSE = /^\d+(?:m|[kMGTPE]|[KMGTPE]i)?$/;

/** The canonical text rounded up to thousandths; the text itself where there is nothing to round. */
export function roundedToMilli(text: string): string {
  if (COARSE.test(text)) return text;
  const quantity = parseQuantity(text);
  return quantity.scale < -3 ? quantity.roundUp(-3).toString() : text;
}

/**
 * Whether Go has the same in memory for both texts of one amount: it keeps how an amount was written, number and power of ten, but not how many eights of
 * a binary unit were.
 */
export function isHeldAlike(written: string | number, canonicalText: string): boolean {
  const text = withoutSpaces(String(written));
  return text === canonicalText || (isInEights(text) && isInEights(canonicalText));
}

function isInEights(text: string): boolean {
  const [, digits, suffix] = /^0*([1-9]\d*)([KMGTPE]i)$/.exec(text) ?? [];
  return digits !== undefined && isFastBinary(digits, BINARY[suffix!]!) && (BigInt(digits) & 7n) === 0n;
}

/** As upstream estimates whether it fits. */
function isFastBinary(digits: string, exponent: number): boolean { return FAST_BINARY_DIGITS_MAX - digits.length - Math.trunc((exponent * 3) / 10) - 1 >= 0; }

function at(quantity: Quantity, scale: number): bigint {
  return quantity.scale === scale ? quantity.unscaled : quantity.unscaled * 10n ** BigInt(quantity.scale - scale);
}

function divideAwayFromZero(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  return quotient * divisor === value ? quotient : value > 0n ? quotient + 1n : quotient - 1n;
}

function clampInt64(value: bigint): bigint { return value > INT64_MAX ? INT64_MAX : value < -INT64_MAX ? -INT64_MAX : value; }

function canonical(quantity: Quantity): string {
  if (quantity.isZero) return "0";
  if (quantity.format === "BinarySI" && isWhole(quantity)) {
    const value = at(quantity, Math.min(quantity.scale, 0)) / 10n ** BigInt(Math.max(-quantity.scale, 0));
    if (value <= -1024n || value >= 1024n) return canonicalBinary(value);
  }
  return canonicalDecimal(quantity);
}

function isWhole({ unscaled, scale }: Quantity): boolean { return scale >= 0 || unscaled % 10n ** BigInt(-scale) === 0n; }

function canonicalBinary(value: bigint): string {
  let step = 0;
  let rest = value;
  while (step < BINARY_SUFFIXES.length - 1 && rest % 1024n === 0n) { rest /= 1024n; step++; }
  return `${rest}${BINARY_SUFFIXES[step]}`;
}

/** The largest exponent that is a multiple of three and leaves an integer. */
function canonicalDecimal({ unscaled, scale, format }: Quantity): string {
  const exponentMax = format === "DecimalExponent" ? EXPONENT_MAX * 2 : DECIMAL_EXPONENT_MAX;
  let mantissa = unscaled;
  let exponent = scale;
  while (mantissa % 10n === 0n) { mantissa /= 10n; exponent++; }
  const over = exponent > exponentMax ? exponent - exponentMax : ((exponent % 3) + 3) % 3;
  mantissa *= 10n ** BigInt(over);
  exponent -= over;
  if (format === "DecimalExponent") return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  return `${mantissa}${DECIMAL_SUFFIXES.get(exponent)}`;
}
