/** A TCP connection, made or failed in Go's words: they end up in messages that users and tools know from upstream. */
import { connect, isIPv6, type Socket } from "node:net";
import type { Clock } from "../lifecycle/clock.ts";

export interface TcpTarget {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  /** Whether our side stays open when the other has ended. */
  readonly allowHalfOpen?: boolean;
}

/** Throws an Error such as "dial tcp 10.0.0.7:10250: connect: connection refused". */
export async function dialTcp({ host, port, timeoutMs, allowHalfOpen = false }: TcpTarget, { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ host, port, noDelay: true, allowHalfOpen });
  const fail = (reason: string, cause?: Error): void => reject(new Error(`dial tcp ${hostPort(host, port)}: ${reason}`, { cause }));
  const onError = (error: NodeJS.ErrnoException): void => fail(reasonOf(error), error);
  const onClose = (): void => fail("EOF");
  const quit = (): void => reject(new Error("context canceled"));
  const late = clock.after(timeoutMs, () => fail("i/o timeout"));
  socket.once("connect", () => resolve(socket)).on("error", onError).on("close", onClose);
  signal.addEventListener("abort", quit, { once: true });
  if (signal.aborted) quit();
  try {
    return await promise;
  } catch (error) {
    socket.on("error", () => undefined); // what comes now comes after the end
    socket.destroy();
    throw error;
  } finally {
    late.cancel();
    signal.removeEventListener("abort", quit);
    socket.off("error", onError).off("close", onClose);
  }
}

export function hostPort(host: string, port: number): string { return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`; }

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused", EHOSTUNREACH: "connect: no route to host", ENETUNREACH: "connect: network is unreachable",
  ETIMEDOUT: "i/o timeout", ECONNRESET: "connection reset by peer", ENOTFOUND: "no such host",
};

function reasonOf({ code, message }: NodeJS.ErrnoException): string { return REASONS[code ?? ""] ?? message; }
