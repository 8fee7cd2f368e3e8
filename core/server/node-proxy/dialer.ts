/**
 * How the API server reaches nodes and pods. A NodeDialer makes the plain connection: directly, or through a tunnel where the server cannot
 * dial the node; TLS is put on top of whatever it gives.
 */
import { connect, isIPv6 } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import type { Clock } from "../../lifecycle/clock.ts";

export interface DialTarget {
  /** The node that `host` is an address of, or that runs the pod it is an address of. Undefined: not known. */
  readonly nodeName: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly signal: AbortSignal;
}

export interface NodeDialer {
  connect(target: DialTarget): Promise<Duplex>;
}

/** Source: apimachinery net.Dialer{Timeout: 30s} of the proxy transports */
const CONNECT_MS = 30_000;

/** For nodes and pods this machine can dial itself. Errors read as Go prints them. */
export function directDialer(clock: Clock): NodeDialer {
  return {
    connect({ host, port, signal }) {
      const address = hostPort(host, port);
      const socket = connect({ host, port, noDelay: true });
      return settled(socket, "connect", { clock, signal }, (error) => `dial tcp ${address}: ${reasonOf(error)}`);
    },
  };
}

export interface ClientTls {
  /** PEM bundle that must have signed the server's certificate. Undefined: any certificate will do. */
  readonly ca: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name the certificate must carry. */
  readonly serverName: string;
}

/** TLS over a connection. Closes it when that fails. */
export async function secure(connection: Duplex, { ca, cert, key, serverName }: ClientTls, how: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<Duplex> {
  const options: ConnectionOptions = {
    socket: connection, ALPNProtocols: ["http/1.1"], rejectUnauthorized: ca !== undefined,
    ...(ca === undefined ? {} : { ca }), ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }),
    ...(isIp(serverName) ? {} : { servername: serverName }),
  };
  const socket = connectTls(options);
  try {
    return await settled(socket, "secureConnect", how, (error) => `tls: ${error.message}`);
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

export function hostPort(host: string, port: number): string { return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`; }

function isIp(text: string): boolean { return /^[\d.]+$/.test(text) || text.includes(":"); }

async function settled<S extends Duplex>(socket: S, event: "connect" | "secureConnect", { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }, describe: (error: NodeJS.ErrnoException) => string): Promise<S> {
  const { promise, resolve, reject } = Promise.withResolvers<S>();
  const onError = (error: NodeJS.ErrnoException): void => reject(new Error(describe(error), { cause: error }));
  const quit = (): void => reject(new Error("context canceled"));
  const late = clock.after(CONNECT_MS, () => onError(Object.assign(new Error("i/o timeout"), { code: "ETIMEDOUT" })));
  const onClose = (): void => onError(new Error("EOF"));
  socket.once(event, () => resolve(socket));
  socket.on("error", onError).on("close", onClose);
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

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused", EHOSTUNREACH: "connect: no route to host", ENETUNREACH: "connect: network is unreachable",
  ETIMEDOUT: "i/o timeout", ECONNRESET: "connection reset by peer", ENOTFOUND: "no such host",
};

function reasonOf({ code, message }: NodeJS.ErrnoException): string { return REASONS[code ?? ""] ?? message; }
