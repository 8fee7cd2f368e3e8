/** The listeners of the ingress: one for each door on each address, opened and closed as doors come and go. One that cannot listen says so, and tries again. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Duplex } from "node:stream";
import type { Protocol } from "../../core/ingress/gateway-fronts.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Connection } from "../../core/net/connections.ts";
import { type Http1Seat, httpServer, httpsServer, seatedServer } from "../../core/net/http-server.ts";
import { type TlsMaterial, tlsOptions } from "../../core/net/tls.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Certificates } from "./certificates.ts";
import type { OpenDoor } from "./doors.ts";
import type { Forwarder } from "./forward.ts";
import { Http1Front, type Http1FrontDeps } from "./http1-front.ts";
import { passthroughServer, type WebSeat } from "./passthrough.ts";

export interface ListenersOptions {
  readonly addresses: readonly string[];
  /** What clients are shown that ask for a name nobody has a certificate for; made once there is something to serve. */
  readonly material: () => Promise<TlsMaterial>;
  readonly certificates: Pick<Certificates, "contextFor">;
  readonly forwarder: Pick<Forwarder, "handle" | "upgrade">;
  readonly front: Http1FrontDeps;
  readonly clock: Clock;
  readonly log: Log;
}

interface Listening { readonly door: number; readonly port: number; readonly protocol: Protocol; readonly stop: AbortController; readonly lives: readonly Promise<void>[] }

const AGAIN_MS = 10_000;
/** Nobody waits longer for the end of a download. */
const DRAIN_MS = 10_000;

export class Listeners {
  readonly #options: ListenersOptions;
  readonly #open = new Map<number, Listening>();
  readonly #closing = new Set<Promise<void>>();
  #material: TlsMaterial | undefined;
  /** By door. */
  #doors: ReadonlyMap<number, Pick<OpenDoor, "terminated" | "web">> = new Map();

  constructor(options: ListenersOptions) { this.#options = options; }

  /** Listens at these doors and no others; those that are closed may be left by their clients meanwhile. */
  async use(doors: readonly Pick<OpenDoor, "target" | "port" | "protocol" | "terminated" | "web">[]): Promise<void> {
    this.#doors = new Map(doors.map((one) => [one.target, one]));
    const { addresses, material, log } = this.#options;
    const gone = [...this.#open.values()].filter(({ door, port, protocol }) => !doors.some((one) => one.target === door && one.port === port && one.protocol === protocol));
    for (const { door, port, stop, lives } of gone) {
      stop.abort();
      this.#open.delete(door);
      const left = Promise.all(lives).then(() => void this.#closing.delete(left));
      this.#closing.add(left);
      log.info("the ingress listens no more", { port, at: door });
    }
    await Promise.all(gone.filter(({ door }) => doors.some(({ target }) => target === door)).flatMap(({ lives }) => lives)); // another protocol at the same port
    if (doors.length > 0) this.#material ??= await material();
    for (const { target: door, port, protocol } of doors) {
      if (this.#open.has(door)) continue;
      const stop = new AbortController();
      this.#open.set(door, { door, port, protocol, stop, lives: addresses.map(async (host) => await this.#life(host, { door, port, protocol }, stop.signal)) });
      log.info("the ingress listens", { addresses, port, at: door, protocol });
    }
  }

  /** Resolves when all have left. */
  async close(): Promise<void> {
    await this.use([]);
    await Promise.all(this.#closing);
  }

  async #life(host: string, { door, port, protocol }: Pick<Listening, "door" | "port" | "protocol">, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#server(host, { door, port, protocol }).run(signal, () => {});
      } catch (error) {
        log.error("the ingress cannot listen", { host, port: door, error });
        await clock.sleep(AGAIN_MS, signal);
      }
    }
  }

  #server(host: string, { door, port, protocol }: Pick<Listening, "door" | "port" | "protocol">): Pick<Runnable, "run"> {
    const { certificates, forwarder, front, clock, log } = this.#options;
    const secure = protocol !== "HTTP";
    const caller = ({ remoteAddress, serverName }: Connection) => ({ remoteAddress, secure, door, port, serverName: serverName?.replace(/\.$/, "") });
    const options = {
      clock, log, widened: true, limits: { drainMs: DRAIN_MS, mayPause: false }, // strangers could hold all connections there may be
      http1: (socket: Socket, seat: Http1Seat) => void new Http1Front(socket, seat, caller(seat.connection), front),
      handler: (request: IncomingMessage, response: ServerResponse, connection: Connection) => void forwarder.handle(request, response, caller(connection)),
      upgrade: (request: IncomingMessage, socket: Duplex, { head, connection }: { readonly head: Buffer; readonly connection: Connection }) => void forwarder.upgrade(request, socket, { head, caller: caller(connection) }),
    };
    const certificateFor = (name: string): SecureContext | undefined => certificates.contextFor(name, door), at = { host, port: door, portFlag: "--disable=ingress" };
    if (protocol === "HTTP") return httpServer({ ...options, ...at });
    if (protocol === "HTTPS") return httpsServer({ ...options, ...at, tls: () => this.#material!, certificateFor });
    const web = seatedServer(options), fallback = createSecureContext(tlsOptions(this.#material!)), seat: WebSeat = { contextFor: (name) => certificateFor(name) ?? fallback, take: (client) => web.take(client) };
    const passing = passthroughServer({
      host, door, port, named: protocol === "TLS", ends: (listener) => this.#doors.get(door)?.terminated.has(listener) ?? false, contextFor: certificateFor,
      web: (listener) => (this.#doors.get(door)?.web.has(listener) ? seat : undefined), ...front,
    });
    return {
      async run(signal, ready) {
        const stop = new AbortController(), seated = web.run(stop.signal, () => {});
        await passing.run(signal, ready).finally(() => stop.abort());
        await seated;
      },
    };
  }
}
