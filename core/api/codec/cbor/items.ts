/**
 * CBOR as it stands in the bytes (RFC 8949): a tree of data items, in their order, with tags and doubled keys. What is not well-formed is refused in the words of the API server's library, and
 * so is what no JSON could say: numbers without end, big integers. What the items mean is said by values.ts and typed.ts.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/runtime/serializer/cbor/internal/modes/decode.go, github.com/fxamacker/cbor/v2 valid.go
 */
import { isUtf8 } from "node:buffer";
import { DEPTH_MAX } from "../json-document.ts";

/** Its message is what the API server says. */
export class CborError extends Error { override readonly name: string = "CborError"; }

/** A text, a number, true, false and null are what they are in JSON; integers no double holds are bigints. */
export type CborItem = null | boolean | number | bigint | string | readonly CborItem[] | CborMap | CborBytes | CborFloat | CborTag | CborSimple | CborBadText;

/** Keys and values in turn. */
export class CborMap { readonly flat: readonly CborItem[]; constructor(flat: readonly CborItem[]) { this.flat = flat; } }
/** A view of what was read, unless it came in chunks. */
export class CborBytes { readonly bytes: Uint8Array; constructor(bytes: Uint8Array) { this.bytes = bytes; } }
/** Written as one, whole or not. */
export class CborFloat { readonly value: number; constructor(value: number) { this.value = value; } }
export class CborTag { readonly number: number | bigint; readonly content: CborItem; constructor(number: number | bigint, content: CborItem) { this.number = number; this.content = content; } }
/** One that is neither true nor false nor null. */
export class CborSimple { readonly value: number; constructor(value: number) { this.value = value; } }
/** A text that is no UTF-8. */
export class CborBadText {}

const UNSIGNED = 0, NEGATIVE = 1, BYTES = 2, TEXT = 3, ARRAY = 4, MAP = 5, TAG = 6, PRIMITIVE = 7;
const MAJOR_TYPES = ["positive integer", "negative integer", "byte string", "UTF-8 text string", "array", "map", "tag", "primitives"] as const;
export type MajorType = (typeof MAJOR_TYPES)[number];
const BREAK = 0xff, INDEFINITE = 31;
const FALSE = 20, TRUE = 21, NULL = 22;
const ARRAY_ITEMS_MAX = 2 ** 31 - 1, MAP_PAIRS_MAX = 2 ** 21;
const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** The one item there is. Throws CborError. */
export function readCbor(bytes: Uint8Array): CborItem {
  if (bytes.length === 0) throw new CborError("EOF");
  const reader = new Reader(bytes);
  const item = reader.item(0);
  if (reader.at < bytes.length) throw new CborError(`cbor: ${bytes.length - reader.at} bytes of extraneous data starting at index ${reader.at}`);
  return item;
}

export function majorTypeOf(item: CborItem): MajorType {
  switch (typeof item) {
    case "number": case "bigint": return item < 0 ? "negative integer" : "positive integer";
    case "string": return "UTF-8 text string";
    case "boolean": return "primitives";
    default:
      if (item instanceof CborMap) return "map";
      if (item instanceof CborBytes) return "byte string";
      if (item instanceof CborTag) return "tag";
      if (item instanceof CborBadText) return "UTF-8 text string";
      return Array.isArray(item) ? "array" : "primitives";
  }
}

interface Head { readonly major: number; readonly info: number; /** Undefined: of indefinite length. */ readonly value: number | bigint | undefined }

