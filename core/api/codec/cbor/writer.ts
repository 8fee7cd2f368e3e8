/**
 * JSON values as CBOR, as the API server writes them: texts and the names of fields are byte strings, []byte is bytes in a tag that says base64, floats are as short as they can be. In which
 * order the entries of a map come nobody is to rely on: each begins with another one, unless it is asked for in order.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/runtime/serializer/cbor/{cbor.go,internal/modes/encode.go}
 */
import type { StructType, Type } from "../../schema/facts.ts";

/** What all that is CBOR begins with: a tag that says so. */
const SELF_DESCRIBED = [0xd9, 0xd9, 0xf7];
const UNSIGNED = 0, NEGATIVE = 1, BYTES = 2, ARRAY = 4, MAP = 5;
const LATER_BASE64 = 0xd6, FALSE = 0xf4, TRUE = 0xf5, NULL = 0xf6;
const START_BYTES = 4096;
const UTF8 = new TextEncoder();

export class CborWriter {
  /** Where the next map begins. */
  #turn: number;
  #bytes = new Uint8Array(START_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  /** `inOrder`: each map by the bytes of its keys, as RFC 8949, 4.2.1 has it. */
  constructor({ inOrder = false }: { readonly inOrder?: boolean } = {}) { this.#turn = inOrder ? -1 : 0; }

  /** A whole body. `type`: what the value is known to be. */
  write(value: unknown, type?: Type): Uint8Array {
    this.#at = 0;
    this.#put(...SELF_DESCRIBED);
    this.#value(value, type);
    return this.#taken();
  }

  /** An event of a watch around an object that is written already. */
  event(name: string, object: Uint8Array): Uint8Array {
    this.#at = 0;
    this.#put(...SELF_DESCRIBED);
    this.#map(["type", "object"], (key) => { if (key === "type") this.#text(name); else this.#raw(object); });
    return this.#taken();
  }

  #taken(): Uint8Array {
    const taken = this.#bytes.slice(0, this.#at);
    if (this.#bytes.length > 16 * START_BYTES) { this.#bytes = new Uint8Array(START_BYTES); this.#view = new DataView(this.#bytes.buffer); }
    return taken;
  }

  #value(value: unknown, type: Type | undefined): void {
    switch (typeof value) {
      case "string":
        if (type?.kind === "scalar" && type.scalar === "bytes") this.#base64(value);
        else this.#text(value);
        break;
      case "number":
        if (Number.isSafeInteger(value) && !isFloat(type)) this.#integer(value);
        else this.#float(value);
        break;
      case "bigint": this.#integer(value); break;
      case "boolean": this.#put(value ? TRUE : FALSE); break;
      case "object":
        if (value === null) this.#put(NULL);
        else if (Array.isArray(value)) this.#array(value, type);
        else this.#object(value as Record<string, unknown>, type);
        break;
      default: this.#put(NULL);
    }
  }

  #array(items: readonly unknown[], type: Type | undefined): void {
    const of = type?.kind === "list" ? type.items : schemaIn(type);
    this.#head(ARRAY, items.length);
    for (const item of items) this.#value(item, of);
  }

  #object(object: Readonly<Record<string, unknown>>, type: Type | undefined): void {
    const struct = type?.kind === "struct" ? type : schemaIn(type);
    const values = type?.kind === "map" ? type.values : undefined;
    this.#map(Object.keys(object).filter((key) => object[key] !== undefined), (key) => this.#value(object[key], struct ? struct.field(key)?.type : values));
  }

  #map(keys: readonly string[], write: (key: string) => void): void {
    this.#head(MAP, keys.length);
    const first = this.#first(keys.length);
    const ordered = this.#turn < 0 ? inOrder(keys) : keys;
    for (let i = 0; i < keys.length; i++) {
      const key = ordered[(first + i) % keys.length]!;
      this.#text(key);
      write(key);
    }
  }

  /** Of so many. A congruential generator: two answers are seldom alike. */
  #first(count: number): number {
    if (this.#turn < 0 || count < 2) return 0;
    this.#turn = (Math.imul(this.#turn, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (this.#turn >> 12) % count;
  }

  #integer(value: number | bigint): void {
    if (value >= 0) this.#head(UNSIGNED, value);
    else this.#head(NEGATIVE, typeof value === "bigint" ? -1n - value : -1 - value);
  }

  #float(value: number): void {
    this.#room(9);
    const bits = halfBits(value);
    if (bits !== undefined) {
      this.#bytes[this.#at] = 0xf9;
      this.#view.setUint16(this.#at + 1, bits);
      this.#at += 3;
    } else if (Math.fround(value) === value) {
      this.#bytes[this.#at] = 0xfa;
      this.#view.setFloat32(this.#at + 1, value);
      this.#at += 5;
    } else {
      this.#bytes[this.#at] = 0xfb;
      this.#view.setFloat64(this.#at + 1, value);
      this.#at += 9;
    }
  }

  #text(text: string): void {
    const length = Buffer.byteLength(text);
    this.#head(BYTES, length);
    this.#room(length);
    UTF8.encodeInto(text, this.#bytes.subarray(this.#at));
    this.#at += length;
  }

  #base64(text: string): void {
    const bytes = Buffer.from(text, "base64");
    this.#put(LATER_BASE64);
    this.#head(BYTES, bytes.length);
    this.#raw(bytes);
  }

  #raw(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** The shortest there is. */
  #head(major: number, value: number | bigint): void {
    const type = major << 5;
    if (value < 24) return this.#put(type | Number(value));
    this.#room(9);
    const at = this.#at + 1;
    if (value < 2 ** 8) { this.#bytes[at - 1] = type | 24; this.#bytes[at] = Number(value); this.#at += 2; }
    else if (value < 2 ** 16) { this.#bytes[at - 1] = type | 25; this.#view.setUint16(at, Number(value)); this.#at += 3; }
    else if (value < 2 ** 32) { this.#bytes[at - 1] = type | 26; this.#view.setUint32(at, Number(value)); this.#at += 5; }
    else { this.#bytes[at - 1] = type | 27; this.#view.setBigUint64(at, BigInt(value)); this.#at += 9; }
  }

  #put(...bytes: readonly number[]): void {
    this.#room(bytes.length);
    for (const byte of bytes) this.#bytes[this.#at++] = byte;
  }

  #room(length: number): void {
    if (this.#at + length <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#at + length));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

function isFloat(type: Type | undefined): boolean { return type?.kind === "scalar" && type.scalar === "float64"; }

/** Of the types that are a schema, or several. */
function schemaIn(type: Type | undefined): StructType | undefined { return type?.kind === "special" ? type.schema : undefined; }

/** Shorter ones first: the head of a key tells its length. */
function inOrder(keys: readonly string[]): readonly string[] {
  return keys.map((key) => Buffer.from(key)).sort((a, b) => a.length - b.length || a.compare(b)).map((key) => key.toString());
}

/** As a float of 16 bits. Undefined: it is none. */
function halfBits(value: number): number | undefined {
  const sign = Object.is(value, -0) || value < 0 ? 0x8000 : 0, size = Math.abs(value);
  if (size === 0) return sign;
  const exponent = Math.max(-14, Math.floor(Math.log2(size))), fraction = (size / 2 ** exponent) * 1024;
  if (exponent > 15 || !Number.isInteger(fraction) || fraction >= 2048) return undefined;
  return sign | (fraction < 1024 ? fraction : ((exponent + 15) << 10) | (fraction - 1024));
}
