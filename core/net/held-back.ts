/**
 * TLS over a connection that is no socket of the machine's, as one through the tunnel: Bun writes to it whatever it is given, and says that it is sent. So what was sent faster than
 * the connection takes it was held in memory without a limit. Here a write is done once the connection has room again.
 */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

type Done = (error?: Error | null) => void;
interface Writer {
  _write(chunk: unknown, encoding: BufferEncoding, done: Done): void;
  _writev?(chunks: readonly unknown[], done: Done): void;
}

export function holdBack(socket: TLSSocket, connection: Duplex): void {
  if (connection instanceof Socket && !(connection instanceof TLSSocket)) return; // the engine's own
  const writer = socket as unknown as Writer, { _write: write, _writev: writeMany } = writer;
  writer._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, whenTaken(connection, done));
  if (writeMany) writer._writev = (chunks, done) => writeMany.call(socket, chunks, whenTaken(connection, done));
}

function whenTaken(connection: Duplex, done: Done): Done {
  return (error) => {
    if (error || connection.destroyed || !connection.writableNeedDrain) return done(error);
    const go = (): void => {
      connection.off("drain", go).off("close", go);
      done();
    };
    connection.on("drain", go).on("close", go);
  };
}
