/** A TCP connection, made or failed in Go's words: they end up in messages that users and tools know from upstream. */
import { connect, isIPv6, type Socket } from "node:net";
import type { Clock } from "../lifecycle/clock.ts";
import { whenConnected } from "./when-connected.ts";

export interface TcpTarget {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  /** Whether our side stays open when the other has ended. */
  readonly allowHalfOpen?: boolean;
}

/** Probes find a peer that vanished without a word: who waits for what it says next has nothing else to notice it by. Source: Go's net.Dialer probes what it has dialled, too. */
const KEEP_ALIVE_MS = 30_000;

/** Throws an Error such as "dial tcp 10.0.0.7:10250: connect: connection refused". */
export async function dialTcp({ host, port, timeoutMs, allowHalfOpen = false }: TcpTarget, { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<Socket> {
  const fail = (reason: string, cause?: Error): Error => new Error(`dial tcp ${hostPort(host, port)}: ${reason}`, { cause });
  return await whenConnected(connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS, allowHalfOpen }), {
    event: "connect", signal,
    failure: (error) => (isUnknown(error) ? new Error(`dial tcp: lookup ${host}: no such host`, { cause: error }) : error ? fail(reasonOf(error), error) : fail("EOF")),
    limit: { clock, ms: timeoutMs, error: () => fail("i/o timeout") },
  });
}

/** Of a URL: IPv6 without its brackets. */
export function hostOf({ hostname }: Pick<URL, "hostname">): string { return hostname.replace(/^\[|\]$/g, ""); }

export function hostPort(host: string, port: number): string { return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`; }

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused", EHOSTUNREACH: "connect: no route to host", ENETUNREACH: "connect: network is unreachable",
  ETIMEDOUT: "i/o timeout", ECONNRESET: "connection reset by peer",
};

function isUnknown(error: NodeJS.ErrnoException | undefined): boolean { return error?.code === "ENOTFOUND"; }

function reasonOf({ code, message }: NodeJS.ErrnoException): string { return REASONS[code ?? ""] ?? message; }
