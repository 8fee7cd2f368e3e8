/**
 * application/vnd.kubernetes.protobuf: objects as the API server's generated Go code writes them, byte for byte.
 *
 *   "k8s\0" · Unknown { typeMeta { apiVersion, kind }, raw, contentEncoding, contentType }, where raw is the object's own message
 *
 * Driven by the facts: no generated code. Fields go out in ascending order; those that are not pointers always, zero or not; map entries by key.
 * Decoding yields canonical objects (see schema/canonical.ts); unknown fields are skipped, as Go skips them.
 */
import { formatApiVersion, gvkOf, type GroupVersionKind } from "../meta/gvk.ts";
import { canonical } from "../schema/canonical.ts";
import { builtInFacts, type Facts, type FieldInfo, type Scalar, type SpecialType, type StructType, type Type } from "../schema/facts.ts";
import { FieldSets } from "./field-sets.ts";
import { setKey, type JsonObject, type JsonValue } from "./json-document.ts";
import { assemble, type Part, type Piece } from "./pieces.ts";
import { isPlainSpecial, readRawJson, readSpecial, writeSpecial } from "./protobuf-special.ts";
import { BackwardWriter, FIXED64, GROUP_END, LENGTH_DELIMITED, ProtobufError, putVarint, VARINT, varintBytes, WireReader } from "../../protobuf/wire.ts";

/** What precedes every message: "k8s" and a zero. */
const PREFIX = Uint8Array.of(0x6b, 0x38, 0x73, 0x00);
/** Messages in messages. A schema in a schema is three of them. */
const DEPTH_MAX = 1000;
/** Named string slices that are messages of their own: { repeated string items = 1 }. */
const WRAPPED = new Set(["ExtraValue", "Verbs"]);

export interface Envelope { readonly apiVersion: string; readonly kind: string; readonly raw: Uint8Array }

/** How one field is written: what to do with one value, and whether there are many. */
interface Slot { readonly field: FieldInfo; readonly number: number; readonly many: "one" | "list" | "map"; readonly type: Type; readonly wrapped: boolean }
interface Plan { readonly ascending: readonly (Slot | undefined)[]; readonly descending: readonly Slot[] }

export class ProtobufCodec {
  readonly #facts: Facts;
  readonly #plans = new Map<StructType, Plan>();
  /** For one message after another: none is written within another. */
  readonly #writer = new BackwardWriter();
  readonly #sets = new FieldSets();

