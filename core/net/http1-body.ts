/**
 * Where the body of an HTTP/1 message ends, found while its bytes go by: a proxy passes them on as they are, chunks and all. Pure.
 *
 *   const body = new BodyEnd(head.framing);
 *   const count = body.take(bytes);      so many of them are the body's; the rest is another message's
 *   if (body.done) …
 *
 * Source: RFC 9112 sections 6 and 7. Strict: no bare line ends, no white space around sizes.
 */
import type { Framing } from "./http1-head.ts";

const LF = 10;
/** Of a chunk's size with its extensions, and of a trailer. */
const LINE_BYTES_MAX = 4096;
const TRAILER_BYTES_MAX = 16 * 1024;
const SIZE_LINE = /^([0-9a-fA-F]{1,12})(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n$/;
/** What may not stand there: where a message ends, for whom it is, who sent it. There are readers who take trailers for headers. Source: RFC 9110 section 6.5.1 */
const HEADERS_ONLY = /^(content-length|transfer-encoding|host|authorization|forwarded|x[-_]real[-_]ip|x[-_]forwarded[-_][^:]*):/i;
const TRAILER_LINE = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n$/;

export class BodyEnd {
  /** Nothing more belongs to it. */
  done: boolean;
  readonly #chunked: boolean;
  /** Bytes of the body, or of the chunk and the line end behind it, still to come. */
  #left: number;
  #at: "size" | "data" | "trailer" = "size";
  #line = "";
  #trailerBytes = 0;

  constructor(framing: Framing) {
    this.#chunked = framing === "chunked";
    this.#left = framing === "close" ? Infinity : framing === "chunked" ? 0 : framing;
    this.done = framing === 0;
  }

  /** Throws when the bytes are no chunks. */
  take(bytes: Buffer): number {
    if (this.done) return 0;
    if (this.#chunked) return this.#takeChunks(bytes);
    const count = Math.min(bytes.length, this.#left);
    this.#left -= count;
    this.done = this.#left === 0;
    return count;
  }

  #takeChunks(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && !this.done) {
      if (this.#at === "data") {
        if (this.#left <= 2 && bytes[at] !== (this.#left === 2 ? 13 : LF)) throw new Error("malformed chunked encoding");
        const count = this.#left > 2 ? Math.min(bytes.length - at, this.#left - 2) : 1;
        at += count;
        this.#left -= count;
        if (this.#left === 0) this.#at = "size";
        continue;
      }
      const found = bytes.indexOf(LF, at), end = found < 0 ? bytes.length : found + 1;
      if (this.#line.length + end - at > LINE_BYTES_MAX) throw new Error("chunk line too long");
      this.#line += bytes.toString("latin1", at, end);
      at = end;
      if (found < 0) break;
      const line = this.#line;
      this.#line = "";
      this.#onLine(line);
    }
    return at;
  }

  #onLine(line: string): void {
    if (this.#at === "size") {
      const size = SIZE_LINE.exec(line)?.[1];
      if (size === undefined) throw new Error("invalid byte in chunk length");
      this.#left = Number.parseInt(size, 16);
      this.#at = this.#left === 0 ? "trailer" : "data";
      if (this.#left > 0) this.#left += 2;
    } else if (line === "\r\n") this.done = true;
    else {
      this.#trailerBytes += line.length;
      if (this.#trailerBytes > TRAILER_BYTES_MAX || !TRAILER_LINE.test(line) || HEADERS_ONLY.test(line)) throw new Error("malformed trailer");
    }
  }
}
