/**
 * What the other side said last is heard, though writing to it fails.
 *
 * Who closes a connection while something is unread on it resets it: a container runtime whose command has ended before its stdin, a web server that refuses an upload.
 * What it had said by then is here, and can be read. But whoever writes is told of the reset first, and ends the connection: the output, the exit code, the answer would be lost.
 * So a write that fails is kept until all has been read. And what is here already when the reset is told, as its reader has paused, is given to the reader all the same.
 */
import type { Duplex } from "node:stream";

type Written = (error?: Error | null) => void;

/** The other side has gone. It may have said something before. */
const GONE: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/** The same connection. One that does so already is left as it is. */
export function readFirst<S extends Duplex>(socket: S): S {
  if (Object.hasOwn(socket, "_write")) return socket;
  socket.prependListener("error", () => { for (let said: unknown; (said = socket.read()) !== null;) socket.emit("data", said); }); // what the kernel held, some MB
  const write = socket._write.bind(socket), writeMany = socket._writev?.bind(socket);
  const keeping = (done: Written): Written => (error) => {
    if (!error || socket.readableEnded || socket.destroyed || !GONE.has((error as NodeJS.ErrnoException).code ?? "")) return done(error);
    const over = (): void => {
      socket.off("end", over).off("close", over);
      done(error);
    };
    socket.on("end", over).on("close", over);
  };
  socket._write = (chunk, encoding, done) => write(chunk, encoding, keeping(done));
  if (writeMany) socket._writev = (chunks, done) => writeMany(chunks, keeping(done));
  return socket;
}
