/**
 * Protocol Buffers (proto3), as much of it as etcd's messages need: integers up to 2^53, flags, bytes, strings, messages, lists of messages.
 *
 *   const putRequest = message({ key: bytes(1), value: bytes(2), lease: int(3) });
 *   putRequest.encode({ key, value })                // what is not given is not written
 *   type PutRequest = Decoded<typeof putRequest>     // what was not sent has the proto's default; a message that was not sent is undefined
 *
 * Fields nobody declared are skipped. Bytes are views of what was received, not copies.
 *
 * API: https://protobuf.dev/programming-guides/encoding/
 */
const VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5;

interface Field<Read, Written = Read> {
  readonly number: number;
  readonly wire: number;
  readonly repeated: boolean;
  readonly initial: Read;
  write(out: Writer, value: Written): void;
  read(from: Reader): unknown;
}

// biome-ignore lint/suspicious/noExplicitAny: a field of whatever type
type Fields = Readonly<Record<string, Field<any, any>>>;
type ReadOf<F> = F extends Field<infer Read, infer _> ? Read : never;
type WrittenOf<F> = F extends Field<infer _, infer Written> ? Written : never;

export interface Message<Read, Written> {
  encode(value: Written): Buffer;
  /** Throws RangeError when the bytes end early or make no sense. */
  decode(bytes: Uint8Array): Read;
}

export type Decoded<M> = M extends Message<infer Read, infer _> ? Read : never;
export type Encodable<M> = M extends Message<infer _, infer Written> ? Written : never;

export function message<F extends Fields>(fields: F): Message<{ readonly [N in keyof F]: ReadOf<F[N]> }, { readonly [N in keyof F]?: WrittenOf<F[N]> | undefined }> {
  type Read = { readonly [N in keyof F]: ReadOf<F[N]> };
  const entries = Object.entries(fields);
  const byNumber = new Map(entries.map(([name, field]) => [field.number, { name, field }]));
  return {
    encode(value) {
      const out = new Writer();
      for (const [name, field] of entries) {
        const content: unknown = value[name];
        if (content === undefined) continue;
        for (const item of field.repeated ? (content as readonly unknown[]) : [content]) {
          out.varint(field.number * 8 + field.wire);
          field.write(out, item);
        }
      }
      return out.finish();
    },
    decode(bytes) {
      const from = new Reader(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      const read: Record<string, unknown> = {};
      for (const [name, field] of entries) read[name] = field.repeated ? [] : field.initial;
      while (!from.atEnd) {
        const tag = from.varint();
        const known = byNumber.get(Math.floor(tag / 8));
        if (!known || known.field.wire !== tag % 8) from.skip(tag % 8);
        else if (known.field.repeated) (read[known.name] as unknown[]).push(known.field.read(from));
        else read[known.name] = known.field.read(from);
      }
      return read as Read;
    },
  };
}

export function int(number: number): Field<number> {
  return { number, wire: VARINT, repeated: false, initial: 0, write: (out, value) => out.varint(value), read: (from) => from.varint() };
}

export function flag(number: number): Field<boolean> {
  return { number, wire: VARINT, repeated: false, initial: false, write: (out, value) => out.varint(value ? 1 : 0), read: (from) => from.varint() !== 0 };
}

export function bytes(number: number): Field<Buffer, Uint8Array> {
  return { number, wire: BYTES, repeated: false, initial: Buffer.alloc(0), write: (out, value) => out.block(value), read: (from) => from.block() };
}

export function string(number: number): Field<string> {
  return { number, wire: BYTES, repeated: false, initial: "", write: (out, value) => out.block(Buffer.from(value)), read: (from) => from.block().toString() };
}

export function one<Read, Written>(number: number, type: Message<Read, Written>): Field<Read | undefined, Written> {
  return { number, wire: BYTES, repeated: false, initial: undefined, write: (out, value) => out.block(type.encode(value)), read: (from) => type.decode(from.block()) };
}

export function many<Read, Written>(number: number, type: Message<Read, Written>): Field<readonly Read[], readonly Written[]> {
  return { number, wire: BYTES, repeated: true, initial: [], write: (out, value) => out.block(type.encode(value as Written)), read: (from) => type.decode(from.block()) };
}

class Writer {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  varint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`no number for etcd: ${value}`);
    const part: number[] = [];
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) part.push((rest % 0x80) | 0x80);
    part.push(rest);
    this.#add(Uint8Array.from(part));
  }

  block(content: Uint8Array): void {
    this.varint(content.length);
    this.#add(content);
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts, this.#length);
  }

  #add(part: Uint8Array): void {
    this.#parts.push(part);
    this.#length += part.length;
  }
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(from: Buffer) {
    this.#bytes = from;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Beyond 2^53 the last digits are lost; nothing we read is that great. */
  varint(): number {
    let value = 0;
    for (let factor = 1, count = 0; ; factor *= 0x80) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined || ++count > 10) throw new RangeError("a number without end");
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }

  block(): Buffer {
    const length = this.varint();
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new RangeError("a block without end");
    const block = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return block;
  }

  skip(wire: number): void {
    if (wire === VARINT) this.varint();
    else if (wire === BYTES) this.block();
    else if (wire === FIXED64) this.#at += 8;
    else if (wire === FIXED32) this.#at += 4;
    else throw new RangeError(`wire type ${wire}`);
    if (this.#at > this.#bytes.length) throw new RangeError("a field without end");
  }
}
