/**
 * An answer that another server has given, on its way to the client as upstream's proxy passes it on: its headers beside our own, its length as it told it, and where it breaks
 * off the client's connection does, too. What is short is held back for a moment: if it breaks off at once, the client sees nothing of it.
 *
 * Source: Go net/http/httputil ReverseProxy, net/http server.go
 */
import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import { Readable } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";
import { canonical, type HeaderPairs } from "../net/response-head.ts";
import type { PassedOn, RawAnswer } from "./answer.ts";
import type { ServerRequest } from "./request.ts";
import { detectContentType } from "./detect-content-type.ts";
import { reasonOf, setStatus } from "./status-line.ts";

/** Source: kubernetes v1.36 apimachinery/pkg/util/proxy/upgradeaware.go defaultFlushInterval */
const HELD_MS = 200;
/** Source: Go net/http/server.go bufferBeforeChunkingSize */
const HELD_BYTES_MAX = 2048;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** HTTP/2 has one of these, or none. */
const SINGLE: ReadonlySet<string> = new Set(["content-type", "content-length", "content-encoding", "content-range", "etag", "location", "last-modified", "retry-after", "age", "expires"]);

interface To { readonly response: ServerResponse; readonly clock: Clock; readonly signal: AbortSignal }

/** The server behind has not given all of its answer: the client is to see that. */
export class BrokenOff extends Error { override readonly name = "BrokenOff"; }

/** Throws BrokenOff. */
export async function sendPassedOn({ status, body }: Pick<RawAnswer, "status" | "body">, { headers, length, isHead }: PassedOn & { readonly isHead: boolean }, { response, clock, signal }: To): Promise<void> {
  if (status < 100) throw new BrokenOff(`invalid WriteHeader code ${status}`);
  setStatus(response, status);
  if (!response.hasHeader("cache-control")) response.setHeader("cache-control", "no-cache, private");
  const isEmpty = status === 204 || status === 304;
  const left = isEmpty ? "content-length" : isHead ? "trailer" : ""; // Bun refuses an answer that announces trailers and has no body
  for (const [name, value] of headers) if (name.toLowerCase() !== left) addHeader(response, name, value);
  if (!isHead && !isEmpty && length !== undefined) response.setHeader("content-length", length);
  await sendBody(body instanceof Readable ? body : Readable.from([Buffer.from(body as Uint8Array)]), { isHeld: length !== undefined && !isHead, response, clock, signal });
}

/** What another server says before its answer, with our own headers: once, as upstream. */
export function earlyTeller(response: ServerResponse): NonNullable<ServerRequest["tellEarly"]> {
  let isTold = false;
  return (status, headers) => {
    if (!isTold && !response.headersSent) tellEarly(response, status, headers);
    isTold = true;
  };
}

function tellEarly(response: ServerResponse, status: number, headers: HeaderPairs): void {
  const own = Object.entries({ "cache-control": "no-cache, private", ...response.getHeaders() }).map(([name, value]) => [name, String(value)] as const);
  const all = [...own, ...headers].filter(([name]) => TOKEN.test(name));
  const { stream } = response as unknown as Partial<Http2ServerResponse>;
  if (stream) return void stream.additionalHeaders(Object.assign(Object.fromEntries(all.map(([name, value]) => [name.toLowerCase(), value])), { ":status": status }));
  const lines = all.map(([name, value]) => `${canonical(name)}: ${value}\r\n`).join("");
  (response as unknown as { _writeRaw(text: string, encoding: string): void })._writeRaw(`HTTP/1.1 ${status} ${reasonOf(status)}\r\n${lines}\r\n`, "latin1");
}

function addHeader(response: ServerResponse, name: string, value: string): void {
  if (!TOKEN.test(name)) return;
  const lower = name.toLowerCase();
  if (lower === "date" || ("stream" in response && SINGLE.has(lower))) response.setHeader(name, value);
  else response.appendHeader(canonical(name), value);
}

function sendBody(body: Readable, { isHeld, response, clock, signal }: To & { readonly isHeld: boolean }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const broken = (cause: Error): void => reject(new BrokenOff(cause.message, { cause }));
  if (body.errored) {
    broken(body.errored);
    return promise;
  }
  let held: Buffer[] | undefined = [], bytes = 0;
  const go = (): void => {
    if (!held) return;
    alarm?.cancel();
    const first = Buffer.concat(held);
    held = undefined;
    if (first.length === 0) return void response.flushHeaders();
    if (!response.hasHeader("content-type") && !response.hasHeader("content-encoding")) response.setHeader("content-type", detectContentType(first));
    response.write(first);
  };
  const alarm = isHeld ? clock.after(HELD_MS, go) : undefined;
  const stop = (): void => void body.destroy();
  signal.addEventListener("abort", stop, { once: true });
  body.on("error", (error) => {
    alarm?.cancel();
    broken(error);
  });
  body.on("close", () => {
    alarm?.cancel();
    signal.removeEventListener("abort", stop);
    resolve();
  });
  body.on("data", (chunk: Buffer) => {
    if (held) {
      held.push(chunk);
      if ((bytes += chunk.length) > HELD_BYTES_MAX) go();
    } else if (!response.write(chunk)) body.pause();
  });
  response.on("drain", () => body.resume());
  body.on("end", () => {
    go();
    response.end();
  });
  if (!isHeld) go();
  return promise;
}