  constructor(facts: Facts) { this.#facts = facts; }

  /** The complete body of a response. Throws ProtobufError for a kind that has no message. `shown`: what its envelope says it is, if not what it is. */
  encode(object: { readonly apiVersion: string; readonly kind: string }, shown = gvkOf(object)): Uint8Array {
    return assemble(envelopePieces(shown, this.encodeMessage(this.#typeOf(gvkOf(object)), object)));
  }

  /** The object's own message. Messages of items make up a list: see listPieces. */
  encodeMessage(type: StructType, object: object): Uint8Array {
    const writer = this.#writer;
    writer.clear();
    this.#writeStruct(writer, type, object as JsonObject);
    return writer.take();
  }

  /** A list out of the messages of its items, in pieces, so that a message encoded once serves every list and is not copied to make one. */
  listPieces({ apiVersion, kind, metadata }: { readonly apiVersion: string; readonly kind: string; readonly metadata: object }, items: readonly Uint8Array[]): readonly Piece[] {
    const meta = this.encodeMessage(this.#facts.structNamed("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")!, metadata);
    let length = 1 + varintBytes(meta.length) + meta.length;
    for (const item of items) length += 1 + varintBytes(item.length) + item.length;
    const { head, tail } = envelopeAround(gvkOf({ apiVersion, kind }), length);
    const marks = Buffer.allocUnsafeSlow((items.length + 1) * MARK_BYTES_MAX);
    let at = 0;
    const mark = (tag: number, message: Uint8Array): Part => {
      const start = at;
      marks[at] = tag;
      at = putVarint(marks, message.length, at + 1);
      return { bytes: marks, start, end: at };
    };
    const pieces: Piece[] = [head, mark(LIST_METADATA, meta), meta];
    for (const item of items) pieces.push(mark(LIST_ITEM, item), item);
    pieces.push(tail);
    return pieces;
  }

  /** The object in the envelope, with apiVersion and kind set from it. */
  decode(bytes: Uint8Array): JsonObject {
    const { apiVersion, kind, raw } = unwrapEnvelope(bytes);
    return this.decodeMessage(this.#typeOf(gvkOf({ apiVersion, kind })), raw, { kind, apiVersion });
  }

  /** Canonical. Kind and apiVersion are not part of the message, so the caller gives them, or goes without. */
  decodeMessage(type: StructType, bytes: Uint8Array, typeMeta: { readonly kind?: string; readonly apiVersion?: string } = {}): JsonObject {
    return canonical(type, this.readMessage(type, bytes, typeMeta)).object;
  }

  /** As it was sent: whoever makes it canonical drops what does not fit. */
  readMessage(type: StructType, bytes: Uint8Array, typeMeta: { readonly kind?: string; readonly apiVersion?: string } = {}): JsonObject {
    return this.#readStruct(new WireReader(bytes), type, { ...typeMeta }, 0);
  }

  #typeOf(gvk: GroupVersionKind): StructType {
    const type = this.#facts.typeOf(gvk);
    if (!type) throw new ProtobufError(`no kind "${gvk.kind}" is registered for version "${formatApiVersion(gvk)}"`);
    return type;
  }

  #planOf(type: StructType): Plan {
    const known = this.#plans.get(type);
    if (known) return known;
    const slots = type.members.filter((member) => member.protobuf !== undefined).map(slotOf);
    const ascending: Slot[] = [];
    for (const slot of slots) ascending[slot.number] = slot;
    const plan = { ascending, descending: slots.sort((a, b) => b.number - a.number) };
    this.#plans.set(type, plan);
    return plan;
  }

  #writeStruct(writer: BackwardWriter, type: StructType, object: JsonObject): void {
    for (const slot of this.#planOf(type).descending) {
      const { field, number } = slot;
      const value: unknown = field.inline ? object : object[field.name];
      const given = value !== undefined && value !== null;
      if (slot.many === "map") {
        if (given) this.#writeMap(writer, slot, value as JsonObject);
      } else if (slot.many === "list") {
        if (given) for (let i = (value as unknown[]).length - 1; i >= 0; i--) this.#writeOne(writer, slot, (value as unknown[])[i]);
      } else if (given || !skipsAbsent(slot)) this.#writeOne(writer, slot, value, number);
    }
  }

  #writeMap(writer: BackwardWriter, slot: Slot, map: JsonObject): void {
    for (const key of Object.keys(map).sort().reverse()) {
      const before = writer.length;
      if (map[key] !== null || !isBytes(slot.type)) this.#writeOne(writer, slot, map[key], 2);
      writer.text(key); writer.tag(1, LENGTH_DELIMITED);
      writer.close(slot.number, before);
    }
  }

  #writeOne(writer: BackwardWriter, { type, wrapped, number: ownNumber }: Slot, value: unknown, number = ownNumber): void {
    if (type.kind === "scalar" && !wrapped) {
      writer.tag(number, writeScalar(writer, type.scalar, value));
      return;
    }
    const before = writer.length;
    if (wrapped) for (const item of [...((value ?? []) as string[])].reverse()) { writer.text(item); writer.tag(1, LENGTH_DELIMITED); }
    else if (type.kind === "struct") this.#writeStruct(writer, type, (value ?? {}) as JsonObject);
    else if (type.kind === "special") this.#writeSpecial(writer, type, value);
    writer.close(number, before);
  }

  #writeSpecial(writer: BackwardWriter, { special, schema }: SpecialType, value: unknown): void {
    if (isPlainSpecial(special)) { writeSpecial(writer, special, special === "fieldsV1" && isObject(value) ? this.#sets.encode(value) : value); return; }
    const nested = (number: number, item: unknown): void => {
      const before = writer.length;
      this.#writeStruct(writer, schema!, item as JsonObject);
      writer.close(number, before);
    };
    const isSchema = typeof value === "object" && value !== null && !Array.isArray(value);
    if (special === "schemaOrBool") {
      if (isSchema) nested(2, value);
      writer.varint(isSchema || value === true ? 1 : 0); writer.tag(1, VARINT);
    } else if (isSchema) nested(1, value);
    else if (Array.isArray(value)) {
      for (const item of value.toReversed() as unknown[]) {
        if (special === "schemaOrArray") nested(2, item);
        else { writer.text(item as string); writer.tag(2, LENGTH_DELIMITED); }
      }
    }
  }

  #readStruct(reader: WireReader, type: StructType, into: JsonObject, depth: number): JsonObject {
    if (depth > DEPTH_MAX) throw new ProtobufError("proto: nesting too deep");
    const { ascending } = this.#planOf(type);
    while (!reader.done) {
      const tag = reader.varint();
      const slot = ascending[Math.floor(tag / 8)];
      if (!slot) { skipField(reader, tag, type.goName); continue; }
      this.#readField(reader, slot, tag & 7, into, depth);
    }
    return into;
  }

  #readField(reader: WireReader, slot: Slot, wireType: number, into: JsonObject, depth: number): void {
    const { name, inline } = slot.field;
    if (inline) {
      expectWire(wireType, LENGTH_DELIMITED, slot);
      this.#readStruct(reader.message(), slot.type as StructType, into, depth + 1);
    } else if (slot.many === "map") {
      expectWire(wireType, LENGTH_DELIMITED, slot);
      this.#readEntry(reader.message(), slot, (into[name] ??= {}) as JsonObject, depth);
    } else if (slot.many === "list") {
      const list = (into[name] ??= []) as JsonValue[];
      const packed = wireType === LENGTH_DELIMITED && slot.type.kind === "scalar" && wireTypeOf(slot.type.scalar) === VARINT;
      if (!packed) list.push(this.#readOne(reader, slot, wireType, depth));
      else for (const values = reader.message(); !values.done;) list.push(this.#readOne(values, slot, VARINT, depth));
    } else into[name] = this.#readOne(reader, slot, wireType, depth);
  }

  #readEntry(entry: WireReader, slot: Slot, map: JsonObject, depth: number): void {
    let key = "";
    let value: JsonValue | undefined;
    while (!entry.done) {
      const tag = entry.varint();
      if (tag === 10) key = entry.text();
      else if (Math.floor(tag / 8) === 2) value = this.#readOne(entry, slot, tag & 7, depth);
      else entry.skip(tag & 7);
    }
    setKey(map, key, value ?? (isBytes(slot.type) ? "" : null)); // null becomes the zero value when the object is made canonical
  }

  #readOne(reader: WireReader, slot: Slot, wireType: number, depth: number): JsonValue {
    const { type } = slot;
    expectWire(wireType, type.kind === "scalar" && !slot.wrapped ? wireTypeOf(type.scalar) : LENGTH_DELIMITED, slot);
    if (slot.wrapped) return readStrings(reader.message());
    if (type.kind === "scalar") return readScalar(reader, type.scalar);
    if (type.kind === "struct") return this.#readStruct(reader.message(), type, {}, depth + 1);
    if (type.kind === "special") return this.#readSpecial(reader.message(), type, depth);
    throw new ProtobufError(`proto: field ${slot.field.name} has no message`);
  }

