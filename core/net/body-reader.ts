/** Takes the framing off the body of an answer of HTTP/1.1: its length, its chunks, or the end of the connection. It is read no faster than its reader reads. */
import { type Duplex, Readable } from "node:stream";
import type { Framing } from "./response-head.ts";

/** A chunk's size and its extensions. */
const CHUNK_LINE_BYTES_MAX = 4096;
/** Chunks below this are joined. */
const SMALL_BYTES = 4096;
/** All of what follows a body in chunks. */
const TRAILER_BYTES_MAX = 16 * 1024;
/** Of 64 bits. Source: Go net/http/internal/chunked.go */
const CHUNK_DIGITS_MAX = 16;

export class BodyReader {
  readonly readable: Readable;
  readonly #connection: Duplex;
  readonly #framing: Framing;
  /** Bytes of the body, or of the current chunk, still to come. */
  #left: number | undefined;
  #line = Buffer.alloc(0);
  #trailerBytes = 0;
  /** What small chunks that came together held: they may be as small as their sender likes, and each piece that is passed on costs the same. */
  #joined = Buffer.alloc(0);
  #joinedBytes = 0;
  /** What the next bytes are, in a chunked body. */
  #at: "size" | "data" | "after-data" | "trailer" = "size";
  #done = false;
  /** Is told whether the body ended where its framing says, with nothing behind it. */
  readonly #finished: (clean: boolean) => void;

  constructor(connection: Duplex, framing: Framing, finished: (clean: boolean) => void) {
    this.#connection = connection;
    this.#framing = framing;
    this.#finished = finished;
    this.#left = framing.type === "length" ? framing.length : 0;
    this.readable = new Readable({
      read: () => void connection.resume(),
      destroy: (error, done) => {
        if (!this.#done) {
          this.#done = true;
          connection.destroy();
        }
        done(error);
      },
    });
    this.readable.on("error", () => undefined); // whoever reads hears of it too; nobody may be reading any more
  }

  take(chunk: Buffer): void {
    try {
      if (this.#framing.type === "chunked") {
        this.#takeChunked(chunk);
        this.#pushJoined();
      } else this.#takePlain(chunk);
    } catch (error) {
      this.fail(error as Error);
    }
  }

  sourceEnded(): void {
    if (this.#done) return;
    if (this.#framing.type === "length" && this.#left === undefined) this.#finish(false);
    else this.fail(new Error("unexpected EOF"));
  }

  fail(error: Error): void {
    if (this.#done) return;
    this.#done = true;
    this.readable.destroy(error);
    this.#connection.destroy();
  }

  #takePlain(chunk: Buffer): void {
    if (this.#done) return;
    if (this.#left === undefined) return this.#push(chunk);
    const part = chunk.subarray(0, this.#left);
    this.#left -= part.length;
    this.#push(part);
    if (this.#left === 0) this.#finish(part.length === chunk.length);
  }

  #takeChunked(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.#done) {
      if (this.#at === "data") {
        const end = Math.min(chunk.length, at + this.#left!);
        this.#take(chunk, at, end);
        this.#left! -= end - at;
        at = end;
        if (this.#left === 0) this.#at = "after-data";
        continue;
      }
      const next = this.#line.length === 0 ? this.#plainLine(chunk, at) : at;
      if (next > at) {
        at = next;
        continue;
      }
      const end = chunk.indexOf(10, at);
      const piece = chunk.subarray(at, end < 0 ? chunk.length : end + 1);
      this.#line = this.#line.length === 0 ? Buffer.from(piece) : Buffer.concat([this.#line, piece]);
      at += piece.length;
      if (this.#line.length > CHUNK_LINE_BYTES_MAX) throw new Error("chunk line too long");
      if (end < 0) return;
      const line = this.#line.toString("latin1").trim();
      this.#line = Buffer.alloc(0);
      this.#onLine(line, at === chunk.length);
    }
  }

  /** Where a line ends that is whole, and no more than it has to be: a size alone, or nothing. Where it begins if it is another, for #onLine. */
  #plainLine(bytes: Buffer, from: number): number {
    let at = from, size = 0;
    if (this.#at === "size") for (let digit: number; at - from < CHUNK_DIGITS_MAX && (digit = hexDigit(bytes[at])) >= 0; at++) size = size * 16 + digit;
    if ((this.#at === "size") === (at === from) || this.#at === "trailer" || bytes[at] !== 13 || bytes[at + 1] !== 10) return from;
    this.#left = size;
    this.#at = this.#at === "after-data" ? "size" : size === 0 ? "trailer" : "data";
    return at + 2;
  }

  #onLine(line: string, isLast: boolean): void {
    switch (this.#at) {
      case "after-data":
        if (line !== "") throw new Error("malformed chunked encoding");
        this.#at = "size";
        return;
      case "trailer":
        if (line === "") {
          this.#pushJoined();
          return this.#finish(isLast);
        }
        this.#trailerBytes += line.length;
        if (this.#trailerBytes > TRAILER_BYTES_MAX) throw new Error("http: suspiciously long trailer after chunked body");
        return;
      default: {
        const size = line.split(";", 1)[0]!.trimEnd();
        if (!/^[0-9a-f]+$/i.test(size)) throw new Error(size === "" ? "empty hex number for chunk length" : "invalid byte in chunk length");
        if (size.length > CHUNK_DIGITS_MAX) throw new Error("http chunk length too large");
        this.#left = Number.parseInt(size, 16);
        this.#at = this.#left === 0 ? "trailer" : "data";
      }
    }
  }

  #take(bytes: Buffer, from: number, to: number): void {
    if (to - from >= SMALL_BYTES) {
      this.#pushJoined();
      return this.#push(bytes.subarray(from, to));
    }
    if (this.#joinedBytes === 0) this.#joined = Buffer.allocUnsafe(bytes.length - from);
    bytes.copy(this.#joined, this.#joinedBytes, from, to);
    this.#joinedBytes += to - from;
  }

  #pushJoined(): void {
    if (this.#joinedBytes > 0 && !this.#done) this.#push(this.#joined.subarray(0, this.#joinedBytes));
    this.#joinedBytes = 0;
  }

  #push(bytes: Buffer): void {
    if (bytes.length > 0 && !this.readable.push(bytes)) this.#connection.pause();
  }

  #finish(clean: boolean): void {
    this.#done = true;
    this.readable.push(null);
    this.#finished(clean);
  }
}

/** Of 0-9, A-F and a-f; -1: it is none. */
function hexDigit(byte = 0): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = (byte | 32) - 97;
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}
