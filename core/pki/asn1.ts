/**
 * DER, as far as certificates need it: values are written inside out, and read one level at a time.
 *
 *   sequence(oid("1.2.840.10045.4.3.2"))            → bytes
 *   const [version, serial] = readChildren(readOne(bytes))
 *
 * The reader takes DER only: definite, shortest lengths, and nothing beyond the end. It throws Asn1Error on anything else; it never
 * descends by itself, so a hostile input cannot make it recurse.
 *
 * Standard: ITU-T X.690
 */
export class Asn1Error extends Error { override readonly name = "Asn1Error"; }

export const TAG = {
  boolean: 0x01, integer: 0x02, bitString: 0x03, octetString: 0x04, null: 0x05, oid: 0x06, utf8String: 0x0c, printableString: 0x13, teletexString: 0x14,
  ia5String: 0x16, utcTime: 0x17, generalizedTime: 0x18, bmpString: 0x1e, sequence: 0x30, set: 0x31,
} as const;

/** Context-specific tag [n]; `constructed` when it holds further values. */
export function contextTag(n: number, constructed = true): number { return (constructed ? 0xa0 : 0x80) | n; }

export function tlv(tag: number, ...content: readonly Uint8Array[]): Uint8Array {
  const length = content.reduce((sum, part) => sum + part.length, 0);
  return concat([Uint8Array.of(tag), lengthBytes(length), ...content]);
}

function lengthBytes(length: number): Uint8Array {
  if (length < 0x80) return Uint8Array.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Uint8Array.of(0x80 | bytes.length, ...bytes);
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) { all.set(part, at); at += part.length; }
  return all;
}

export function sequence(...content: readonly Uint8Array[]): Uint8Array { return tlv(TAG.sequence, ...content); }

/** A SET OF: DER wants its members sorted. */
export function setOf(...content: readonly Uint8Array[]): Uint8Array { return tlv(TAG.set, ...[...content].sort(compareBytes)); }

function compareBytes(a: Uint8Array, b: Uint8Array): number { return Buffer.compare(a, b); }

/** A non-negative integer given as big-endian bytes. */
export function integer(value: Uint8Array | number): Uint8Array {
  const bytes = typeof value === "number" ? Uint8Array.of(value) : value;
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const shortest = bytes.subarray(start);
  return tlv(TAG.integer, ...((shortest[0] ?? 0) >= 0x80 ? [Uint8Array.of(0), shortest] : [shortest]));
}

export function oid(dotted: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return tlv(TAG.oid, Uint8Array.from([first * 40 + second, ...rest].flatMap(base128)));
}

function base128(value: number): number[] {
  const digits = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) digits.unshift(0x80 | rest % 128);
  return digits;
}

export function boolean(value: boolean): Uint8Array { return tlv(TAG.boolean, Uint8Array.of(value ? 0xff : 0)); }
export function octetString(content: Uint8Array): Uint8Array { return tlv(TAG.octetString, content); }
export function bitString(content: Uint8Array, unusedBits = 0): Uint8Array { return tlv(TAG.bitString, Uint8Array.of(unusedBits), content); }
export function text(tag: number, value: string): Uint8Array { return tlv(tag, Buffer.from(value, "utf8")); }

/** UTCTime until 2049, GeneralizedTime from then on, as RFC 5280 wants it. Whole seconds. */
export function time(ms: number): Uint8Array {
  const digits = new Date(ms).toISOString().replace(/\.\d+Z$/, "Z").replace(/[-:T]/g, ""); // YYYYMMDDHHMMSSZ
  const year = Number(digits.slice(0, 4));
  return year >= 1950 && year < 2050 ? text(TAG.utcTime, digits.slice(2)) : text(TAG.generalizedTime, digits);
}

/** One value: its tag, what it holds, and itself with tag and length. Views into the input, not copies. */
export interface Asn1 { readonly tag: number; readonly content: Uint8Array; readonly raw: Uint8Array }

