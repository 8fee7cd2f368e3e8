/**
 * A listener for TLS with whatever in it: by the name a client asks for its connection is joined with one of an endpoint's, as it comes, or once TLS has ended here, if that is what
 * the listener of this name does; or it is a listener's for HTTPS, and handed over once TLS has ended. A client that asks for none we know, or speaks no TLS, is hung up on. A listener
 * for TCP reads nothing: all its connections are joined.
 */
import { createServer, type Socket } from "node:net";
import { type SecureContext, TLSSocket } from "node:tls";
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { acceptInTurns } from "../../core/net/accept-in-turns.ts";
import { proxyBytes } from "../../core/net/proxy-bytes.ts";
import { plainAddress } from "../../core/net/tls.ts";
import type { Log } from "../../core/observe/log.ts";
import { serverNameOf } from "./client-hello.ts";
import { type Router, TRIES_MAX } from "./router.ts";
import { dialSecurely, type Upstreams } from "./upstreams.ts";

export interface PassthroughOptions {
  readonly host: string;
  /** The port of this node, and the one that leads to it from outside. */
  readonly door: number;
  readonly port: number;
  readonly router: Pick<Router, "planName" | "listenerOf" | "pick">;
  /** Whether clients say by a name where they want to go. */
  readonly named: boolean;
  /** Whether TLS ends here for this listener, and what it shows to who asks for that name. */
  readonly ends: (listener: string) => boolean;
  readonly contextFor: (serverName: string) => SecureContext | undefined;
  /** Who serves this listener's connections, if it is one for HTTPS. */
  readonly web: (listener: string) => WebSeat | undefined;
  /** Makes connections, and counts what is under way. */
  readonly upstreams: Pick<Upstreams, "begin" | "end" | "dial">;
  readonly clock: Clock;
  readonly log: Log;
  readonly connectionsMax?: number;
}

/** `take`: the connection is the callee's from here on. */
export interface WebSeat { readonly contextFor: (serverName: string) => SecureContext; readonly take: (client: TLSSocket) => void }

interface Hello { readonly name: string; readonly bytes: Buffer }

const CONNECTIONS_MAX = 10_000; // as many as http-server.ts has
/** As long as a handshake may take elsewhere. */
const HELLO_MS = 32_000;
const KEEP_ALIVE_MS = 30_000;
const NOTHING = Buffer.alloc(0);

/** Its connections end with it. */
export function passthroughServer({ host, door, port, named, router, ends, contextFor, web, upstreams, clock, log, connectionsMax = CONNECTIONS_MAX }: PassthroughOptions): Pick<Runnable, "run"> {
  const sockets = new Set<Socket>(), silent = new Set<Socket>(), stop = new AbortController(); // silent: those of `sockets` that have not said yet where they want to go
  const server = acceptInTurns(createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS, allowHalfOpen: true }, (socket) => {
    sockets.add(socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket)));
    if (sockets.size > connectionsMax) {
      const [first] = silent;
      if (!first) return void socket.destroy();
      silent.delete(first); // nobody keeps others out by saying nothing
      sockets.delete(first);
      first.destroy();
    }
    serve(socket).catch((error: unknown) => {
      log.debug("a connection could not be passed on", { error });
      socket.destroy();
    });
  }), { clock });

  async function serve(socket: Socket): Promise<void> {
    const hello = named ? await helloOf(socket, { silent, clock }) : { name: "", bytes: NOTHING }, caller = { remoteAddress: plainAddress(socket.remoteAddress), secure: named, door, port };
    if (!hello) return void socket.destroy();
    const listener = named ? router.listenerOf(hello.name, caller) : "", seat = named ? web(listener) : undefined;
    if (seat) return await handOver(socket, hello, seat);
    const plan = router.planName(hello.name, caller);
    if (!plan) return void socket.destroy();
    const { endpoints, tls } = plan, here = named && ends(listener);
    const client = here ? await secured(socket, hello.bytes, { context: contextFor(hello.name), clock }) : socket;
    if (!client) return void socket.destroy();
    let failure: unknown;
    for (let tries = 0; tries < TRIES_MAX && !socket.destroyed; tries++) {
      const endpoint = router.pick(endpoints);
      upstreams.begin(endpoint);
      try {
        const plain = await upstreams.dial(endpoint, stop.signal);
        const connection = tls && (here || !named) ? await dialSecurely(plain, endpoint, { tls, alpn: undefined, signal: stop.signal }) : plain;
        return await proxyBytes(client, connection, here ? { clock } : { clock, early: hello.bytes });
      } catch (error) {
        failure = error;
      } finally {
        upstreams.end(endpoint);
      }
    }
    throw failure;
  }

  async function handOver(socket: Socket, { name, bytes }: Hello, { contextFor: contextOf, take }: WebSeat): Promise<void> {
    const client = await secured(socket, bytes, { context: contextOf(name), clock, alpn: ["h2", "http/1.1"] });
    if (!client || stop.signal.aborted) return void socket.destroy();
    sockets.delete(socket); // and ends as those who have it now see fit
    socket.once("close", () => client.destroy()); // of HTTP/2 it would not be heard
    take(client);
  }

  return {
    async run(signal, ready) {
      await new Promise<void>((resolve, reject) => void server.once("error", reject).listen({ host, port: door }, resolve));
      server.on("error", (error) => log.error("listener failed", { error }));
      ready();
      await aborted(signal);
      stop.abort();
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** The client's connection without TLS, which began with `hello`. Undefined: there is no certificate for it, or it does not come to an agreement. */
async function secured(socket: Socket, hello: Buffer, { context, clock, alpn }: { readonly context: SecureContext | undefined; readonly clock: Clock; readonly alpn?: readonly string[] }): Promise<TLSSocket | undefined> {
  if (!context) return undefined;
  const { promise, resolve } = Promise.withResolvers<TLSSocket | undefined>();
  socket.unshift(hello);
  const client = new TLSSocket(socket, { isServer: true, secureContext: context, ...(alpn && { ALPNProtocols: [...alpn] }) });
  const late = clock.after(HELLO_MS, () => resolve(undefined));
  client.once("secure", () => resolve(client)).on("error", () => client.destroy()).once("close", () => resolve(undefined));
  return await promise.finally(() => late.cancel());
}

/** What the client says first, and the name in it; the socket is paused then. Undefined: it is no TLS, or does not come. */
async function helloOf(socket: Socket, { silent, clock }: { readonly silent: Set<Socket>; readonly clock: Clock }): Promise<Hello | undefined> {
  const { promise, resolve } = Promise.withResolvers<Hello | undefined>();
  let came: Buffer = Buffer.alloc(0);
  const onData = (bytes: Buffer): void => {
    came = Buffer.concat([came, bytes]);
    const found = serverNameOf(came);
    if (found !== "more") resolve(found && { name: found.name, bytes: came });
  };
  const onEnd = (): void => resolve(undefined);
  const late = clock.after(HELLO_MS, onEnd);
  socket.on("data", onData).on("end", onEnd).on("close", onEnd);
  silent.add(socket);
  try {
    return await promise;
  } finally {
    silent.delete(socket);
    late.cancel();
    socket.pause();
    socket.off("data", onData).off("end", onEnd).off("close", onEnd);
  }
}
