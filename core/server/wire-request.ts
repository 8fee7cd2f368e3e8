/** A request of node's, over HTTP/1.1 or HTTP/2, as the chain sees it. */
import type { IncomingMessage } from "node:http";
import { bodyTooLarge } from "../api/meta/status-error.ts";
import type { Connection } from "../net/connections.ts";
import { headerOf } from "../net/header-of.ts";
import { readablePath } from "./readable-path.ts";
import type { RequestBody, ServerRequest } from "./request.ts";

/** Source: apiserver MaxRequestBodyBytes */
const BODY_BYTES_MAX = 3 * 1024 * 1024;

export function serverRequest(request: IncomingMessage, { peerCertificate, remoteAddress, takeNoMore }: Connection, signal: AbortSignal, { setHeader, tellEarly, cbor }: Pick<ServerRequest, "setHeader" | "tellEarly" | "cbor"> = {}): ServerRequest {
  const url = request.url ?? "/";
  const mark = url.indexOf("?"), rawPath = mark < 0 ? url : url.slice(0, mark);
  const protocols = headerOf(request, "sec-websocket-protocol");
  return {
    method: request.method ?? "GET",
    path: readablePath(rawPath),
    query: mark < 0 ? NO_QUERY : new URLSearchParams(readable(url.slice(mark + 1))),
    header: (name) => headerOf(request, name),
    headers: () => headersOf(request),
    webSocketProtocols: protocols?.split(",").map((part) => part.trim()) ?? [],
    peerCertificate,
    remoteAddress,
    protocol: request.httpVersionMajor === 2 ? "HTTP/2.0" : request.httpVersionMinor === 0 ? "HTTP/1.0" : "HTTP/1.1",
    setHeader,
    tellEarly,
    takeNoMore,
    cbor,
    wire: { body: request, rawPath, rawQuery: mark < 0 ? "" : url.slice(mark + 1) },
    body: () => readBody(request, signal),
    signal,
  };
}

/** Of most writes: to read from. */
const NO_QUERY = new URLSearchParams();

const UNREADABLE = /;|%(?![0-9a-f]{2})/i;

/** Parameters that Go cannot read are as if they had not been sent. Source: Go net/url ParseQuery, whose errors URL.Query leaves out */
function readable(query: string): string {
  return UNREADABLE.test(query) ? query.split("&").filter((parameter) => !UNREADABLE.test(parameter)).join("&") : query;
}

function headersOf({ rawHeaders }: IncomingMessage): Iterable<readonly [string, string]> {
  const pairs: (readonly [string, string])[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) pairs.push([rawHeaders[i]!.toLowerCase(), rawHeaders[i + 1]!]);
  return pairs;
}

const GONE = "the client went away before its request was complete";

/** Throws 413 once the body is longer than allowed, without reading the rest. Not by iteration over the stream, which costs as much as all that is done with a small body. */
function readBody(request: IncomingMessage, signal: AbortSignal): Promise<RequestBody> {
  if (signal.aborted) return Promise.reject(new Error(GONE)); // while it waited for its turn: nothing will ever be heard of its body
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
  request.on("close", () => { if (!isComplete) reject(new Error(GONE)); });
  return promise;
}