/** The one value these bytes are. */
export function readOne(bytes: Uint8Array): Asn1 {
  const value = readAt(bytes, 0);
  if (value.raw.length !== bytes.length) throw new Asn1Error("trailing data");
  return value;
}

/** What a constructed value holds. */
export function readChildren(value: Asn1): Asn1[] {
  const children: Asn1[] = [];
  for (let at = 0; at < value.content.length;) {
    const next = readAt(value.content, at);
    children.push(next);
    at += next.raw.length;
  }
  return children;
}

function readAt(bytes: Uint8Array, start: number): Asn1 {
  const tag = bytes[start];
  let length = bytes[start + 1];
  if (tag === undefined || length === undefined) throw new Asn1Error("asn1: syntax error: data truncated");
  if ((tag & 0x1f) === 0x1f) throw new Asn1Error("tags above 30 are not used here");
  let at = start + 2;
  if (length >= 0x80) {
    const count = length & 0x7f;
    if (count === 0 || count > 4) throw new Asn1Error("length is indefinite or too long");
    length = 0;
    for (const byte of bytes.subarray(at, at + count)) length = length * 256 + byte;
    at += count;
    if (length < 0x80 || (count > 1 && length < 256 ** (count - 1))) throw new Asn1Error("length is not the shortest");
  }
  if (at + length > bytes.length) throw new Asn1Error("asn1: syntax error: data truncated");
  return { tag, content: bytes.subarray(at, at + length), raw: bytes.subarray(start, at + length) };
}

/** Throws unless the value has that tag. */
export function expectTag(value: Asn1 | undefined, tag: number, what: string): Asn1 {
  if (value?.tag !== tag) throw new Asn1Error(`${what}: tag 0x${tag.toString(16)} expected`);
  return value;
}

export function readOid(value: Asn1 | undefined): string {
  const { content } = expectTag(value, TAG.oid, "object identifier");
  const parts: number[] = [];
  let part = 0;
  for (const byte of content) {
    part = part * 128 + (byte & 0x7f);
    if (part > Number.MAX_SAFE_INTEGER / 128) throw new Asn1Error("object identifier: part too large");
    if (byte < 0x80) { parts.push(part); part = 0; }
  }
  const first = parts.shift();
  if (first === undefined || content.at(-1)! >= 0x80) throw new Asn1Error("object identifier is cut short");
  const root = Math.min(2, Math.floor(first / 40));
  return [root, first - root * 40, ...parts].join(".");
}

/** Of a bit string that is whole bytes, such as a key or a signature. */
export function readBitString(value: Asn1 | undefined): Uint8Array {
  const { content } = expectTag(value, TAG.bitString, "bit string");
  if (content[0] !== 0) throw new Asn1Error("bit string: whole bytes expected");
  return content.subarray(1);
}

export function readString({ tag, content }: Asn1): string {
  if (tag === TAG.utf8String || tag === TAG.printableString || tag === TAG.ia5String) return Buffer.from(content).toString("utf8");
  if (tag === TAG.teletexString) return Buffer.from(content).toString("latin1");
  if (tag === TAG.bmpString && content.length % 2 === 0) return Buffer.from(content).swap16().toString("utf16le");
  throw new Asn1Error(`tag 0x${tag.toString(16)} is no string`);
}

/** Milliseconds since the epoch. */
export function readTime(value: Asn1 | undefined): number {
  const digits = value && (value.tag === TAG.utcTime || value.tag === TAG.generalizedTime) ? Buffer.from(value.content).toString("latin1") : "";
  const parts = (value?.tag === TAG.utcTime ? /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/ : /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/).exec(digits);
  if (!parts) throw new Asn1Error("time expected");
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(1).map(Number);
  const fullYear = value?.tag === TAG.utcTime ? year + (year < 50 ? 2000 : 1900) : year;
  const ms = new Date(0).setUTCFullYear(fullYear, month - 1, day) + ((hour * 60 + minute) * 60 + second) * 1000;
  if (Number.isNaN(ms) || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 59) throw new Asn1Error("time out of range");
  return ms;
}
