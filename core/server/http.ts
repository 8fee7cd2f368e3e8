/**
 * HTTP on one side, the chain on the other: turns node's requests into ServerRequests and Answers into bytes on the wire.
 * Works for HTTP/1.1 and HTTP/2 alike.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import { Socket } from "node:net";
import type { Duplex, Readable, Writable } from "node:stream";
import { createGzip, gzipSync } from "node:zlib";
import { encodeJson } from "../api/codec/json.ts";
import { assemble, BLOCK_BYTES, blocks, lengthOf, type Piece } from "../api/codec/pieces.ts";
import { bodyTooLarge, statusOf } from "../api/meta/status-error.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { until } from "../lifecycle/until.ts";
import type { Connection } from "../net/http-server.ts";
import type { Log } from "../observe/log.ts";
import type { Answer } from "./answer.ts";
import { ChunkFrames } from "./chunk-frames.ts";
import { EventBytes } from "./event-bytes.ts";
import type { Handler } from "./handler.ts";
import type { RequestBody, ServerRequest } from "./request.ts";
import { canStream, streamOverWebSocket } from "./websocket-answer.ts";
import { type Encoded, encodeList, encodeObject, type Presentation, watchEncoder } from "./respond.ts";

/** Source: apiserver MaxRequestBodyBytes */
const BODY_BYTES_MAX = 3 * 1024 * 1024;
/** Smaller answers are not worth compressing. Source: apiserver endpoints/handlers/responsewriters defaultGzipThresholdBytes */
const GZIP_BYTES_MIN = 128 * 1024;
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

interface Deps {
  readonly handler: Handler;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts when the server is stopping: watches end. */
  readonly stopping: () => AbortSignal;
  readonly describe: Presentation["describe"];
}

interface Front extends Deps { readonly events: EventBytes; readonly frames: ChunkFrames }

/** The two functions an HttpsServer calls. */
export interface HttpFront {
  request(request: IncomingMessage, response: ServerResponse, connection: Connection): void;
  upgrade(request: IncomingMessage, socket: Duplex, upgrade: { readonly head: Buffer; readonly connection: Connection }): void;
}

export function httpFront(given: Deps): HttpFront {
  const deps: Front = { ...given, events: new EventBytes(), frames: new ChunkFrames() };
  const requests = new Requests(given.stopping);
  return {
    request(request, response, connection) {
      const { signal, end } = requests.begin();
      let isGone = false;
      response.on("close", () => {
        isGone = true;
        end();
      });
      void serve(deps, { request, response, connection }, signal).catch((error: unknown) => {
        if (!isGone) deps.log.error("a response failed", { path: request.url, error });
        response.destroy();
      });
    },
    upgrade(request, socket, { head, connection }) {
      const gone = new AbortController();
      socket.on("close", () => gone.abort());
      socket.on("error", () => gone.abort());
      void serveUpgrade(deps, { request, socket, head, connection }, gone.signal).catch((error: unknown) => {
        deps.log.warn("an upgrade failed", { path: request.url, error });
        socket.destroy();
      });
    },
  };
}

/** The signals of all requests under way: each aborts when its request is over, and all of them when the server stops. One controller each, because AbortSignal.any costs as much again. */
class Requests {
  readonly #controllers = new Set<AbortController>();
  readonly #stopping: () => AbortSignal;
  #follows = false; // of `stopping`, which is not there before the first request

  constructor(stopping: () => AbortSignal) {
    this.#stopping = stopping;
  }

  begin(): { readonly signal: AbortSignal; end(): void } {
    if (!this.#follows) this.#follow();
    const controller = new AbortController();
    if (this.#stopping().aborted) controller.abort(STOPPING);
    else this.#controllers.add(controller);
    return {
      signal: controller.signal,
      end: () => {
        this.#controllers.delete(controller);
        controller.abort(OVER);
      },
    };
  }

  #follow(): void {
    this.#follows = true;
    this.#stopping().addEventListener("abort", () => {
      for (const controller of this.#controllers) controller.abort(STOPPING);
      this.#controllers.clear();
    }, { once: true });
  }
}

/** Made once: an error of its own for each request that ends would be most of what its signal costs. */
const OVER = new DOMException("the request is over", "AbortError");
const STOPPING = new DOMException("the server is stopping", "AbortError");

interface Exchange { readonly request: IncomingMessage; readonly response: ServerResponse; readonly connection: Connection }

