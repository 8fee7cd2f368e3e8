/** The listeners of the ingress: HTTP and HTTPS on each address. One that cannot listen says so, and tries again. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { type Connection, type Http1Seat, httpServer, httpsServer, type HttpsServer } from "../../core/net/http-server.ts";
import type { TlsMaterial } from "../../core/net/tls.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Certificates } from "./certificates.ts";
import type { Forwarder } from "./forward.ts";
import { Http1Front, type Http1FrontDeps } from "./http1-front.ts";

export interface Listening { close(): Promise<void> }

export interface ListenOptions {
  readonly addresses: readonly string[];
  readonly ports: { readonly http: number; readonly https: number };
  readonly material: TlsMaterial;
  readonly certificates: Pick<Certificates, "contextFor">;
  readonly forwarder: Pick<Forwarder, "handle" | "upgrade">;
  readonly front: Http1FrontDeps;
  readonly clock: Clock;
  readonly log: Log;
}

const AGAIN_MS = 10_000;
/** Nobody waits longer for the end of a download. */
const DRAIN_MS = 10_000;

export function listen({ addresses, ports, material, certificates, forwarder, front, clock, log }: ListenOptions): Listening {
  const stop = new AbortController();
  const lives = addresses.flatMap((address) => [life(address, ports.http, false), life(address, ports.https, true)]);

  function server(host: string, port: number, secure: boolean): HttpsServer {
    const options = {
      host, port, portFlag: "--disable=ingress", clock, log, limits: { drainMs: DRAIN_MS },
      http1: (socket: Socket, seat: Http1Seat) => void new Http1Front(socket, seat, { remoteAddress: seat.connection.remoteAddress, secure }, front),
      handler: (request: IncomingMessage, response: ServerResponse, { remoteAddress }: Connection) => void forwarder.handle(request, response, { remoteAddress, secure }),
      upgrade: (request: IncomingMessage, socket: Duplex, { head, connection: { remoteAddress } }: { readonly head: Buffer; readonly connection: Connection }) => void forwarder.upgrade(request, socket, { head, caller: { remoteAddress, secure } }),
    };
    return secure ? httpsServer({ ...options, tls: () => material, certificateFor: (name) => certificates.contextFor(name) }) : httpServer(options);
  }

  async function life(host: string, port: number, secure: boolean): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await server(host, port, secure).run(stop.signal, () => {});
      } catch (error) {
        log.error("the ingress cannot listen", { host, port, error });
        await clock.sleep(AGAIN_MS, stop.signal);
      }
    }
  }

  return {
    async close() {
      stop.abort();
      await Promise.all(lives);
    },
  };
}
