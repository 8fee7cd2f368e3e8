/**
 * Protocol Buffers (proto3) for the messages of CRI, driven by the table in facts.ts.
 *
 * A message is a plain object with the proto's field names. What is absent has the proto's default (0, "", false, empty, the enum's first
 * value) and what has the default is absent. 64-bit integers are numbers: beyond 2^53 (nanosecond timestamps) they lose their last digits.
 * Fields nobody knows are skipped.
 *
 * API: https://protobuf.dev/programming-guides/encoding/
 */
import type { Field, FieldType, Message, Scalar } from "./facts.ts";

type Plain = Record<string, unknown>;

const VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5;
const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder();

export function encode(message: Message, value: object): Buffer {
  const out = new Writer();
  writeMessage(out, message, value as Plain);
  return out.finish();
}

/** Throws RangeError when the bytes end early or make no sense. */
export function decode(message: Message, bytes: Uint8Array): Plain {
  return readMessage(new Reader(bytes, 0, bytes.length), message);
}

function writeMessage(out: Writer, message: Message, value: Plain): void {
  for (const field of message.fields) {
    const content = value[field.name];
    if (content === undefined || content === null) continue;
    if (field.type.kind === "map") writeMap(out, field, field.type.value, content as Plain);
    else if (!field.repeated) writeField(out, field.number, field.type, content, false);
    else if (isPacked(field.type)) writePacked(out, field, content as readonly unknown[]);
    else for (const item of content as readonly unknown[]) writeField(out, field.number, field.type, item, true);
  }
}

function writeMap(out: Writer, field: Field, type: FieldType, entries: Plain): void {
  for (const [key, content] of Object.entries(entries)) {
    const entry = new Writer();
    entry.tag(1, BYTES);
    entry.bytes(utf8Encoder.encode(key));
    writeField(entry, 2, type, content, true);
    out.tag(field.number, BYTES);
    out.bytes(entry.finish());
  }
}

function writePacked(out: Writer, field: Field, items: readonly unknown[]): void {
  if (items.length === 0) return;
  const packed = new Writer();
  for (const item of items) packed.varint(numberOf(field.type, item));
  out.tag(field.number, BYTES);
  out.bytes(packed.finish());
}

/** `always`: elements are written although they have the default. */
function writeField(out: Writer, number: number, type: FieldType, content: unknown, always: boolean): void {
  if (type.kind === "message") {
    const inner = new Writer();
    writeMessage(inner, type.message, content as Plain);
    out.tag(number, BYTES);
    out.bytes(inner.finish());
  } else if (type.kind === "scalar" && (type.scalar === "string" || type.scalar === "bytes")) {
    const bytes = type.scalar === "string" ? utf8Encoder.encode(content as string) : (content as Uint8Array);
    if (bytes.length === 0 && !always) return;
    out.tag(number, BYTES);
    out.bytes(bytes);
  } else {
    const value = numberOf(type, content);
    if (value === 0 && !always) return;
    const fraction = type.kind === "scalar" && (type.scalar === "double" || type.scalar === "float");
    out.tag(number, !fraction ? VARINT : type.scalar === "double" ? FIXED64 : FIXED32);
    if (fraction) out.float(value, type.scalar === "double" ? 8 : 4);
    else out.varint(value);
  }
}

function isPacked(type: FieldType): boolean {
  return type.kind === "enum" || (type.kind === "scalar" && type.scalar !== "string" && type.scalar !== "bytes");
}

function numberOf(type: FieldType, content: unknown): number {
  if (type.kind !== "enum") return Number(content);
  const number = type.values.numbers.get(content as string);
  if (number === undefined) throw new RangeError(`no such enum value: ${String(content)}`);
  return number;
}

function readMessage(bytes: Reader, message: Message): Plain {
  const value: Plain = {};
  while (!bytes.atEnd) {
    const tag = bytes.varint();
    const field = message.byNumber.get(Math.floor(tag / 8));
    const wire = tag % 8;
    if (!field) {
      bytes.skip(wire);
      continue;
    }
    if (field.type.kind === "map") readMapEntry(bytes.inner(), field.type.value, (value[field.name] ??= {}) as Plain);
    else if (!field.repeated) value[field.name] = readField(bytes, field.type);
    else {
      const items = (value[field.name] ??= []) as unknown[];
      if (wire === BYTES && isPacked(field.type)) for (const packed = bytes.inner(); !packed.atEnd; ) items.push(readField(packed, field.type));
      else items.push(readField(bytes, field.type));
    }
  }
  return value;
}