class Reader {
  at = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  item(depth: number): CborItem {
    const { major, info, value } = this.#head();
    switch (major) {
      case UNSIGNED: return value!;
      case NEGATIVE: return typeof value === "bigint" || value === Number.MAX_SAFE_INTEGER ? -1n - BigInt(value) : -1 - value!;
      case BYTES: return new CborBytes(value === undefined ? Buffer.concat(this.#chunks(BYTES)) : this.#string(BYTES, value));
      case TEXT: return value === undefined ? textOf(this.#chunks(TEXT)) : textOf([this.#string(TEXT, value)]);
      case ARRAY: return this.#items(ARRAY, value, deeper(depth));
      case MAP: return new CborMap(this.#items(MAP, value, deeper(depth)));
      case TAG: return this.#tagged(value!, depth);
      default: return this.#primitive(info, Number(value));
    }
  }

  #head(): Head {
    const first = this.#take(1), initial = this.#bytes[first]!;
    const major = initial >> 5, info = initial & 31;
    if (info < 24) return { major, info, value: info };
    if (info === INDEFINITE) {
      if (major === PRIMITIVE) throw new CborError("cbor: unexpected \"break\" code");
      if (major >= BYTES && major <= MAP) return { major, info, value: undefined };
    }
    if (info > 27) throw new CborError(`cbor: invalid additional information ${info} for type ${MAJOR_TYPES[major]}`);
    const at = this.#take(2 ** (info - 24));
    if (major === PRIMITIVE && info > 24) return { major, info, value: at };
    const value = info === 24 ? this.#bytes[at]! : info === 25 ? this.#view.getUint16(at) : info === 26 ? this.#view.getUint32(at) : whole(this.#view.getBigUint64(at));
    return { major, info, value };
  }

  /** Of so many bytes: where they start. */
  #take(length: number): number {
    if (length > this.#bytes.length - this.at) throw new CborError("unexpected EOF");
    const from = this.at;
    this.at += length;
    return from;
  }

  #string(major: number, length: number | bigint): Uint8Array {
    if (isPastInt64(length)) throw new CborError(`cbor: ${MAJOR_TYPES[major]} length ${length} is too large, causing integer overflow`);
    const from = this.#take(Number(length));
    return this.#bytes.subarray(from, this.at);
  }

  #chunks(major: number): Uint8Array[] {
    const chunks: Uint8Array[] = [];
    while (!this.#isBroken()) {
      const initial = this.#bytes[this.at]!;
      if (initial >> 5 !== major) throw new CborError(`cbor: wrong element type ${MAJOR_TYPES[initial >> 5]} for indefinite-length ${MAJOR_TYPES[major]}`);
      if ((initial & 31) === INDEFINITE) throw new CborError(`cbor: indefinite-length ${MAJOR_TYPES[major]} chunk is not definite-length`);
      chunks.push(this.#string(major, this.#head().value!));
    }
    return chunks;
  }

  #isBroken(): boolean {
    const from = this.#take(1);
    if (this.#bytes[from] === BREAK) return true;
    this.at = from;
    return false;
  }

  #items(major: number, length: number | bigint | undefined, depth: number): readonly CborItem[] {
    const isMap = major === MAP, items: CborItem[] = [];
    if (length !== undefined && isPastInt64(length)) throw new CborError(`cbor: ${MAJOR_TYPES[major]} length ${length} is too large, it would cause integer overflow`);
    const check = (count: number | bigint): void => {
      if (!isMap && count > ARRAY_ITEMS_MAX) throw new CborError(`cbor: exceeded max number of elements ${ARRAY_ITEMS_MAX} for CBOR array`);
      if (isMap && count > MAP_PAIRS_MAX) throw new CborError(`cbor: exceeded max number of key-value pairs ${MAP_PAIRS_MAX} for CBOR map`);
    };
    check(length ?? 0);
    if (length !== undefined) {
      for (let left = Number(length) * (isMap ? 2 : 1); left > 0; left--) items.push(this.item(depth));
      return items;
    }
    while (!this.#isBroken()) {
      items.push(this.item(depth));
      check(isMap ? items.length >> 1 : items.length);
    }
    if (isMap && items.length % 2 === 1) throw new CborError("cbor: unexpected \"break\" code");
    return items;
  }

  #tagged(first: number | bigint, depth: number): CborItem {
    const numbers = [first];
    let at = depth;
    for (;;) {
      if (this.at === this.#bytes.length) throw new CborError("unexpected EOF");
      const last = numbers.at(-1)!;
      if (last === 2 || last === 3) throw unacceptable("tag", "bignum");
      if (this.#bytes[this.at]! >> 5 !== TAG) break;
      numbers.push(this.#head().value!);
      at = deeper(at);
    }
    return numbers.reduceRight((content, number) => new CborTag(number, content), this.item(at) as CborItem);
  }

  /** `value`: of a float, where it is. */
  #primitive(info: number, value: number): CborItem {
    switch (info) {
      case FALSE: return false;
      case TRUE: return true;
      case NULL: return null;
      case 24:
        if (value < 32) throw new CborError(`cbor: invalid simple value ${value} for type primitives`);
        return new CborSimple(value);
      case 25: return finite(half(this.#view.getUint16(value)));
      case 26: return finite(this.#view.getFloat32(value));
      case 27: return finite(this.#view.getFloat64(value));
      default: return new CborSimple(info);
    }
  }
}

export function unacceptable(type: MajorType, why: string): CborError { return new CborError(`cbor: data item of cbor type ${type} is not accepted by protocol: ${why}`); }

/** What walks objects here is recursive: as deep as JSON may nest. */
function deeper(depth: number): number {
  if (depth >= DEPTH_MAX) throw new CborError(`cbor: exceeded max nested level ${DEPTH_MAX}`);
  return depth + 1;
}

function whole(value: bigint): number | bigint { return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value; }

function isPastInt64(value: number | bigint): boolean { return typeof value === "bigint" && value >= 2n ** 63n; }

/** Each chunk is to be UTF-8 by itself. */
function textOf(chunks: readonly Uint8Array[]): string | CborBadText { return chunks.every((chunk) => isUtf8(chunk)) ? chunks.map((chunk) => UTF8.decode(chunk)).join("") : new CborBadText(); }

function finite(value: number): CborFloat {
  if (Number.isFinite(value)) return new CborFloat(value);
  throw unacceptable("primitives", Number.isNaN(value) ? "floating-point NaN" : "floating-point infinity");
}

/** A float of 16 bits: a sign, five bits of exponent, ten of fraction. */
function half(bits: number): number {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const size = exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? (fraction === 0 ? Infinity : NaN) : (1024 + fraction) * 2 ** (exponent - 25);
  return bits >> 15 ? -size : size;
}