  #readSpecial(reader: WireReader, { special, schema }: SpecialType, depth: number): JsonValue {
    if (isPlainSpecial(special)) return readSpecial(reader, special, (bytes) => hasPrefix(bytes) ? this.decode(bytes) : special === "fieldsV1" ? this.#sets.decode(bytes) : readRawJson(bytes));
    let allows = false;
    let single: JsonValue | undefined;
    const many: JsonValue[] = [];
    while (!reader.done) {
      const tag = reader.varint();
      const field = Math.floor(tag / 8);
      if (tag === 8) allows = reader.int64() !== 0;
      else if ((tag & 7) !== LENGTH_DELIMITED || field > 2) reader.skip(tag & 7);
      else if (field === 2 && special === "schemaOrStringArray") many.push(reader.text());
      else {
        const item = this.#readStruct(reader.message(), schema!, {}, depth + 1);
        if (field === 2 && special === "schemaOrArray") many.push(item);
        else single = item;
      }
    }
    if (special === "schemaOrBool") return single ?? allows;
    return many.length > 0 ? many : single ?? null;
  }
}

function slotOf(field: FieldInfo): Slot {
  const { type } = field;
  const wraps = (candidate: Type): boolean => candidate.kind === "list" && candidate.named !== undefined && WRAPPED.has(candidate.named.goName);
  const number = field.protobuf!;
  if (type.kind === "map") return { field, number, many: "map", type: type.values, wrapped: wraps(type.values) };
  if (type.kind === "list" && !wraps(type)) return { field, number, many: "list", type: type.items, wrapped: false };
  return { field, number, many: "one", type, wrapped: wraps(type) };
}

