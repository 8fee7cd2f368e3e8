/** What all of the engine's HTTP/2 clients have in common, for those who put something right in them. */
import * as http2 from "node:http2";
import { Duplex } from "node:stream";

/** The prototypes of a client's connections and of its streams, which the engine has no names for. */
export function clientPrototypes(): { readonly connections: object; readonly streams: object } {
  const connection = http2.connect("http://nowhere", { createConnection: () => new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() }) });
  const stream = connection.on("error", () => undefined).request({ ":path": "/" }).on("error", () => undefined); // they are only there to be looked at
  connection.destroy();
  return { connections: Object.getPrototypeOf(connection) as object, streams: Object.getPrototypeOf(stream) as object };
}
