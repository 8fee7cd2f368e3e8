/** HTTP/2 connections of clients that have made a thousand million requests. */
import type * as http2 from "node:http2";
import { clientPrototypes } from "../core/net/engine-http2.ts";

const STREAM_ID_MAX = 2 ** 31 - 1;

/** The engine's types do not tell of it. */
type Connection = http2.ClientHttp2Session & { setNextStreamID(id: number): void };

/** Until it is disposed of, each connection that makes its first request has numbers for so many streams. */
export function lateStreams(left: number): Disposable {
  const connections = clientPrototypes().connections as Connection;
  const { request } = connections, begun = new WeakSet<Connection>();
  connections.request = function (this: Connection, ...asked) {
    if (!this.connecting && !begun.has(this)) {
      begun.add(this);
      this.setNextStreamID(STREAM_ID_MAX - 2 * (left - 1));
    }
    return request.apply(this, asked);
  };
  return { [Symbol.dispose]: () => { connections.request = request; } };
}