/** Pointers and slices are written only if they are there; everything else always. */
function skipsAbsent({ field, type, wrapped }: Slot): boolean { return field.pointer || wrapped || isBytes(type); }

function isBytes(type: Type): boolean { return type.kind === "scalar" && type.scalar === "bytes"; }

function wireTypeOf(scalar: Scalar): number {
  return scalar === "string" || scalar === "bytes" ? LENGTH_DELIMITED : scalar === "float64" ? FIXED64 : VARINT;
}

/** Writes the value and returns the wire type its tag needs. */
function writeScalar(writer: BackwardWriter, scalar: Scalar, value: unknown): number {
  switch (scalar) {
    case "string": writer.text((value ?? "") as string); break;
    case "bytes": writer.bytes(Buffer.from((value ?? "") as string, "base64")); break;
    case "bool": writer.varint(value === true ? 1 : 0); break;
    case "float64": writer.double(Number(value ?? 0)); break;
    case "int32": case "int64": writer.int64((value ?? 0) as number | bigint); break;
  }
  return wireTypeOf(scalar);
}

function readScalar(reader: WireReader, scalar: Scalar): JsonValue {
  switch (scalar) {
    case "string": return reader.text();
    case "bytes": return reader.bytes().toString("base64");
    case "bool": return reader.int64() !== 0;
    case "float64": return reader.double();
    case "int32": return Number(BigInt.asIntN(32, BigInt(reader.int64())));
    case "int64": return reader.int64();
  }
}

function readStrings(reader: WireReader): string[] {
  const items: string[] = [];
  while (!reader.done) {
    const tag = reader.varint();
    if (tag === 10) items.push(reader.text());
    else reader.skip(tag & 7);
  }
  return items;
}

function expectWire(actual: number, expected: number, { field }: Slot): void {
  if (actual !== expected) throw new ProtobufError(`proto: wrong wireType = ${actual} for field ${goFieldName(field)}`);
}

/** Of a struct that is embedded: what it is. */
function goFieldName({ inline, type, protobufName }: FieldInfo): string {
  if (type.kind === "struct" && (inline || type.goName === "ObjectMeta" || type.goName === "ListMeta")) return type.goName;
  return protobufName[0]!.toUpperCase() + protobufName.slice(1);
}

function isObject(value: unknown): value is object { return typeof value === "object" && value !== null; }

function hasPrefix(bytes: Uint8Array): boolean { return bytes[0] === PREFIX[0] && bytes.length >= PREFIX.length && PREFIX.every((byte, i) => bytes[i] === byte); }

/** A message of kind `gvk` as a response body, in pieces: it is not copied to make one. */
export function envelopePieces(gvk: GroupVersionKind, raw: Uint8Array): readonly Uint8Array[] {
  const { head, tail } = envelopeAround(gvk, raw.length);
  return [head, raw, tail];
}