function readMapEntry(entry: Reader, type: FieldType, into: Plain): void {
  let key = "";
  let content: unknown = type.kind === "message" ? {} : "";
  while (!entry.atEnd) {
    const tag = entry.varint();
    if (tag >> 3 === 1) key = utf8Decoder.decode(entry.block());
    else if (tag >> 3 === 2) content = readField(entry, type);
    else entry.skip(tag % 8);
  }
  Object.defineProperty(into, key, { value: content, enumerable: true, writable: true, configurable: true }); // a key may be __proto__
}

function readField(bytes: Reader, type: FieldType): unknown {
  if (type.kind === "message") return readMessage(bytes.inner(), type.message);
  if (type.kind === "enum") {
    const number = bytes.varint();
    return type.values.names.get(number) ?? String(number); // a value newer than our table
  }
  if (type.kind === "map") throw new RangeError("a map of maps");
  return readScalar(bytes, type.scalar);
}

function readScalar(bytes: Reader, scalar: Scalar): unknown {
  switch (scalar) {
    case "string": return utf8Decoder.decode(bytes.block());
    case "bytes": return new Uint8Array(bytes.block());
    case "double": return bytes.float(8);
    case "float": return bytes.float(4);
    case "bool": return bytes.varint() !== 0;
    case "int32": case "int64": return bytes.signedVarint();
    case "uint32": case "uint64": return bytes.varint();
  }
}

class Writer {
  #bytes = new Uint8Array(128);
  #length = 0;

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const bigger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + more));
    bigger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = bigger;
  }

  tag(number: number, wire: number): void { this.varint(number * 8 + wire); }

  varint(value: number): void {
    this.#reserve(10);
    if (value < 0 || value > Number.MAX_SAFE_INTEGER) {
      for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
        if (rest < 0x80n) return void (this.#bytes[this.#length++] = Number(rest));
        this.#bytes[this.#length++] = Number(rest & 0x7fn) | 0x80;
      }
    }
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#length++] = rest;
  }

  float(value: number, size: 4 | 8): void {
    this.#reserve(size);
    const view = new DataView(this.#bytes.buffer, this.#length, size);
    if (size === 8) view.setFloat64(0, value, true);
    else view.setFloat32(0, value, true);
    this.#length += size;
  }

  bytes(block: Uint8Array): void {
    this.varint(block.length);
    this.#reserve(block.length);
    this.#bytes.set(block, this.#length);
    this.#length += block.length;
  }

  finish(): Buffer { return Buffer.from(this.#bytes.buffer, 0, this.#length); }
}

class Reader {
  #bytes: Uint8Array;
  #at: number;
  #end: number;

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
  }

  get atEnd(): boolean { return this.#at >= this.#end; }

  #byte(): number {
    if (this.#at >= this.#end) throw new RangeError("the message ends early");
    return this.#bytes[this.#at++]!;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 70; scale *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    throw new RangeError("a varint of more than ten bytes");
  }

  signedVarint(): number {
    const start = this.#at;
    const value = this.varint();
    if (this.#at - start < 10) return value;
    let exact = 0n;
    for (let i = this.#at - 1; i >= start; i--) exact = (exact << 7n) | BigInt(this.#bytes[i]! & 0x7f);
    return Number(BigInt.asIntN(64, exact));
  }

  float(size: 4 | 8): number {
    const view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset + this.#take(size), size);
    return size === 8 ? view.getFloat64(0, true) : view.getFloat32(0, true);
  }

  #take(length: number): number {
    const at = this.#at;
    if (at + length > this.#end) throw new RangeError("the message ends early");
    this.#at += length;
    return at;
  }

  block(): Uint8Array {
    const length = this.varint();
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  inner(): Reader {
    const length = this.varint();
    const at = this.#take(length);
    return new Reader(this.#bytes, at, at + length);
  }

  skip(wire: number): void {
    if (wire === VARINT) this.varint();
    else if (wire === FIXED64) this.#take(8);
    else if (wire === BYTES) this.block();
    else if (wire === FIXED32) this.#take(4);
    else throw new RangeError(`wire type ${wire}`);
  }
}
