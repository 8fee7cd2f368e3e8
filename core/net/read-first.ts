/**
 * What the other side said last is heard before it is written to again.
 *
 * Who closes a connection while something is unread on it resets it: a container runtime whose command has ended before its stdin, a web server that refuses an upload.
 * What it had said by then is here, and can be read. But whoever writes first is told of the reset, and nothing can be read any more: the output, the exit code, the
 * answer would be lost. So each write waits for a turn of the event loop, in which all is read that has come. (Of the first of two `setImmediate` one does not know whether
 * the loop has looked since; between them it has.)
 *
 * And what is here already when the reset comes, as its reader has paused, is given to the reader all the same: an error would take it away.
 */
import type { Duplex } from "node:stream";

type Written = (error?: Error | null) => void;

/** The same connection. One that waits already is left as it is. */
export function readFirst<S extends Duplex>(socket: S): S {
  if (Object.hasOwn(socket, "_write")) return socket;
  socket.prependListener("error", () => { for (let said: unknown; (said = socket.read()) !== null;) socket.emit("data", said); }); // what the kernel held, some MB
  const write = socket._write.bind(socket), writeMany = socket._writev?.bind(socket);
  const later = (done: Written, send: () => void): void => void setImmediate(() => void setImmediate(() => {
    if (socket.destroyed) done();
    else send();
  }));
  socket._write = (chunk, encoding, done) => later(done, () => write(chunk, encoding, done));
  if (writeMany) socket._writev = (chunks, done) => later(done, () => writeMany(chunks, done));
  return socket;
}
