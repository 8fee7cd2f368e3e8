/**
 * HTTP/2 connections that have no numbers left for streams, for clients that make requests for years.
 *
 *   import "../../core/net/spent-connections.ts";      once a process, beside whatever makes connections: node:http2 itself, or @grpc/grpc-js
 *
 * A connection has a thousand million requests, 50 a second for eight months; whoever has more makes another one (RFC 9113, 5.1.1). Bun refuses each further request and leaves
 * the connection open, on which nobody makes another, @grpc/grpc-js included: etcd, the runtime, an endpoint was out of reach until the process was started again.
 * So it is left early: its users hear what they would hear if the server left it (goaway), and make another one for what comes next. What is under way goes on, and it ends with the last.
 *
 * Source: google.golang.org/grpc internal/transport/defaults.go (MaxStreamID), http2_client.go
 */
import type * as http2 from "node:http2";
import { clientPrototypes } from "./engine-http2.ts";

const STREAM_ID_MAX = (2 ** 31 - 1) * 3 / 4;

type Connection = http2.ClientHttp2Session;

function leaveSpentConnections(): void {
  const connections = clientPrototypes().connections as Connection;
  const { request } = connections;
  connections.request = function (this: Connection, ...asked) {
    const stream = request.apply(this, asked);
    if ((stream.id ?? 0) >= STREAM_ID_MAX) process.nextTick(leave, this); // once it has been begun
    return stream;
  };
}

function leave(connection: Connection): void {
  if (connection.closed || connection.destroyed) return;
  connection.emit("goaway", 0, 0, new Uint8Array());
  connection.close();
}

leaveSpentConnections();
