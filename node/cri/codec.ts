/**
 * Protocol Buffers (proto3) for the messages of CRI, driven by the table in facts.ts.
 *
 * A message is a plain object with the proto's field names. What is absent has the proto's default (0, "", false, empty, the enum's first
 * value) and what has the default is absent. 64-bit integers are numbers: beyond 2^53 (nanosecond timestamps) they lose their last digits.
 * Fields nobody knows are skipped.
 */
import { nest, textField } from "../../core/protobuf/fields.ts";
import { BackwardWriter, FIXED32, FIXED64, LENGTH_DELIMITED, VARINT, WireReader } from "../../core/protobuf/wire.ts";
import type { Field, FieldType, Message, Scalar } from "./facts.ts";

type Plain = Record<string, unknown>;

export function encode(message: Message, value: object): Buffer {
  const out = new BackwardWriter();
  writeMessage(out, message, value as Plain);
  return Buffer.from(out.finish().buffer); // its own, and no larger
}

/** Throws ProtobufError when the bytes end early or make no sense. */
export function decode(message: Message, bytes: Uint8Array): Plain { return readMessage(new WireReader(bytes), message); }

/** With what is absent because it has the proto's default, for people, to whom nothing says nothing: not of lists, maps and messages. */
export function withDefaults(message: Message, value: object): Plain {
  return Object.fromEntries(message.fields.flatMap(({ name, repeated, type }) => {
    const content = (value as Plain)[name];
    if (content !== undefined) return [[name, repeated ? (content as readonly unknown[]).map((item) => defaulted(type, item)) : defaulted(type, content)]];
    const standard = repeated ? undefined : defaultOf(type);
    return standard === undefined ? [] : [[name, standard]];
  }));
}

function defaulted(type: FieldType, content: unknown): unknown {
  if (type.kind === "message") return withDefaults(type.message, content as object);
  return type.kind === "map" ? Object.fromEntries(Object.entries(content as Plain).map(([key, one]) => [key, defaulted(type.value, one)])) : content;
}

function defaultOf(type: FieldType): unknown {
  if (type.kind === "enum") return type.values.names.get(0);
  if (type.kind !== "scalar") return undefined;
  return type.scalar === "string" || type.scalar === "bytes" ? "" : type.scalar === "bool" ? false : 0;
}

/** The last field first, as the writer goes. */
function writeMessage(out: BackwardWriter, message: Message, value: Plain): void {
  for (const field of message.fields.toReversed()) {
    const content = value[field.name];
    if (content === undefined || content === null) continue;
    if (field.type.kind === "map") writeMap(out, field, field.type.value, content as Plain);
    else if (!field.repeated) writeField(out, field.number, field.type, content, false);
    else if (isPacked(field.type)) writePacked(out, field, content as readonly unknown[]);
    else for (const item of (content as readonly unknown[]).toReversed()) writeField(out, field.number, field.type, item, true);
  }
}

function writeMap(out: BackwardWriter, field: Field, type: FieldType, entries: Plain): void {
  for (const [key, content] of Object.entries(entries).toReversed())
    nest(out, field.number, () => {
      writeField(out, 2, type, content, true);
      textField(out, 1, key);
    });
}

function writePacked(out: BackwardWriter, field: Field, items: readonly unknown[]): void {
  if (items.length === 0) return;
  nest(out, field.number, () => {
    for (const item of items.toReversed()) out.int64(numberOf(field.type, item));
  });
}

/** `always`: elements are written although they have the default. */
function writeField(out: BackwardWriter, number: number, type: FieldType, content: unknown, always: boolean): void {
  if (type.kind === "message") {
    nest(out, number, () => writeMessage(out, type.message, content as Plain));
    return;
  }
  const scalar = type.kind === "scalar" ? type.scalar : "int32";
  if (scalar === "string" || scalar === "bytes") {
    if ((content as string | Uint8Array).length === 0 && !always) return;
    if (scalar === "string") out.text(content as string);
    else out.bytes(content as Uint8Array);
    out.tag(number, LENGTH_DELIMITED);
    return;
  }
  const value = numberOf(type, content);
  if (value === 0 && !always) return;
  if (scalar === "double") out.double(value);
  else if (scalar === "float") out.float(value);
  else out.int64(value);
  out.tag(number, scalar === "double" ? FIXED64 : scalar === "float" ? FIXED32 : VARINT);
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

function readMessage(bytes: WireReader, message: Message): Plain {
  const value: Plain = {};
  while (!bytes.done) {
    const tag = bytes.varint();
    const field = message.byNumber.get(Math.floor(tag / 8));
    const wire = tag % 8;
    if (!field) {
      bytes.skip(wire);
      continue;
    }
    if (field.type.kind === "map") readMapEntry(bytes.message(), field.type.value, (value[field.name] ??= {}) as Plain);
    else if (!field.repeated) value[field.name] = readField(bytes, field.type);
    else {
      const items = (value[field.name] ??= []) as unknown[];
      if (wire === LENGTH_DELIMITED && isPacked(field.type)) for (const packed = bytes.message(); !packed.done; ) items.push(readField(packed, field.type));
      else items.push(readField(bytes, field.type));
    }
  }
  return value;
}

function readMapEntry(entry: WireReader, type: FieldType, into: Plain): void {
  let key = "";
  let content: unknown = type.kind === "message" ? {} : "";
  while (!entry.done) {
    const tag = entry.varint();
    if (tag >> 3 === 1) key = entry.text();
    else if (tag >> 3 === 2) content = readField(entry, type);
    else entry.skip(tag % 8);
  }
  Object.defineProperty(into, key, { value: content, enumerable: true, writable: true, configurable: true }); // a key may be __proto__
}

function readField(bytes: WireReader, type: FieldType): unknown {
  if (type.kind === "message") return readMessage(bytes.message(), type.message);
  if (type.kind === "enum") {
    const number = bytes.varint();
    return type.values.names.get(number) ?? String(number); // a value newer than our table
  }
  if (type.kind === "map") throw new RangeError("a map of maps");
  return readScalar(bytes, type.scalar);
}

function readScalar(bytes: WireReader, scalar: Scalar): unknown {
  switch (scalar) {
    case "string": return bytes.text();
    case "bytes": return new Uint8Array(bytes.bytes());
    case "double": return bytes.double();
    case "float": return bytes.float();
    case "bool": return bytes.int64() !== 0;
    case "int32": case "int64": return Number(bytes.int64());
    case "uint32": case "uint64": return unsigned(bytes.int64());
  }
}

function unsigned(value: number | bigint): number { return value < 0 ? Number(BigInt.asUintN(64, BigInt(value))) : Number(value); }
