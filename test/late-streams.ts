/** HTTP/2 connections of clients that have made a thousand million requests. */
import type * as http2 from "node:http2";
import { clientPrototypes } from "../core/net/engine-http2.ts";

const STREAM_ID_MAX = 2 ** 31 - 1;

/** Until it is disposed of, each connection that makes its first request has numbers for so many streams. */
export function lateStreams(left: number): Disposable {
  const connections = clientPrototypes().connections as http2.ClientHttp2Session;
  const { request } = connections, begun = new WeakSet<http2.ClientHttp2Session>();
  connections.request = function (this: http2.ClientHttp2Session, ...asked) {
    if (!this.connecting && !begun.has(this)) {
      begun.add(this);
      this.setNextStreamID(STREAM_ID_MAX - 2 * (left - 1));
    }
    return request.apply(this, asked);
  };
  return { [Symbol.dispose]: () => { connections.request = request; } };
}