async function serve(deps: Front, { request, response, connection }: Exchange, signal: AbortSignal): Promise<void> {
  const asked = serverRequest(request, connection, signal, (name, value) => void response.setHeader(name, value));
  const answer = await deps.handler(asked);
  if (signal.aborted) return;
  for (const text of answer.warnings ?? []) response.appendHeader("warning", `299 - ${quoted(text)}`);
  const how: Presentation = { request: asked, nowMs: deps.clock.nowMs(), describe: deps.describe, events: deps.events };
  try {
    await send(answer, how, response, deps, signal);
  } catch (error) {
    if (response.headersSent) throw error;
    const status = statusOf(error);
    await sendBytes(asked, response, { status: status.code ?? 500, contentType: "application/json", body: [encodeJson(status)] }, signal);
  }
}

async function send(answer: Answer, how: Presentation, response: ServerResponse, { frames }: Pick<Front, "frames">, signal: AbortSignal): Promise<void> {
  switch (answer.type) {
    case "object":
    case "list": {
      const { status, contentType, body } = answer.type === "list" ? encodeList(answer, how) : encodeObject(answer, how);
      const retry = answer.type === "object" ? retryAfter(answer.object) : undefined;
      if (retry) response.setHeader("retry-after", String(retry));
      answer.sized?.(lengthOf(body));
      return sendBytes(how.request, response, { status, contentType, body }, signal);
    }
    case "raw": {
      for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value);
      if (answer.setCookies) response.setHeader("set-cookie", [...answer.setCookies]);
      const { body } = answer;
      if (typeof body === "string" || body instanceof Uint8Array)
        return sendBytes(how.request, response, { status: answer.status, contentType: answer.headers["content-type"] ?? "text/plain", body: [typeof body === "string" ? Buffer.from(body) : body] }, signal);
      response.statusCode = answer.status;
      response.flushHeaders(); // the first line of a log may be long in coming
      return pipe(body, response, signal);
    }
    case "watch": {
      const { contentType, batches } = watchEncoder(answer, how);
      response.statusCode = 200;
      response.setHeader("content-type", contentType);
      response.setHeader("cache-control", "no-cache, private");
      response.flushHeaders();
      const { out, write } = streamOf(response, frames);
      for await (const chunk of batches) {
        write(chunk);
        if (out.writableLength > WATCH_BACKLOG_BYTES_MAX) await drained(out, signal);
        if (signal.aborted) break;
      }
      response.end();
      return;
    }
    case "upgrade": {
      const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "Upgrade request required", reason: "BadRequest", code: 400 };
      return sendBytes(how.request, response, { status: 400, contentType: "application/json", body: [encodeJson(status)] }, signal);
    }
  }
}

/** Short bodies at once; long ones in blocks, no faster than the client takes them. */
async function sendBytes(request: ServerRequest, response: ServerResponse, { status, contentType, body }: Encoded, signal: AbortSignal): Promise<void> {
  response.statusCode = status;
  response.setHeader("content-type", contentType);
  if (!response.hasHeader("cache-control")) response.setHeader("cache-control", "no-cache, private");
  const length = lengthOf(body);
  const zips = length >= GZIP_BYTES_MIN && !response.hasHeader("content-encoding") && /\bgzip\b/.test(request.header("accept-encoding") ?? "");
  if (zips) {
    response.setHeader("content-encoding", "gzip");
    response.setHeader("vary", "Accept-Encoding");
  }
  const isShort = length <= (zips ? GZIP_AT_ONCE_BYTES_MAX : BLOCK_BYTES);
  const whole = isShort || request.method === "HEAD" ? joined(body, length) : undefined;
  const sent = whole && zips ? gzipSync(whole, { level: GZIP_LEVEL }) : whole;
  if (sent) response.setHeader("content-length", sent.length);
  else if (!zips) response.setHeader("content-length", length);
  if (request.method === "HEAD") response.end();
  else if (sent) endWith(response, sent);
  else await (zips ? sendZipped : sendBlocks)(response, body, signal);
}

function joined(body: readonly Piece[], length: number): Uint8Array {
  const [first] = body;
  return body.length === 1 && first instanceof Uint8Array ? first : assemble(body, length);
}

/** One block at a time: the next one is put together when this one has been taken. More of them would be copied into one for the socket. */
async function sendBlocks(response: ServerResponse, body: readonly Piece[], signal: AbortSignal): Promise<void> {
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  for (const part of blocks(body, () => block)) {
    await until(signal, (done) => {
      if (response.headersSent) response.write(part, done);
      else written(response, () => void response.write(part, done));
    });
    if (signal.aborted) return;
  }
  response.end();
}

