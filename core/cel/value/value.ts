/**
 * Values of expressions.
 *
 *   int is bigint, double is number, uint is Uint, bytes is Uint8Array; null, bool and string are JavaScript's own
 *   lists, maps and what libraries add are classes here
 *   EvalError is a value too: `false && error` is false
 *
 *   typeOf(value), equal(a, b), compare(a, b), sizeOf(value), showValue(value)
 */
import { BOOL, BYTES, DOUBLE, DURATION, ERROR, INT, LIST, MAP, NULL, OPTIONAL, STRING, TIMESTAMP, TYPE, UINT, Type } from "../check/type.ts";

export type Scalar = null | boolean | bigint | number | string | Uint | Uint8Array;
export type Value = Scalar | Timestamp | Duration | Type | Optional | List | Mapping | Opaque | EvalError;

export class Uint {
  readonly value: bigint;
  constructor(value: bigint) { this.value = value; }
}

/** Why there is no value. */
export class EvalError {
  readonly message: string;
  constructor(message: string) { this.message = message; }
}

/** The expression has cost more than it may. */
export class CostExceeded extends Error {
  override readonly name = "CostExceeded";
  constructor() { super("operation cancelled: actual cost limit exceeded"); }
}

export class Timestamp {
  /** Since 1970. */
  readonly nanos: bigint;
  /** Of the zone it was written in. */
  readonly offsetMinutes: number;
  constructor(nanos: bigint, offsetMinutes = 0) { this.nanos = nanos; this.offsetMinutes = offsetMinutes; }
}

export class Duration {
  readonly nanos: bigint;
  constructor(nanos: bigint) { this.nanos = nanos; }
}

export class Optional {
  readonly value: Value | undefined;
  constructor(value: Value | undefined) { this.value = value; }
  static readonly none = new Optional(undefined);
}

export abstract class List {
  abstract readonly size: number;
  /** Of an index that exists. */
  abstract at(index: number): Value;
  /** Of how many values it is made, all the way down. */
  get weight(): number { return 1 + this.size + this.nested; }
  /** Those further down than its own; of JSON they do not count: there is no more of it than was sent. */
  get nested(): number { return 0; }

  *[Symbol.iterator](): Iterator<Value> { for (let i = 0; i < this.size; i++) yield this.at(i); }

  contains(value: Value): boolean {
    for (const element of this) if (equal(value, element) === true) return true;
    return false;
  }
  /** An EvalError for what is no list. */
  plus(other: Value): Value { return other instanceof List ? joined(this, other) : noSuchOverload(other); }
  /** Elements that cannot be compared count as equal. */
  equals(other: Value): boolean | EvalError {
    if (!(other instanceof List) || other.size !== this.size) return false;
    if (other instanceof JoinedLists) {
      let i = 0;
      for (const element of other) if (equal(this.at(i++), element) === false) return false;
      return true;
    }
    for (let i = 0; i < this.size; i++) if (equal(this.at(i), other.at(i)) === false) return false;
    return true;
  }
}

export abstract class Mapping {
  abstract readonly size: number;
  /** As a list's; keys do not count. */
  get weight(): number { return 1 + this.size + this.nested; }
  get nested(): number { return 0; }
  abstract find(key: Value): Value | undefined;
  /** What `in` asks. */
  has(key: Value): boolean { return this.find(key) !== undefined; }
  abstract keys(): Iterable<Value>;
  get type(): Type { return MAP; }

  plus(other: Value): Value { return noSuchOverload(other); }
  /** Values that cannot be compared count as equal. */
  equals(other: Value): boolean | EvalError {
    if (!(other instanceof Mapping) || other.size !== this.size) return false;
    for (const key of this.keys()) {
      const found = other.find(key);
      if (found === undefined || equal(this.find(key)!, found) === false) return false;
    }
    return true;
  }
}

/** What a library adds. */
export abstract class Opaque {
  abstract readonly type: Type;
  /** What upstream's code calls it: messages show that. */
  abstract readonly goType: string;
  /** An EvalError for what it cannot be compared with. */
  abstract equals(other: Value): boolean | EvalError;
  /** As a key of a map: the same for the same, itself for what is like nothing else. */
  get key(): unknown { return this; }
  /** undefined: it has no size. */
  get size(): number | undefined { return undefined; }
  /** For those with fields: undefined if there is none of that name. */
  field(_name: string): Value | undefined { return undefined; }
  has(_name: string): boolean { return false; }
}

/** As many as an expression can make one by one, for what it may cost. Of `[1].map(x, [x, x]).map(x, [x, x])` and so on each list is made at once, and has twice as many as the one before. */
const WEIGHT_MAX = 1_000_000;

