/**
 * A TCP connection to a host and a port, straight or through an HTTP proxy, which is asked to CONNECT.
 *
 * Source: Go net/http/transport.go dialConn
 */
import type { Duplex } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";
import { dialTcp, hostOf, hostPort, type TcpTarget } from "./dial-tcp.ts";
import { dialTls } from "./dial-tls.ts";
import type { ProxyOf } from "./environment-proxy.ts";
import { http1Request } from "./http1-client.ts";

/** Source: Go net/http DefaultTransport */
export const DIAL_MS_MAX = 30_000;

/** Of URLs that a proxy leads to: who connects to them. */
export function proxyDialers(proxyOf: ProxyOf, clock: Clock): (url: URL) => { connect(target: { readonly host: string; readonly port: number; readonly signal: AbortSignal }): Promise<Duplex> } | undefined {
  return (url) => {
    const proxy = proxyOf(url);
    return proxy && { connect: ({ host, port, signal }) => dialThrough(proxy, { host, port, timeoutMs: DIAL_MS_MAX }, { clock, signal }) };
  };
}

const PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/** Throws an Error such as "proxyconnect tcp: dial tcp 10.0.0.7:3128: connect: connection refused", or what the proxy says: "Forbidden". */
export async function dialThrough(proxy: URL | undefined, target: TcpTarget, deps: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<Duplex> {
  if (!proxy) return await dialTcp(target, deps);
  const late = new AbortController();
  const alarm = deps.clock.after(target.timeoutMs, () => late.abort(new Error("i/o timeout")));
  const signal = AbortSignal.any([deps.signal, late.signal]);
  try {
    const connection = await connected(proxy, target.timeoutMs, { ...deps, signal }).catch((cause: Error) => {
      throw new Error(`proxyconnect tcp: ${cause.message}`, { cause });
    });
    return await asked(connection, proxy, hostPort(target.host, target.port), signal);
  } finally {
    alarm.cancel();
  }
}

async function connected(proxy: URL, timeoutMs: number, deps: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<Duplex> {
  const { protocol, port } = proxy, known = PORTS[protocol];
  if (known === undefined) throw new Error(`unknown scheme: ${protocol.replace(/:$/, "")}`);
  const host = hostOf(proxy);
  const connection = await dialTcp({ host, port: Number(port || known), timeoutMs }, deps);
  return protocol === "https:" ? await dialTls(connection, { ca: undefined, serverName: host, signal: deps.signal }) : connection;
}

async function asked(connection: Duplex, proxy: URL, target: string, signal: AbortSignal): Promise<Duplex> {
  const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const authorization = user === ":" ? [] : [["Proxy-Authorization", `Basic ${Buffer.from(user).toString("base64")}`] as const];
  const { status, statusText, upgraded } = await http1Request(connection, { method: "CONNECT", target, headers: [["Host", target], ["User-Agent", "coracle"], ...authorization] }, signal);
  if (upgraded) {
    upgraded.connection.unshift(upgraded.early);
    return upgraded.connection;
  }
  connection.destroy();
  throw new Error(statusText || String(status));
}
