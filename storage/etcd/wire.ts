/**
 * Protocol Buffers (proto3), as much of it as etcd's messages need: integers up to 2^53, flags, bytes, strings, messages, lists of messages.
 *
 *   const putRequest = message({ key: bytes(1), value: bytes(2), lease: int(3) });
 *   putRequest.encode({ key, value })                // what is not given is not written
 *   type PutRequest = Decoded<typeof putRequest>     // what was not sent has the proto's default; a message that was not sent is undefined
 *
 * Fields nobody declared are skipped. Bytes are views of what was received, not copies.
 */
import { BackwardWriter, LENGTH_DELIMITED, VARINT, WireReader } from "../../core/protobuf/wire.ts";

interface Field<Read, Written = Read> {
  readonly number: number;
  readonly wire: number;
  readonly repeated: boolean;
  readonly initial: Read;
  write(out: BackwardWriter, value: Written): void;
  read(from: WireReader): unknown;
}

/** Few messages are longer than keys and values make them; those grow. */
const BYTES_AT_FIRST = 512;

// biome-ignore lint/suspicious/noExplicitAny: a field of whatever type
type Fields = Readonly<Record<string, Field<any, any>>>;
type ReadOf<F> = F extends Field<infer Read, infer _> ? Read : never;
type WrittenOf<F> = F extends Field<infer _, infer Written> ? Written : never;

export interface Message<Read, Written> {
  encode(value: Written): Buffer;
  /** Throws ProtobufError when the bytes end early or make no sense. */
  decode(bytes: Uint8Array): Read;
  /** The same within another message. */
  write(out: BackwardWriter, value: Written): void;
  read(from: WireReader): Read;
}

export type Decoded<M> = M extends Message<infer Read, infer _> ? Read : never;
export type Encodable<M> = M extends Message<infer _, infer Written> ? Written : never;

export function message<F extends Fields>(fields: F): Message<{ readonly [N in keyof F]: ReadOf<F[N]> }, { readonly [N in keyof F]?: WrittenOf<F[N]> | undefined }> {
  type Read = { readonly [N in keyof F]: ReadOf<F[N]> };
  const entries = Object.entries(fields);
  const lastFirst = entries.toReversed(); // as the writer goes
  const byNumber = new Map(entries.map(([name, field]) => [field.number, { name, field }]));

  function write(out: BackwardWriter, value: { readonly [N in keyof F]?: WrittenOf<F[N]> | undefined }): void {
    for (const [name, field] of lastFirst) {
      const content: unknown = value[name];
      if (content === undefined) continue;
      for (const item of field.repeated ? (content as readonly unknown[]).toReversed() : [content]) {
        field.write(out, item);
        out.tag(field.number, field.wire);
      }
    }
  }

  function read(from: WireReader): Read {
    const found: Record<string, unknown> = {};
    for (const [name, field] of entries) found[name] = field.repeated ? [] : field.initial;
    while (!from.done) {
      const tag = from.varint();
      const known = byNumber.get(Math.floor(tag / 8));
      if (!known || known.field.wire !== tag % 8) from.skip(tag % 8);
      else if (known.field.repeated) (found[known.name] as unknown[]).push(known.field.read(from));
      else found[known.name] = known.field.read(from);
    }
    return found as Read;
  }

  return {
    write, read,
    encode(value) {
      const out = new BackwardWriter(BYTES_AT_FIRST);
      write(out, value);
      return Buffer.from(out.finish().buffer); // its own, and no larger
    },
    decode: (bytes) => read(new WireReader(bytes)),
  };
}

/** Read beyond 2^53 the last digits are lost; nothing we read is that great. */
export function int(number: number): Field<number> {
  return { number, wire: VARINT, repeated: false, initial: 0, write: (out, value) => out.varint(whole(value)), read: (from) => Number(from.int64()) };
}

export function flag(number: number): Field<boolean> {
  return { number, wire: VARINT, repeated: false, initial: false, write: (out, value) => out.varint(value ? 1 : 0), read: (from) => from.int64() !== 0 };
}

export function bytes(number: number): Field<Buffer, Uint8Array> {
  return { number, wire: LENGTH_DELIMITED, repeated: false, initial: Buffer.alloc(0), write: (out, value) => out.bytes(value), read: (from) => from.bytes() };
}

export function string(number: number): Field<string> {
  return { number, wire: LENGTH_DELIMITED, repeated: false, initial: "", write: (out, value) => out.text(value), read: (from) => from.text() };
}

export function one<Read, Written>(number: number, type: Message<Read, Written>): Field<Read | undefined, Written> {
  return { ...nested(number, type), repeated: false, initial: undefined };
}

export function many<Read, Written>(number: number, type: Message<Read, Written>): Field<readonly Read[], readonly Written[]> {
  return { ...nested(number, type as Message<Read, unknown>), repeated: true, initial: [] };
}

function nested<Read, Written>(number: number, type: Message<Read, Written>): Pick<Field<unknown, Written>, "number" | "wire" | "write" | "read"> {
  return {
    number, wire: LENGTH_DELIMITED, read: (from) => type.read(from.message()),
    write(out, value) {
      const before = out.length;
      type.write(out, value);
      out.varint(out.length - before);
    },
  };
}

function whole(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`no number for etcd: ${value}`);
  return value;
}
