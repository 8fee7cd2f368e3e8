/** What all of the engine's HTTP/2 clients have in common, and its servers in part, for those who put something right in them. */
import * as http2 from "node:http2";
import { Duplex } from "node:stream";

/** By this the engine's connections have what makes their frames. */
export const FRAMES: unique symbol = Symbol.for("::bunhttp2native::");

/** The prototypes of a client's connections, of its streams, and of what makes the frames of a connection, a server's too: the engine has no names for them. */
export function clientPrototypes(): { readonly connections: object; readonly streams: object; readonly frames: object | undefined } {
  const connection = http2.connect("http://nowhere", { createConnection: () => new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() }) });
  const stream = connection.on("error", () => undefined).request({ ":path": "/" }).on("error", () => undefined); // they are only there to be looked at
  const { [FRAMES]: frames } = connection as { readonly [FRAMES]?: object };
  connection.destroy();
  return { connections: Object.getPrototypeOf(connection) as object, streams: Object.getPrototypeOf(stream) as object, frames: frames && (Object.getPrototypeOf(frames) as object) };
}
