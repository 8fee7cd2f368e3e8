/**
 * Protobuf's wire format: a reader with bounds, and a writer that fills its buffer from the end.
 *
 * Writing backwards, last field first, means the length of a nested message is known when its tag is due, so nothing is measured twice or moved.
 * Objects of the API, CRI, etcd, the tunnel, traces and metrics are written with it.
 *
 * API: https://protobuf.dev/programming-guides/encoding/
 */
export const VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, GROUP_START = 3, GROUP_END = 4, FIXED32 = 5;

/** The messages are gogo/protobuf's. */
export class ProtobufError extends Error { override readonly name = "ProtobufError"; }

const UNEXPECTED_EOF = "unexpected EOF";
const INTEGER_OVERFLOW = "proto: integer overflow";
const NEGATIVE_LENGTH = "proto: negative length found during unmarshaling";

export class WireReader {
  readonly #buffer: Buffer;
  at: number;
  readonly end: number;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.#buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = at;
    this.end = end;
  }

  get done(): boolean { return this.at >= this.end; }

  /** Tags, lengths and small numbers. Throws where the value would not fit a double exactly. */
  varint(): number {
    const first = this.at < this.end ? this.#buffer[this.at]! : 128;
    if (first < 128) { this.at++; return first; }
    const value = this.int64();
    if (typeof value === "bigint" || value < 0) throw new ProtobufError(INTEGER_OVERFLOW);
    return value;
  }

  /** A bigint if a double would round it. Negative numbers take ten bytes. */
  int64(): number | bigint {
    let low = 0, high = 0, shift = 0;
    for (;;) {
      if (this.at >= this.end) throw new ProtobufError(UNEXPECTED_EOF);
      const byte = this.#buffer[this.at++]!;
      const bits = byte & 127;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) { low |= (bits & 15) << 28; high |= bits >> 4; }
      else if (shift < 64) high |= bits << (shift - 32);
      else throw new ProtobufError(INTEGER_OVERFLOW);
      if (byte < 128) break;
      shift += 7;
    }
    const value = (high | 0) * 4_294_967_296 + (low >>> 0);
    return Number.isSafeInteger(value) ? value : (BigInt(high | 0) << 32n) + BigInt(low >>> 0);
  }

  double(): number {
    const start = this.#advance(8);
    return this.#buffer.readDoubleLE(start);
  }

  float(): number {
    const start = this.#advance(4);
    return this.#buffer.readFloatLE(start);
  }

  text(): string {
    const length = this.#length();
    const start = this.#advance(length);
    return this.#buffer.toString("utf8", start, start + length);
  }

  /** A view, not a copy. */
  bytes(): Buffer {
    const length = this.#length();
    const start = this.#advance(length);
    return this.#buffer.subarray(start, start + length);
  }

  message(): WireReader {
    const length = this.#length();
    const start = this.#advance(length);
    return new WireReader(this.#buffer, start, start + length);
  }

  skip(wireType: number): void {
    if (wireType === VARINT) this.int64();
    else if (wireType === FIXED64) this.#advance(8);
    else if (wireType === FIXED32) this.#advance(4);
    else if (wireType === LENGTH_DELIMITED) this.#advance(this.#length());
    else if (wireType === GROUP_START) this.#skipGroup();
    else throw new ProtobufError(`proto: illegal wireType ${wireType}`);
  }

  /** Nobody writes groups any more. */
  #skipGroup(): void {
    for (let depth = 1; depth > 0;) {
      const wireType = this.varint() & 7;
      if (wireType === GROUP_START) depth++;
      else if (wireType === GROUP_END) depth--;
      else this.skip(wireType);
    }
  }

  #length(): number {
    const first = this.at < this.end ? this.#buffer[this.at]! : 128;
    if (first < 128) { this.at++; return first; }
    const length = this.int64();
    if (length < 0 || (typeof length === "bigint" && BigInt.asIntN(64, length + BigInt(this.at)) < 0n)) throw new ProtobufError(NEGATIVE_LENGTH);
    return Number(length);
  }

  #advance(length: number): number {
    const start = this.at;
    if (length > this.end - start) throw new ProtobufError(UNEXPECTED_EOF);
    this.at = start + length;
    return start;
  }
}

