/**
 * Heads of answers of HTTP/1.1, as bytes. node has each byte of a header's field as a character of its own, over HTTP/2 as well; Bun's server of HTTP/1.1 writes heads as UTF-8, which makes two of
 * each byte beyond ASCII: file names that a proxied server tells came out mangled.
 *
 *   server.emit("connection", headsAsBytes(socket));
 */
import type { Socket } from "node:net";

/** What is written to `socket` as a text without an encoding is a head, or part of how a body is framed: the body itself comes in bytes. */
export function headsAsBytes<S extends Socket>(socket: S): S {
  const write = socket.write.bind(socket) as (chunk: Uint8Array | string, ...rest: readonly unknown[]) => boolean;
  socket.write = (chunk: Uint8Array | string, ...rest: readonly unknown[]) => write(typeof chunk === "string" && typeof rest[0] !== "string" ? Buffer.from(chunk, "latin1") : chunk, ...rest);
  return socket;
}
