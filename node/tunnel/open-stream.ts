/** The way to a server: a connection of HTTP/2, proved by certificates on both sides, and the one stream on it. */
import * as http2 from "node:http2";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { dialOrigin } from "../../core/net/dial-origin.ts";
import type { ProxyOf } from "../../core/net/environment-proxy.ts";
import { grpcErrorOf } from "../../core/net/grpc/status.ts";
import { ANCHORS } from "../../core/net/tls.ts";
import { AGENT_ID, AGENT_IDENTIFIERS, CONNECT_PATH, countOf, encodeIdentifiers, GRPC_CONTENT_TYPE, SERVER_COUNT, SERVER_ID, WINDOW, type AgentIdentifiers } from "../../core/tunnel/headers.ts";
import { HTTP2_WINDOW_BYTES } from "../../core/tunnel/window.ts";

export interface TunnelCredentials {
  /** PEM: who may have signed the server's certificate, and the node's own. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface OpenStreamOptions {
  /** https://host:port */
  readonly server: string;
  readonly credentials: TunnelCredentials;
  readonly agentId: string;
  readonly identifiers: AgentIdentifiers;
  readonly windowBytes: number;
  /** Absent: straight to the server. */
  readonly proxyOf?: ProxyOf | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface OpenStream {
  readonly session: http2.ClientHttp2Session;
  readonly stream: http2.ClientHttp2Stream;
  readonly serverId: string;
  readonly serverCount: number;
  /** What the server grants each connection; undefined: it knows no credit. */
  readonly peerWindowBytes: number | undefined;
}

const OPEN_MS_MAX = 30_000;

/** Throws what kept it from opening; GrpcError when the server said no. */
export async function openStream({ server, credentials, agentId, identifiers, windowBytes, proxyOf, clock, signal }: OpenStreamOptions): Promise<OpenStream> {
  const socket = proxyOf?.(new URL(server)) && await dialOrigin(server, { proxyOf, tls: credentials, alpn: ["h2"], clock, signal });
  const { promise, resolve, reject } = Promise.withResolvers<OpenStream>();
  const session = http2.connect(server, { ...credentials, ...ANCHORS, ...(socket && { createConnection: () => socket }), settings: { initialWindowSize: HTTP2_WINDOW_BYTES, enablePush: false } });
  session.on("error", reject);
  session.on("close", () => reject(new Error(`${server} closed the connection`)));
  session.on("connect", () => session.setLocalWindowSize(HTTP2_WINDOW_BYTES));
  const late = clock.after(OPEN_MS_MAX, () => reject(new Error(`no answer from ${server} within ${OPEN_MS_MAX / 1000} s`)));
  const quit = (): void => reject(new Error("canceled"));
  signal.addEventListener("abort", quit, { once: true });
  if (signal.aborted) quit();
  const stream = session.request({
    ":method": "POST", ":path": CONNECT_PATH, "content-type": GRPC_CONTENT_TYPE, te: "trailers",
    [AGENT_ID]: agentId, [AGENT_IDENTIFIERS]: encodeIdentifiers(identifiers), [WINDOW]: String(windowBytes),
  });
  stream.on("error", reject);
  stream.on("response", (headers) => {
    const refused = grpcErrorOf(headers, headers[":status"]);
    const serverId = headers[SERVER_ID];
    if (refused) reject(refused);
    else if (typeof serverId !== "string") reject(new Error(`${server} does not say which server it is`));
    else resolve({ session, stream, serverId, serverCount: countOf(headers[SERVER_COUNT]) ?? 1, peerWindowBytes: countOf(headers[WINDOW]) });
  });
  try {
    return await promise;
  } catch (error) {
    session.on("error", () => undefined); // what comes now comes after the end
    session.destroy();
    throw error;
  } finally {
    late.cancel();
    signal.removeEventListener("abort", quit);
  }
}