/** Of characters: so few are written one by one in less time than the engine is called. */
const SHORT_TEXT = 48;
const BYTES_AT_FIRST = 4096;
/** A buffer that one large message has made grow further is not kept for the next. */
const BYTES_KEPT_MAX = 256 * 1024;

/** How long a varint is. */
export function varintBytes(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) size++;
  return size;
}

/** Writes a varint at `at`, and returns where it ends. */
export function putVarint(bytes: Uint8Array, value: number, at: number): number {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[at++] = (rest % 128) | 128;
  bytes[at++] = rest;
  return at;
}

export class BackwardWriter {
  #buffer: Buffer;
  /** The first byte written; what is before it is free. */
  #at: number;

  constructor(bytesAtFirst: number = BYTES_AT_FIRST) {
    this.#buffer = Buffer.allocUnsafeSlow(bytesAtFirst);
    this.#at = bytesAtFirst;
  }

  /** Bytes written so far: note it before a nested message, and hand it to `close` after. */
  get length(): number { return this.#buffer.length - this.#at; }

  /** A copy of exactly what was written. */
  finish(): Uint8Array { return new Uint8Array(this.#buffer.subarray(this.#at)); }

  /** The same, and ready for the next message. */
  take(): Uint8Array {
    const written = this.finish();
    if (this.#buffer.length > BYTES_KEPT_MAX) this.#buffer = Buffer.allocUnsafeSlow(BYTES_AT_FIRST);
    this.#at = this.#buffer.length;
    return written;
  }

  /** Forgets what was written, if anything: a message that could not be finished. */
  clear(): void { this.#at = this.#buffer.length; }

  tag(field: number, wireType: number): void { this.varint(field * 8 + wireType); }

  /** Ends (that is, begins) the length-delimited field whose content was written since `lengthBefore`. */
  close(field: number, lengthBefore: number): void {
    this.varint(this.length - lengthBefore);
    this.tag(field, LENGTH_DELIMITED);
  }

  int64(value: number | bigint): void {
    if (typeof value === "number" && value >= 0) this.varint(value);
    else this.#bigVarint(BigInt.asUintN(64, BigInt(value)));
  }

  varint(value: number): void {
    if (value < 128) { this.#reserve(1); this.#buffer[--this.#at] = value; return; }
    let size = 1;
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) size++;
    this.#reserve(size);
    let at = (this.#at -= size);
    for (let rest = value; ; rest = Math.floor(rest / 128)) {
      if (rest < 128) { this.#buffer[at] = rest; return; }
      this.#buffer[at++] = (rest % 128) | 128;
    }
  }

  double(value: number): void {
    this.#reserve(8);
    this.#buffer.writeDoubleLE(value, (this.#at -= 8));
  }

  float(value: number): void {
    this.#reserve(4);
    this.#buffer.writeFloatLE(value, (this.#at -= 4));
  }

  text(value: string): void {
    if (value.length <= SHORT_TEXT && this.#ascii(value)) { this.varint(value.length); return; }
    const length = Buffer.byteLength(value);
    this.#reserve(length);
    this.#buffer.write(value, (this.#at -= length), length, "utf8");
    this.varint(length);
  }

  /** False: there is a character that takes more bytes, and nothing is written. */
  #ascii(value: string): boolean {
    const { length } = value;
    this.#reserve(length);
    const buffer = this.#buffer, start = this.#at - length;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code > 127) return false;
      buffer[start + i] = code;
    }
    this.#at = start;
    return true;
  }

  bytes(value: Uint8Array): void {
    this.raw(value);
    this.varint(value.length);
  }

  raw(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#buffer.set(value, (this.#at -= value.length));
  }

  #bigVarint(value: bigint): void {
    const groups: number[] = [];
    for (let rest = value; ; rest >>= 7n) {
      groups.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
      if (rest <= 127n) break;
    }
    this.raw(Uint8Array.from(groups));
  }

  #reserve(count: number): void {
    if (count <= this.#at) return;
    const used = this.length;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#buffer.length * 2, used + count));
    this.#buffer.copy(larger, larger.length - used, this.#at);
    this.#at = larger.length - used;
    this.#buffer = larger;
  }
}