/** The first field of a message, tag and all; of an object's that is its metadata. A copy: a view would hold the whole. */
export function firstField(message: Uint8Array): Uint8Array {
  const reader = new WireReader(message);
  reader.skip(reader.varint() & 7);
  return message.slice(0, reader.at);
}

/** contentType and contentEncoding, both empty. */
const ENVELOPE_TAIL = Uint8Array.of(3 * 8 + LENGTH_DELIMITED, 0, 4 * 8 + LENGTH_DELIMITED, 0);
/** A tag of one byte, and a length of up to five: no message is longer than 4 GB. */
const MARK_BYTES_MAX = 6;
const LIST_METADATA = 1 * 8 + LENGTH_DELIMITED, LIST_ITEM = 2 * 8 + LENGTH_DELIMITED;

/** What comes before and after a message of so many bytes. */
function envelopeAround(gvk: GroupVersionKind, length: number): { readonly head: Uint8Array; readonly tail: Uint8Array } {
  const typeMeta = delimited(1, formatApiVersion(gvk)) + delimited(2, gvk.kind);
  return { head: Buffer.from(`k8s\0${delimited(1, typeMeta)}${String.fromCharCode(2 * 8 + LENGTH_DELIMITED)}${varintText(length)}`, "latin1"), tail: ENVELOPE_TAIL };
}

/** A length-delimited field, a character for each byte. Kinds and versions are ASCII. */
function delimited(number: number, content: string): string { return String.fromCharCode(number * 8 + LENGTH_DELIMITED) + varintText(content.length) + content; }

function varintText(value: number): string { return value < 128 ? String.fromCharCode(value) : String.fromCharCode((value % 128) | 128) + varintText(Math.floor(value / 128)); }

/** Throws ProtobufError with the API server's messages. `raw` is a view of `bytes`. */
export function unwrapEnvelope(bytes: Uint8Array): Envelope {
  if (bytes.length === 0) throw new ProtobufError("empty data");
  if (!hasPrefix(bytes)) throw new ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  if (bytes.length === PREFIX.length) throw new ProtobufError("empty body");
  const reader = new WireReader(bytes, PREFIX.length);
  let apiVersion = "", kind = "";
  let raw: Uint8Array = new Uint8Array();
  while (!reader.done) {
    const tag = reader.varint();
    if (tag === 10) {
      for (const meta = reader.message(); !meta.done;) {
        const metaTag = meta.varint();
        if (metaTag === 10) apiVersion = meta.text();
        else if (metaTag === 18) kind = meta.text();
        else skipField(meta, metaTag, "TypeMeta", TYPE_META_FIELDS);
      }
    } else if (tag === 18) raw = reader.bytes();
    else if (tag === 26 || tag === 34) reader.bytes();
    else skipField(reader, tag, "Unknown", ENVELOPE_FIELDS);
  }
  return { apiVersion, kind, raw };
}

/** By number, all of them length-delimited. */
const ENVELOPE_FIELDS = [undefined, "TypeMeta", "Raw", "ContentEncoding", "ContentType"], TYPE_META_FIELDS = [undefined, "APIVersion", "Kind"];

/** One that the message does not have, or not in this form. `known`: the names of those that it has. */
function skipField(reader: WireReader, tag: number, message: string, known: readonly (string | undefined)[] = []): void {
  const number = Math.floor(tag / 8), wireType = tag & 7;
  if (wireType === GROUP_END) throw new ProtobufError(`proto: ${message}: wiretype end group for non-group`);
  if (number === 0) throw new ProtobufError(`proto: ${message}: illegal tag 0 (wire type ${wireType})`);
  if (known[number] !== undefined) throw new ProtobufError(`proto: wrong wireType = ${wireType} for field ${known[number]}`);
  reader.skip(wireType);
}

/** The codec of the built-in API. */
export const protobufCodec: ProtobufCodec = new ProtobufCodec(builtInFacts);
