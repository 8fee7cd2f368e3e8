/**
 * Bodies on their way out, over HTTP/1.1 and HTTP/2 alike: short ones at once, long ones in blocks and no faster than the client takes them, compressed if it asks for that;
 * and the events of a watch, as they come.
 */
import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { createGzip, gzipSync } from "node:zlib";
import { assemble, BLOCK_BYTES, blocks, lengthOf, type Piece } from "../api/codec/pieces.ts";
import type { Breathe } from "../lifecycle/breather.ts";
import { until } from "../lifecycle/until.ts";
import { BlockPool } from "./block-pool.ts";
import { CHUNK_ROOM, ChunkFrames, framedInPlace } from "./chunk-frames.ts";
import type { ServerRequest } from "./request.ts";
import { setStatus } from "./status-line.ts";
import type { Encoded, EventBatch } from "./respond.ts";

/** Answers that are no longer are not worth compressing. Source: apiserver endpoints/handlers/responsewriters defaultGzipThresholdBytes */
const UNZIPPED_BYTES_MAX = 128 * 1024;
/** Larger ones are compressed beside the event loop. */
const GZIP_AT_ONCE_BYTES_MAX = 512 * 1024;
/** Source: apiserver endpoints/handlers/responsewriters defaultGzipContentEncodingLevel */
const GZIP_LEVEL = 1;
/** What the compressor is given at a time: handing a block over and back costs as much as compressing some 100 kB. */
const GZIP_BLOCK_BYTES = 4 * BLOCK_BYTES;
/** Of a long list that is compressed: so much waits for the client to read before more of it is put together. */
const LIST_BACKLOG_BYTES_MAX = 4 * BLOCK_BYTES;
/** Bytes that may wait for a watcher to read; more events are not encoded until it has. It is cut off when it does not read at all (core/net/http-server.ts), and told to list again when it lags too far behind. */
const WATCH_BACKLOG_BYTES_MAX = 1024 * 1024;
/** Fewer bytes of events, bookmarks above all, are worth no block. */
const EVENTS_AT_ONCE_BYTES_MAX = 32 * 1024;
/** Blocks kept for the next long answer: few are under way at a time. */
const BLOCKS_KEPT_MAX = 4, GZIP_BLOCKS_KEPT_MAX = 1;

export class BodySender {
  readonly #frames = new ChunkFrames();
  readonly #blocks = new BlockPool(BLOCK_BYTES, BLOCKS_KEPT_MAX);
  readonly #gzipBlocks = new BlockPool(GZIP_BLOCK_BYTES, GZIP_BLOCKS_KEPT_MAX);
  readonly #breathers: () => Breathe;

  /** A socket takes whatever it is given, so what a hundred watches begin with, or one event that a thousand are told of, would be one piece of work: its parts take turns. */
  constructor(breathers: () => Breathe) { this.#breathers = breathers; }

  async send(request: ServerRequest, response: ServerResponse, { status, contentType, body, length = lengthOf(body) }: Encoded, signal: AbortSignal): Promise<void> {
    setStatus(response, status);
    if (contentType) response.setHeader("content-type", contentType);
    if (!response.hasHeader("cache-control")) response.setHeader("cache-control", "no-cache, private");
    if (status === 204 || status === 304) return void response.end(); // its length would be that of what the client has
    const zips = length > UNZIPPED_BYTES_MAX && !response.hasHeader("content-encoding") && namesGzip(request.header("accept-encoding") ?? "");
    if (zips) {
      response.setHeader("content-encoding", "gzip");
      response.appendHeader("vary", "Accept-Encoding");
    }
    const isShort = length <= (zips ? GZIP_AT_ONCE_BYTES_MAX : BLOCK_BYTES);
    const whole = isShort || request.method === "HEAD" ? joined(body, length) : undefined;
    const sent = whole && zips ? gzipSync(whole, { level: GZIP_LEVEL }) : whole;
    if (sent || !zips) {
      response.setHeader("content-length", sent ? sent.length : length);
      keepAsAsked(response);
    }
    if (request.method === "HEAD") response.end();
    else if (sent) endWith(response, sent);
    else await (zips ? this.#sendZipped(response, body, signal) : this.#sendBlocks(response, body, signal));
  }

  /** Until there are no more, or `signal` aborts. */
  async sendEvents<T>(response: ServerResponse, { batches, encode }: { readonly batches: AsyncIterable<T>; encode(batch: T): EventBatch }, signal: AbortSignal): Promise<void> {
    const { out, write } = streamOf(response, this.#frames), breathe = this.#breathers();
    for await (const items of batches) {
      const turn = breathe(); // before bytes are made of them, for a thousand may wait
      if (turn) await turn;
      if (signal.aborted) break;
      const batch = encode(items);
      const length = batch instanceof Uint8Array ? batch.length : lengthOf(batch);
      if (batch instanceof Uint8Array) write(batch);
      else if (length <= EVENTS_AT_ONCE_BYTES_MAX) write(assemble(batch, length));
      else await this.#sendManyEvents(response, batch, signal);
      if (out.writableLength > WATCH_BACKLOG_BYTES_MAX) await drained(out, signal);
      if (signal.aborted) break;
    }
    response.end();
  }

  /** One block at a time: the next one is put together when this one has been taken. More of them would be copied into one for the socket. */
  #sendBlocks(response: ServerResponse, body: readonly Piece[], signal: AbortSignal): Promise<void> {
    return this.#blocks.lend(signal, async (block) => {
      for (const part of blocks(body, () => block)) {
        await until(signal, (done) => {
          if (response.headersSent) response.write(part, done);
          else written(response, () => void response.write(part, done));
        });
        if (signal.aborted) return;
      }
      response.end();
    });
  }

