/**
 * How the API server reaches nodes and pods. A NodeDialer makes the plain connection: directly, or through a tunnel where the server cannot
 * dial the node; TLS is put on top of whatever it gives.
 */
import type { Duplex } from "node:stream";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import type { Clock } from "../../lifecycle/clock.ts";
import { dialTcp } from "../../net/dial-tcp.ts";
import type { Dialer } from "../../tunnel/dialer.ts";

export type NodeDialer = Dialer;

/** Source: apimachinery net.Dialer{Timeout: 30s} of the proxy transports */
const CONNECT_MS = 30_000;

/** For nodes and pods this machine can dial itself. Errors read as Go prints them. */
export function directDialer(clock: Clock): NodeDialer {
  return {
    connect: ({ host, port, signal }) => dialTcp({ host, port, timeoutMs: CONNECT_MS }, { clock, signal }),
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
    return await settled(socket, how);
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

function isIp(text: string): boolean { return /^[\d.]+$/.test(text) || text.includes(":"); }

async function settled(socket: TLSSocket, { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const onError = (error: Error): void => reject(new Error(`tls: ${error.message}`, { cause: error }));
  const quit = (): void => reject(new Error("context canceled"));
  const late = clock.after(CONNECT_MS, () => onError(new Error("i/o timeout")));
  const onClose = (): void => onError(new Error("EOF"));
  socket.once("secureConnect", () => resolve(socket));
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