/** Compressed beside the event loop, block by block. */
async function sendZipped(response: ServerResponse, body: readonly Piece[], signal: AbortSignal): Promise<void> {
  const out = sinkOf(response);
  const block = Buffer.allocUnsafeSlow(GZIP_BLOCK_BYTES);
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

/** With these, HTTP/2's streams end with the head. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** All that `write` writes goes out as one: head and body, or a chunk with its length, which over HTTP/1.1 would be as many TLS records and system calls. */
function written(response: ServerResponse, write: () => void): void {
  const { socket, req } = response;
  if (req.httpVersionMajor !== 1 || !socket) return write();
  socket.cork();
  write();
  socket.uncork();
}

/** Where a body without end is written: over HTTP/1.1 the socket, with chunks that other watchers get too. */
function streamOf(response: ServerResponse, frames: ChunkFrames): { readonly out: Writable; write(chunk: Uint8Array): void } {
  const { socket, req } = response;
  if (socket instanceof Socket && req.httpVersion === "1.1") return { out: socket, write: (chunk) => { if (chunk.length > 0 && socket.writable) socket.write(frames.of(chunk)); } };
  return { out: response, write: (chunk) => void written(response, () => void response.write(chunk)) };
}

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

function pipe(body: Readable, response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => void body.destroy();
    signal.addEventListener("abort", stop, { once: true });
    body.on("error", reject);
    body.on("close", () => resolve());
    body.pipe(response);
  });
}

function retryAfter(object: unknown): number | undefined {
  return (object as { details?: { retryAfterSeconds?: number } }).details?.retryAfterSeconds;
}

interface Upgrade { readonly request: IncomingMessage; readonly socket: Duplex; readonly head: Buffer; readonly connection: Connection }

async function serveUpgrade(deps: Front, { request, socket, head, connection }: Upgrade, signal: AbortSignal): Promise<void> {
  const asked = serverRequest(request, connection, signal);
  const answer = await deps.handler(asked);
  if (answer.type === "upgrade") {
    answer.take(socket, head);
    return;
  }
  const how: Presentation = { request: asked, nowMs: deps.clock.nowMs(), describe: deps.describe, events: deps.events };
  if ((answer.type === "watch" || (answer.type === "raw" && answer.status === 200)) && canStream(asked)) return streamOverWebSocket(answer, how, { socket, head, clock: deps.clock, signal });
  const encoded = answer.type === "object" ? encodeObject(answer, how) : undefined;
  const body = encoded ? assemble(encoded.body) : Buffer.from("upgrade is not possible here\n");
  const status = encoded?.status ?? 400;
  socket.end(Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} ${status === 403 ? "Forbidden" : status === 404 ? "Not Found" : "Error"}\r\ncontent-type: ${encoded?.contentType ?? "text/plain"}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n`),
    body,
  ]));
}

function serverRequest(request: IncomingMessage, { peerCertificate, remoteAddress, takeNoMore }: Connection, signal: AbortSignal, setHeader?: ServerRequest["setHeader"]): ServerRequest {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  const protocols = headerOf(request, "sec-websocket-protocol");
  return {
    method: request.method ?? "GET",
    path: mark < 0 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1)),
    header: (name) => headerOf(request, name),
    headers: () => headersOf(request),
    webSocketProtocols: protocols?.split(",").map((part) => part.trim()) ?? [],
    peerCertificate,
    remoteAddress,
    setHeader,
    takeNoMore,
    wire: { body: request, rawQuery: mark < 0 ? "" : url.slice(mark + 1) },
    body: () => readBody(request),
    signal,
  };
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

function* headersOf({ rawHeaders }: IncomingMessage): Iterable<readonly [string, string]> {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) yield [rawHeaders[i]!.toLowerCase(), rawHeaders[i + 1]!];
}

/** Throws 413 once the body is longer than allowed, without reading the rest. Not by iteration over the stream, which costs as much as all that is done with a small body. */
function readBody(request: IncomingMessage): Promise<RequestBody> {
  const { promise, resolve, reject } = Promise.withResolvers<RequestBody>();
  const chunks: Buffer[] = [];
  let length = 0;
  let isComplete = false;
  const tooLong = (): void => {
    request.pause();
    reject(bodyTooLarge(BODY_BYTES_MAX));
  };
  if (Number(request.headers["content-length"] ?? 0) > BODY_BYTES_MAX) tooLong();
  else request.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) tooLong();
    else chunks.push(chunk);
  });
  request.on("end", () => {
    isComplete = true;
    resolve({ type: "bytes", contentType: headerOf(request, "content-type") ?? "", bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) });
  });
  request.on("error", reject);
  request.on("close", () => { if (!isComplete) reject(new Error("the client went away before its request was complete")); });
  return promise;
}

/** A quoted-string of a Warning header: one line of printable ASCII. */
function quoted(text: string): string {
  return `"${text.replace(/[\r\n]+/g, " ").replace(/[^\x20-\x7e]/g, "?").replace(/["\\]/g, "\\$&").slice(0, 4096)}"`;
}