/** Throws CostExceeded. */
function weightOf(parts: Iterable<Value>): number {
  let sum = 1;
  for (const part of parts) {
    const value = within(part);
    sum += value instanceof List || value instanceof Mapping ? value.weight : 1;
  }
  if (sum > WEIGHT_MAX) throw new CostExceeded();
  return sum;
}

/** Of how many values it is made besides those that its size tells. */
export function nestedWeight(value: Value): number {
  const found = within(value);
  return found instanceof List || found instanceof Mapping ? found.nested : 0;
}

/** What is in an optional, and in one in it. */
function within(value: Value): Value | undefined {
  let found: Value | undefined = value;
  while (found instanceof Optional) found = found.value;
  return found;
}

class ListOfValues extends List {
  readonly #values: readonly Value[];
  readonly #weight: number;
  constructor(values: readonly Value[]) { super(); this.#values = values; this.#weight = weightOf(values); }
  override get size(): number { return this.#values.length; }
  override get nested(): number { return this.#weight - 1 - this.size; }
  override at(index: number): Value { return this.#values[index]!; }
}

/** Two lists after one another, neither of them copied. */
export class JoinedLists extends List {
  readonly #first: List;
  readonly #second: List;
  override readonly size: number;
  readonly #weight: number;
  constructor(first: List, second: List) { super(); this.#first = first; this.#second = second; this.size = first.size + second.size; this.#weight = weightOf([first, second]); }
  override get nested(): number { return this.#weight - 1 - this.size; }
  override at(index: number): Value {
    let list: List = this, left = index;
    while (list instanceof JoinedLists) {
      const { size } = list.#first;
      [list, left] = left < size ? [list.#first, left] : [list.#second, left - size];
    }
    return list.at(left);
  }
  override *[Symbol.iterator](): Iterator<Value> {
    const waiting: List[] = [this]; // of lists that were joined again and again each element would pass through all
    for (let list = waiting.pop(); list; list = waiting.pop()) {
      if (list instanceof JoinedLists) waiting.push(list.#second, list.#first);
      else for (let i = 0; i < list.size; i++) yield list.at(i);
    }
  }
  override equals(other: Value): boolean | EvalError {
    if (!(other instanceof List) || other.size !== this.size) return false;
    const theirs = other[Symbol.iterator]();
    let error: EvalError | undefined;
    for (const element of this) {
      const compared = equal(element, theirs.next().value as Value);
      if (compared === false) return false;
      if (compared !== true) error ??= compared;
    }
    return error ?? true;
  }
}

/** By the keys as they were made: 1, 1u and 1.0 are three keys, but each finds the others' value where its own has none. */
export class MapOfValues extends Mapping {
  readonly #entries: ReadonlyMap<unknown, readonly [key: Value, value: Value]>;
  readonly #weight: number;
  /** `entries`: by identityOf. */
  constructor(entries: ReadonlyMap<unknown, readonly [key: Value, value: Value]>) { super(); this.#entries = entries; this.#weight = weightOf(entries.values().map(([, value]) => value)); }
  override get size(): number { return this.#entries.size; }
  override get nested(): number { return this.#weight - 1 - this.size; }
  override find(key: Value): Value | undefined {
    for (const candidate of identitiesOf(key)) {
      const found = this.#entries.get(candidate);
      if (found) return found[1];
    }
    return undefined;
  }
  override *keys(): Iterable<Value> { for (const [key] of this.#entries.values()) yield key; }
}

export function noSuchOverload(value?: Value): EvalError { return value instanceof EvalError ? value : new EvalError("no such overload"); }
export function isError(value: Value): value is EvalError { return value instanceof EvalError; }

export function listFrom(values: readonly Value[]): List { return new ListOfValues(values); }
export function mapFrom(entries: Iterable<readonly [key: Value, value: Value]>): Mapping {
  const byIdentity = new Map<unknown, readonly [Value, Value]>();
  for (const entry of entries) byIdentity.set(identityOf(entry[0]), entry);
  return new MapOfValues(byIdentity);
}

function joined(a: List, b: List): List { return a.size === 0 ? b : b.size === 0 ? a : new JoinedLists(a, b); }

/** The same for keys that are the same key. */
export function identityOf(key: Value): unknown {
  if (typeof key !== "object" || key === null) return `${typeof key} ${String(key)}`;
  if (key instanceof Uint) return `uint ${key.value}`;
  if (key instanceof Uint8Array) return `bytes ${key.join(" ")}`;
  if (key instanceof Timestamp) return `timestamp ${key.nanos} ${key.offsetMinutes}`;
  if (key instanceof Duration) return `duration ${key.nanos}`;
  if (key instanceof Type) return `type ${key.name}`;
  return key instanceof Opaque ? key.key : key;
}

/** The key itself, then the same number as another type. */
function* identitiesOf(key: Value): Iterable<unknown> {
  if (Number.isNaN(key)) return; // it is not even itself
  yield identityOf(key);
  const whole = typeof key === "bigint" ? key : key instanceof Uint ? key.value : typeof key === "number" && Number.isInteger(key) ? BigInt(key) : undefined;
  if (whole === undefined) return;
  yield `bigint ${whole}`;
  yield `uint ${whole}`;
}

export function typeOf(value: Value): Type {
  switch (typeof value) {
    case "boolean": return BOOL;
    case "bigint": return INT;
    case "number": return DOUBLE;
    case "string": return STRING;
  }
  if (value === null) return NULL;
  if (value instanceof Uint) return UINT;
  if (value instanceof Uint8Array) return BYTES;
  if (value instanceof Timestamp) return TIMESTAMP;
  if (value instanceof Duration) return DURATION;
  if (value instanceof Type) return TYPE;
  if (value instanceof Optional) return OPTIONAL;
  if (value instanceof List) return LIST;
  if (value instanceof Mapping || value instanceof Opaque) return value.type;
  return ERROR;
}

/** How many there are of what it is made of; undefined for what is not made of anything. */
export function sizeOf(value: Value): number | undefined {
  if (typeof value === "string") return countPoints(value);
  if (value instanceof Uint8Array) return value.length;
  if (value instanceof List || value instanceof Mapping || value instanceof Opaque) return value.size;
  return undefined;
}

export function countPoints(text: string): number {
  const { length } = text;
  if (Buffer.byteLength(text) === length) return length;
  let count = length;
  for (let i = 1; i < length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) count--;
  return count;
}

/** Numbers are equal if they are the same number, whatever their types. An EvalError for values of which the first knows nothing of the second. */
export function equal(a: Value, b: Value): boolean | EvalError {
  return a === null || b === null ? a === b : equalTo(a, b);
}

/** As the first value says it itself: of null, too, it may know nothing. */
function equalTo(a: Value, b: Value): boolean | EvalError {
  if (a === null) return b === null;
  switch (typeof a) {
    case "string": case "boolean": return a === b;
    case "bigint": case "number": return isNumber(b) && order(a, b) === 0;
  }
  if (a instanceof Uint) return isNumber(b) && order(a, b) === 0;
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  if (a instanceof Timestamp) return b instanceof Timestamp && a.nanos === b.nanos;
  if (a instanceof Duration) return b instanceof Duration && a.nanos === b.nanos;
  if (a instanceof Type) return b instanceof Type && a.name === b.name;
  if (a instanceof Optional) return b instanceof Optional && (a.value === undefined || b.value === undefined ? a.value === b.value : equalTo(a.value, b.value));
  if (a instanceof EvalError) return true;
  return a.equals(b);
}

const NOT_ORDERED = "NaN values cannot be ordered";

/** Less than, equal to, greater than 0; an EvalError for values that have no order. */
export function compare(a: Value, b: Value): number | EvalError {
  if (isNumber(a)) {
    if (!isNumber(b)) return Number.isNaN(a) ? new EvalError(NOT_ORDERED) : noSuchOverload(b);
    if (Number.isNaN(a) || Number.isNaN(b)) return new EvalError(NOT_ORDERED);
    return order(a, b)!;
  }
  if (typeof a === "string") return typeof b === "string" ? compareStrings(a, b) : noSuchOverload(b);
  if (typeof a === "boolean") return typeof b === "boolean" ? Number(a) - Number(b) : noSuchOverload(b);
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? Buffer.compare(a, b) : noSuchOverload(b);
  if (a instanceof Timestamp) return b instanceof Timestamp ? sign(a.nanos - b.nanos) : noSuchOverload(b);
  if (a instanceof Duration) return b instanceof Duration ? sign(a.nanos - b.nanos) : noSuchOverload(b);
  return noSuchOverload();
}

export function isNumber(value: Value): value is bigint | number | Uint { return typeof value === "bigint" || typeof value === "number" || value instanceof Uint; }

/** Undefined with NaN. */
function order(a: bigint | number | Uint, b: bigint | number | Uint): number | undefined {
  const [x, y] = [a instanceof Uint ? a.value : a, b instanceof Uint ? b.value : b];
  if (typeof x === "bigint" && typeof y === "bigint") return sign(x - y);
  if (Number.isNaN(x) || Number.isNaN(y)) return undefined;
  const [d, e] = [Number(x), Number(y)];
  return d < e ? -1 : d > e ? 1 : 0;
}

function sign(difference: bigint): number { return difference < 0n ? -1 : difference > 0n ? 1 : 0; }

/** By code points, as UTF-8 sorts. */
export function compareStrings(a: string, b: string): number {
  if (a === b) return 0;
  if (!/[\ud800-\udfff]/.test(a) && !/[\ud800-\udfff]/.test(b)) return a < b ? -1 : 1;
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
