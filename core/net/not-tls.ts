/**
 * A client that speaks HTTP where TLS is spoken is told so, in the clear, as servers written in Go do.
 *
 *   const tellNotTls = notTls(server);                     before it listens
 *   server.on("tlsClientError", (error, socket) => { tellNotTls(error, socket); socket.destroy(); });
 *
 * What is written to a TLS socket is encrypted, so the answer goes around it, to the connection itself. The TLS library knows GET, HEAD, POST and PUT; other methods are noise to it.
 *
 * Source: go 1.26 src/net/http/server.go conn.serve
 */
import { writeSync } from "node:fs";
import type { Server } from "node:tls";

const ANSWER = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/** What Bun and node have under a socket. */
interface Handle { readonly fd?: number }

export function notTls(server: Server): (error: Error, socket: object) => void {
  const handles = new WeakMap<object, Handle>(); // a socket whose handshake failed has let go of its own
  server.on("connection", (socket: object) => {
    const { _handle: handle } = socket as { readonly _handle?: Handle | null };
    if (handle) handles.set(socket, handle);
  });
  return (error, socket) => {
    const fd = handles.get(socket)?.fd;
    if (fd === undefined || fd < 0 || process.platform === "win32" || (error as NodeJS.ErrnoException).code !== "ERR_SSL_HTTP_REQUEST") return;
    try {
      writeSync(fd, ANSWER);
    } catch {
      // the client has gone, or takes nothing: it is told nothing
    }
  };
}
