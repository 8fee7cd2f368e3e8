/** A TLS connection to a server by its URL, through the proxy that is to be used for it, if any. What the server has chosen to speak is the socket's `alpnProtocol`. */
import { isIP } from "node:net";
import * as tls from "node:tls";
import type { Clock } from "../lifecycle/clock.ts";
import { hostOf } from "./dial-tcp.ts";
import { DIAL_MS_MAX, dialThrough } from "./dial-through.ts";
import type { ProxyOf } from "./environment-proxy.ts";
import { holdBack } from "./held-back.ts";
import { ANCHORS, KEY_AGREEMENTS } from "./tls.ts";
import { whenConnected } from "./when-connected.ts";

export interface OriginOptions {
  /** Absent: straight to every server. */
  readonly proxyOf?: ProxyOf | undefined;
  /** PEM; serverName: the name the server's certificate must carry, where it is not the host of the URL. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string; readonly serverName?: string };
  /** What is offered, the best first. */
  readonly alpn: readonly string[];
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Throws what kept the connection from being made, or trusted. */
export async function dialOrigin(origin: string, { proxyOf, tls: { serverName, ...material }, alpn, clock, signal }: OriginOptions): Promise<tls.TLSSocket> {
  const url = new URL(origin);
  const host = hostOf(url), port = Number(url.port || 443), proxy = proxyOf?.(url);
  const way = proxy && { socket: await dialThrough(proxy, { host, port, timeoutMs: DIAL_MS_MAX }, { clock, signal }), ...(isIP(host) ? {} : { servername: host }) };
  const socket = tls.connect({ host, port, ...way, ...KEY_AGREEMENTS, ...material, ...(material.ca === undefined ? {} : ANCHORS), ...(serverName === undefined ? {} : { servername: serverName }), ALPNProtocols: [...alpn] });
  if (way) holdBack(socket, way.socket);
  socket.setNoDelay(true);
  return await whenConnected(socket, {
    event: "secureConnect", signal,
    failure: (error) => error ?? new Error("EOF"),
    limit: { clock, ms: DIAL_MS_MAX, error: () => new Error(`no connection within ${DIAL_MS_MAX / 1000}s`) },
  });
}