  /** Compressed beside the event loop, block by block. */
  #sendZipped(response: ServerResponse, body: readonly Piece[], signal: AbortSignal): Promise<void> {
    return this.#gzipBlocks.lend(signal, async (block) => {
      const out = sinkOf(response);
      const zip = createGzip({ level: GZIP_LEVEL, chunkSize: BLOCK_BYTES / 4 });
      try {
        const ended = new Promise<void>((resolve, reject) => void zip.on("end", resolve).on("error", reject));
        ended.catch(() => undefined); // is told below
        zip.on("data", (bytes: Buffer) => void written(response, () => void response.write(bytes)));
        for (const part of blocks(body, () => block)) {
          await until(signal, (done) => void zip.write(part, done));
          if (out.writableLength >= LIST_BACKLOG_BYTES_MAX) await drained(out, signal);
          if (signal.aborted) return;
        }
        zip.end();
        await ended;
        response.end();
      } finally {
        zip.destroy();
      }
    });
  }

  /** What a watch begins with, which is its own: as a list goes out. */
  #sendManyEvents(response: ServerResponse, events: readonly Piece[], signal: AbortSignal): Promise<void> {
    return this.#blocks.lend(signal, async (block) => {
      const socket = chunkedSocketOf(response);
      const room = socket ? block.subarray(CHUNK_ROOM.before, block.length - CHUNK_ROOM.after) : block;
      for (const part of blocks(events, () => room)) {
        await until(signal, (done) => {
          if (!socket) response.write(part, done);
          else if (socket.writable) socket.write(framedInPlace(block, part.length), done);
          else done();
        });
        if (signal.aborted) return;
      }
    });
  }
}

/** Named by that word alone: with a weight, which may be nought, it is not looked for. Source: apiserver endpoints/handlers/responsewriters negotiateContentEncoding */
function namesGzip(acceptEncoding: string): boolean { return acceptEncoding.split(",").some((one) => one.trim() === "gzip"); }

function joined(body: readonly Piece[], length: number): Uint8Array {
  const [first] = body;
  return body.length === 1 && first instanceof Uint8Array ? first : assemble(body, length);
}

/** What tells how much of a response still waits to be taken. */
function sinkOf(response: ServerResponse): Writable {
  if (response.req.httpVersionMajor === 2) return (response as unknown as Http2ServerResponse).stream;
  return response.socket instanceof Socket ? response.socket : response;
}

/** Sends the head and all of the body. Over HTTP/2 not by node's response, which leaves room for trailers: a frame more, and a third of the time that it takes. */
function endWith(response: ServerResponse, body: Uint8Array): void {
  if (response.req.httpVersionMajor !== 2 || body.length === 0 || WITHOUT_BODY.has(response.statusCode)) return written(response, () => void response.end(body));
  const { stream } = response as unknown as Http2ServerResponse;
  if (stream.closed || stream.destroyed) return;
  stream.respond({ ":status": response.statusCode, ...response.getHeaders() });
  stream.end(body);
}

/** HTTP/1.0 keeps a connection if both say so, and the answer's end is known by its length. Load tools of that version (ab -k) would shake hands for each request. */
function keepAsAsked(response: ServerResponse): void {
  const { httpVersion, headers: { connection = "" } } = response.req;
  if (httpVersion !== "1.0" || !/\bkeep-alive\b/i.test(connection) || response.hasHeader("connection")) return; // what it has says that the server stops
  response.shouldKeepAlive = true;
  response.setHeader("connection", "keep-alive");
}

/** With these, HTTP/2's streams end with the head. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** All that `write` writes goes out as one: head and body, or a chunk with its length, which over HTTP/1.1 would be as many TLS records and system calls. */
function written(response: ServerResponse, write: () => void): void {
  const { socket, req } = response;
  if (req.httpVersionMajor !== 1 || !socket) return write();
  socket.cork();
  try {
    write();
  } finally {
    socket.uncork(); // also where there is no such status: what is said instead must get out
  }
}

/** Where a body without end is written: over HTTP/1.1 the socket, with chunks that other watchers get too; over HTTP/2 its stream. */
function streamOf(response: ServerResponse, frames: ChunkFrames): { readonly out: Writable; write(chunk: Uint8Array): void } {
  const socket = chunkedSocketOf(response);
  if (socket) return { out: socket, write: (chunk) => { if (chunk.length > 0 && socket.writable) socket.write(frames.of(chunk)); } };
  if (response.req.httpVersionMajor !== 2) return { out: response, write: (chunk) => void written(response, () => void response.write(chunk)) };
  const { stream } = response as unknown as Http2ServerResponse;
  return { out: stream, write: (chunk) => { if (stream.writable) stream.write(chunk); } };
}

/** The socket, if a body without a length is a row of chunks on it. */
function chunkedSocketOf({ socket, req }: ServerResponse): Socket | undefined { return socket instanceof Socket && req.httpVersion === "1.1" ? socket : undefined; }

async function drained(response: Writable, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = (): void => resolve();
  response.once("drain", done);
  signal.addEventListener("abort", done, { once: true });
  if (signal.aborted) done();
  await promise;
  response.off("drain", done);
  signal.removeEventListener("abort", done);
}
