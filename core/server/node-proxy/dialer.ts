/**
 * How the API server reaches nodes and pods. A NodeDialer makes the plain connection: directly, or through a tunnel where the server cannot
 * dial the node; TLS is put on top of whatever it gives.
 */
import type { Duplex } from "node:stream";
import type { Clock } from "../../lifecycle/clock.ts";
import { dialTcp } from "../../net/dial-tcp.ts";
import { dialTls, type Verification } from "../../net/dial-tls.ts";
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

/** TLS over a connection. Without `ca` any certificate will do. Closes the connection when that fails. */
export function secure(connection: Duplex, { ca, client, serverName, names, releasedMs }: Pick<Verification, "ca" | "client" | "serverName" | "names" | "releasedMs">, { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<Duplex> {
  return dialTls(connection, { ca, client, serverName, names, releasedMs, insecure: ca === undefined, signal, limit: { clock, ms: CONNECT_MS } });
}
