/**
 * Requests whose method Bun's parser does not know, and CONNECT, which it takes for a tunnel: answered as any other, which is the last on its connection.
 *
 *   const found = oddRequest(socket, bytes);      undefined: they are no request, or not all of its head
 *   handler(found, lastResponse(found, socket), connection);
 *
 * A body must have a length. Whoever sends methods of his own and chunks is told 400.
 */
import { IncomingMessage, METHODS, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { headEnd } from "./head-end.ts";
import { fieldReader, readRequestHead } from "./http1-head.ts";

const readFields = fieldReader();

export function oddRequest(socket: Socket, bytes: Buffer): IncomingMessage | undefined {
  const end = headEnd(bytes);
  const head = end < 0 ? 400 : readRequestHead(bytes.toString("latin1", 0, end).trimEnd(), readFields);
  if (typeof head === "number" || head.framing === "chunked" || METHODS.includes(head.method)) return undefined; // what comes before it is answered already
  const request = new IncomingMessage(socket);
  request.method = head.method;
  request.url = head.target;
  request.httpVersion = `1.${head.minor}`;
  request.httpVersionMajor = 1;
  request.httpVersionMinor = head.minor;
  request.rawHeaders = head.fields.flatMap(({ name, value }) => [name, value]);
  const headers: Record<string, string> = {};
  for (const { name, value } of head.fields) headers[name] = Object.hasOwn(headers, name) ? `${headers[name]}, ${value}` : value;
  request.headers = headers;
  feed(request, socket, bytes.subarray(end), head.framing);
  return request;
}

/** The body, of which some has come already. */
function feed(request: IncomingMessage, socket: Socket, first: Buffer, length: number): void {
  let left = length;
  const take = (chunk: Buffer): void => {
    const part = chunk.subarray(0, left);
    left -= part.length;
    if (part.length > 0) request.push(part);
    if (left > 0) return;
    socket.off("data", take);
    request.complete = true; // or its end would be taken for the client's
    request.push(null);
  };
  socket.removeAllListeners("data"); // those of the parser that did not understand
  socket.on("data", take);
  take(first);
}

/** After it the connection ends. */
export function lastResponse(request: IncomingMessage, socket: Socket): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.on("finish", () => socket.end());
  return response;
}
