/**
 * The tunnel: how a server reaches nodes it cannot dial. Konnectivity's wire protocol, on the API server's own port.
 *
 *   agent ──▶ POST /AgentService/Connect (HTTP/2, the node's client certificate) ──▶ server        one stream of packets a node, kept open
 *   server ──▶ DIAL_REQ … DATA … CLOSE_REQ ──▶ agent ──▶ kubelet, pods of that node
 *
 *   packet.ts        the packets                      headers.ts   what both ends say first
 *   multiplexer.ts   connections on one stream        window.ts    how much of each may be under way
 *   node-session.ts  the server's end: dial()         dialer.ts    which connections go through a tunnel
 *   tunnel.ts        this file: who may connect, who is connected
 *
 * A stock proxy-agent may connect, if it shows a node's client certificate and calls itself by the node's name (--agent-id). What upstream lacks is used where both ends
 * have it: credit for each connection, so that one that is not read delays no other, and ends of one direction.
 *
 *   const tunnel = tunnelServer({ serverId, serverCount, nodeOf, stopping, clock, random, log, metrics });
 *   https handler:   if (tunnel.serves(request)) tunnel.accept(request, response, connection); else …
 *   elsewhere:       const connection = await tunnel.sessionOf("node-1")?.dial({ host: "10.0.0.7", port: 10250, signal });
 *
 * Source: sigs.k8s.io/apiserver-network-proxy pkg/server/server.go
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, ServerHttp2Stream } from "node:http2";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Connection } from "../net/connections.ts";
import { GrpcError, grpcTrailers } from "../net/grpc/status.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { unlessHeard } from "../net/unless-heard.ts";
import { AGENT_ID, CONNECT_PATH, countOf, GRPC_CONTENT_TYPE, SERVER_COUNT, SERVER_ID, WINDOW } from "./headers.ts";
import { NodeSession } from "./node-session.ts";
import { HTTP2_WINDOW_BYTES, WINDOW_LIMITS, type WindowLimits } from "./window.ts";

export interface TunnelServerOptions {
  /** Tells this server from the others. */
  readonly serverId: string;
  /** How many servers an agent should be connected to. */
  readonly serverCount: () => number;
  /** The name of the node that calls. Throws GrpcError if it is none. */
  readonly authenticate: (request: IncomingMessage, connection: Connection, signal: AbortSignal) => Promise<string>;
  /** A node has called, from that address; `signal` aborts when its tunnel ends. */
  readonly onOpen?: ((nodeName: string, remoteAddress: string, signal: AbortSignal) => void) | undefined;
  /** The https server's: when it aborts, agents are sent away. */
  readonly stopping: () => AbortSignal;
  readonly windows?: WindowLimits | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface TunnelServer {
  /** Whether a request is for us. */
  serves(request: IncomingMessage): boolean;
  accept(request: IncomingMessage, response: ServerResponse, connection: Connection): void;
  /** The node's tunnel, if it has one. */
  sessionOf(nodeName: string): NodeSession | undefined;
  /** Waits for it. Undefined: `signal` aborted. */
  arrival(nodeName: string, signal: AbortSignal): Promise<NodeSession | undefined>;
  /** Ends what tunnels the node has, at once: it is no node any more. */
  disconnect(nodeName: string, reason: string): void;
}

/** Of one node: a new session may come before the old one is known to be dead. */
const SESSIONS_OF_NODE_MAX = 3;
/** An agent that has been silent so long is asked whether it is there, and has so long to answer. Ours speaks every 20 s; stock ones only when asked. */
const SILENT_MS_MAX = 45_000;
const ANSWER_MS_MAX = 15_000;

