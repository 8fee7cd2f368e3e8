/**
 * The name that a client of TLS asks for, read from the first thing it says. Pure.
 *
 * Source: RFC 8446 sections 4.1.2 and 5.1; RFC 6066 section 3
 */

/** Go's limit for a handshake message; a client says less than 2 KiB, and with keys for quantum computers less than 4. */
const HELLO_BYTES_MAX = 64 * 1024;
/** In so many pieces it may come: with one to each byte, reading what has come anew each time would take a processor for minutes. */
const RECORDS_MAX = 64;
const HANDSHAKE = 22, CLIENT_HELLO = 1, SERVER_NAME = 0, HOST_NAME = 0;

/** `name` is "" where none is asked for. "more": the rest has not come yet. Undefined: this is no TLS. */
export function serverNameOf(bytes: Buffer): { readonly name: string } | "more" | undefined {
  const hello: Buffer[] = [];
  let gathered = 0, wanted = 4;
  for (let at = 0; gathered < wanted;) {
    if (bytes.length < at + 5) return at === 0 && bytes.length > 0 && bytes[0] !== HANDSHAKE ? undefined : "more";
    const length = bytes.readUInt16BE(at + 3);
    if (bytes[at] !== HANDSHAKE || bytes[at + 1] !== 3 || length === 0 || hello.length === RECORDS_MAX) return undefined;
    const part = bytes.subarray(at + 5, at + 5 + length);
    hello.push(part);
    gathered += part.length;
    if (wanted === 4 && gathered >= 4) {
      const head = Buffer.concat(hello);
      wanted = 4 + head.readUIntBE(1, 3);
      if (head[0] !== CLIENT_HELLO || wanted > HELLO_BYTES_MAX) return undefined;
    }
    if (gathered < wanted && part.length < length) return "more";
    at += 5 + length;
  }
  return nameIn(new Reader(Buffer.concat(hello).subarray(4, wanted)));
}

function nameIn(hello: Reader): { readonly name: string } | undefined {
  try {
    hello.skip(34); // version and random
    hello.block(1);
    hello.block(2);
    hello.block(1);
    if (hello.isEmpty) return { name: "" };
    for (const extensions = hello.block(2); !extensions.isEmpty;) {
      const type = extensions.number(2), content = extensions.block(2);
      if (type !== SERVER_NAME) continue;
      for (const names = content.block(2); !names.isEmpty;) {
        const kind = names.number(1), name = names.block(2);
        if (kind === HOST_NAME) return { name: name.text().toLowerCase().replace(/\.$/, "") };
      }
    }
    return { name: "" };
  } catch {
    return undefined; // shorter than it says
  }
}

/** Numbers and counted blocks, one after the other. Throws at the end. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;
  constructor(bytes: Buffer) { this.#bytes = bytes; }

  get isEmpty(): boolean { return this.#at >= this.#bytes.length; }
  text(): string { return this.#bytes.toString("latin1"); }

  number(size: number): number {
    const value = this.#bytes.readUIntBE(this.#at, size);
    this.#at += size;
    return value;
  }

  block(sizeOfCount: number): Reader { return new Reader(this.#take(this.number(sizeOfCount))); }
  skip(count: number): void { this.#take(count); }

  #take(count: number): Buffer {
    if (this.#at + count > this.#bytes.length) throw new RangeError("out of bytes");
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }
}