export function tunnelServer(options: TunnelServerOptions): TunnelServer {
  const { clock, log } = options;
  const sessions = new Map<string, NodeSession[]>(); // of a node, the newest first
  const awaited = new Map<string, Set<(session: NodeSession) => void>>();
  registerMetrics(options.metrics, sessions);

  function sessionOf(nodeName: string): NodeSession | undefined {
    const all = sessions.get(nodeName) ?? [];
    return all.find(({ draining, closed }) => !draining && !closed) ?? all.find(({ closed }) => !closed);
  }

  function add(session: NodeSession): void {
    const { nodeName } = session;
    const all = [session, ...(sessions.get(nodeName) ?? [])];
    sessions.set(nodeName, all);
    for (const old of all.slice(SESSIONS_OF_NODE_MAX)) old.destroy(new Error("newer ones took its place"));
    for (const arrived of awaited.get(nodeName) ?? []) arrived(session);
  }

  function remove(session: NodeSession): void {
    const rest = (sessions.get(session.nodeName) ?? []).filter((one) => one !== session);
    if (rest.length > 0) sessions.set(session.nodeName, rest);
    else sessions.delete(session.nodeName);
  }

  async function begin(request: IncomingMessage, response: ServerResponse, connection: Connection): Promise<void> {
    const { stream } = request as unknown as Http2ServerRequest;
    const gone = new AbortController();
    stream.once("close", () => gone.abort());
    const nodeName = await options.authenticate(request, connection, gone.signal);
    const { headers } = request;
    if (headers[AGENT_ID] !== nodeName) throw new GrpcError("permission-denied", `agentID is ${JSON.stringify(headers[AGENT_ID] ?? "")}, but must be the name of the node: ${JSON.stringify(nodeName)}`);
    if (stream.destroyed || options.stopping().aborted) throw new GrpcError("unavailable", "the server is stopping");

    const peerWindowBytes = countOf(headers[WINDOW]);
    const { initialBytes } = options.windows ?? WINDOW_LIMITS;
    widen(stream);
    stream.respond({
      ":status": 200, "content-type": GRPC_CONTENT_TYPE, [SERVER_ID]: options.serverId, [SERVER_COUNT]: String(options.serverCount()),
      ...(peerWindowBytes === undefined ? {} : { [WINDOW]: String(initialBytes) }),
    }, { waitForTrailers: true });
    response.addTrailers(grpcTrailers("ok")); // node's compatibility layer is who sends them

    const session = new NodeSession({
      ...options, nodeName, stream, peerWindowBytes,
      onClose(error) {
        stop.abort();
        remove(session);
        log.info("a node's tunnel is closed", { node: nodeName, ...(error ? { error } : {}) });
      },
    });
    const stop = new AbortController();
    options.stopping().addEventListener("abort", () => {
      response.addTrailers(grpcTrailers("unavailable", "the server is stopping"));
      stream.end();
    }, { once: true, signal: stop.signal });
    log.info("a node's tunnel is open", { node: nodeName, remoteAddress: connection.remoteAddress, credit: peerWindowBytes !== undefined });
    add(session);
    options.onOpen?.(nodeName, connection.remoteAddress, stop.signal);
    void watchOver(session, stream, { clock, signal: stop.signal });
  }

  return {
    serves: ({ url = "" }) => url === CONNECT_PATH || url.startsWith(`${CONNECT_PATH}?`),
    sessionOf,
    disconnect(nodeName, reason) {
      for (const session of [...(sessions.get(nodeName) ?? [])]) session.destroy(new Error(reason));
    },

    accept(request, response, connection) {
      if (connection.protocol !== "h2" || request.method !== "POST" || !(request.headers["content-type"] ?? "").startsWith(GRPC_CONTENT_TYPE)) {
        response.writeHead(415, { "content-type": "text/plain; charset=utf-8" }).end("this is a gRPC service\n");
        return;
      }
      const { stream } = request as unknown as Http2ServerRequest;
      stream.on("error", (error) => log.debug("an agent's stream failed", { error }));
      begin(request, response, connection).catch((error: unknown) => {
        const told = error instanceof GrpcError ? error : new GrpcError("unavailable", "the agent could not be authenticated", { cause: error });
        log.warn("an agent was turned away", { remoteAddress: connection.remoteAddress, error: told });
        try {
          if (!stream.destroyed) stream.respond({ ":status": 200, "content-type": GRPC_CONTENT_TYPE, ...grpcTrailers(told.code, told.message) }, { endStream: true });
        } catch (gone) {
          log.debug("an agent could not be told why", { error: gone }); // it has just left
          stream.destroy();
        }
      });
    },

    async arrival(nodeName, signal) {
      const here = sessionOf(nodeName);
      if (here || signal.aborted) return here;
      const { promise, resolve } = Promise.withResolvers<NodeSession | undefined>();
      const waiting = awaited.get(nodeName) ?? new Set();
      awaited.set(nodeName, waiting.add(resolve));
      const quit = (): void => resolve(undefined);
      signal.addEventListener("abort", quit, { once: true });
      try {
        return await promise;
      } finally {
        signal.removeEventListener("abort", quit);
        waiting.delete(resolve);
        if (waiting.size === 0 && awaited.get(nodeName) === waiting) awaited.delete(nodeName);
      }
    },
  };
}

/** All of a node's connections share this one: HTTP/2's usual 64 KiB for all of them would make every way longer than a LAN slow. */
function widen({ session }: ServerHttp2Stream): void {
  session?.settings({ initialWindowSize: HTTP2_WINDOW_BYTES });
  session?.setLocalWindowSize(HTTP2_WINDOW_BYTES);
}

/** A peer that vanished without a word is noticed by nothing else. */
async function watchOver(session: NodeSession, { session: http2 }: ServerHttp2Stream, { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<void> {
  if (!http2) return;
  let heard = 0;
  const hear = (): void => { heard++; };
  http2.on("ping", hear);
  let seen = -1;
  const count = (): number => heard + session.packetCount;
  for await (const _ of clock.every(SILENT_MS_MAX, signal)) {
    const now = count();
    const silent = now === seen;
    seen = now;
    if (!silent || http2.destroyed) continue;
    const late = unlessHeard(clock, ANSWER_MS_MAX, count, () => http2.destroy());
    if (!http2.ping(() => late.cancel())) late.cancel();
  }
  http2.off("ping", hear);
}

/** Source: pkg/server/metrics/metrics.go, the names of those we have. */
function registerMetrics(metrics: Metrics, sessions: ReadonlyMap<string, readonly NodeSession[]>): void {
  const sum = (of: (session: NodeSession) => number): number => [...sessions.values()].flat().reduce((total, session) => total + of(session), 0);
  metrics.gaugeFrom("konnectivity_network_proxy_server_ready_backends", "Number of konnectivity agent connected to the proxy server", () => [[{}, sessions.size]]);
  metrics.gaugeFrom("konnectivity_network_proxy_server_established_connections", "Current number of established end-to-end connections (post-dial).", () => [[{}, sum(({ connectionCount }) => connectionCount)]]);
  metrics.gaugeFrom("konnectivity_network_proxy_server_pending_backend_dials", "Current number of pending backend dial requests", () => [[{}, sum(({ dialCount }) => dialCount)]]);
}
