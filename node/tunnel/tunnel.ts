/**
 * The node's end of the tunnel (core/tunnel): keeps a stream open to every server, and dials for them what the allow-list permits.
 *
 *   const agent = tunnelAgent({ nodeName, identifiers, servers, credentials, allowed: (address) => allowedAddress(address, list), clock, random, log, metrics });
 *   runAll([…, agent], signal)
 *
 * A stream that breaks is opened again, after a time that grows and is never quite the same, so that many nodes do not come back at once. A server that falls silent is
 * noticed by an unanswered ping.
 *
 * Servers say who they are and how many there are. Two addresses of one server get one stream; an address behind which there are several servers (a load balancer) is
 * dialled until there is a stream to as many as there are. A server that came later, to be reached in no other way, is found when a stream is next opened.
 */
import type * as http2 from "node:http2";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { ProxyOf } from "../../core/net/environment-proxy.ts";
import { grpcErrorOf } from "../../core/net/grpc/status.ts";
import { unlessHeard } from "../../core/net/unless-heard.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import type { AgentIdentifiers } from "../../core/tunnel/headers.ts";
import { WINDOW_LIMITS, type WindowLimits } from "../../core/tunnel/window.ts";
import { AgentSession } from "./agent-session.ts";
import type { Address } from "./allow-list.ts";
import { openStream, type TunnelCredentials } from "./open-stream.ts";

export interface TunnelAgentOptions {
  readonly nodeName: string;
  readonly identifiers: AgentIdentifiers;
  /** https://host:port of every server; asked again now and then. */
  readonly servers: () => readonly string[];
  /** Asked for each connection: certificates are renewed while running. */
  readonly credentials: () => TunnelCredentials;
  /** Where "host:port" is to be dialled; undefined: not allowed. */
  readonly allowed: (address: string) => Address | undefined;
  readonly windows?: WindowLimits | undefined;
  /** Absent: straight to every server. */
  readonly proxyOf?: ProxyOf | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface TunnelAgent extends Runnable {
  /** Servers there is a stream to now, by address. */
  connected(): readonly string[];
}

const SERVERS_CHECK_MS = 3_000;
/** Source: pkg/agent/clientset.go syncInterval and its cap. */
const RETRY = { minMs: 500, maxMs: 10_000 };
/** A server that was met again where another one should be: tried again after so long. */
const MET_AGAIN = { minMs: 1_000, maxMs: 30_000 };
/** A stream that held this long was no failure to open one. */
const HELD_MS = 10_000;
/** NATs forget connections that are silent for some minutes, often after 5, some after 30 s. */
const PING_MS = 20_000;
/** Source: google.golang.org/grpc/keepalive ClientParameters.Timeout */
const PONG_MS_MAX = 20_000;
/** Connections under way get so long when the agent stops. */
const DRAIN_MS_MAX = 1_000;
const DRAIN_CHECK_MS = 50;

export function tunnelAgent(options: TunnelAgentOptions): TunnelAgent {
  const { clock, random, log } = options;
  const open = new Set<Held>();
  let serverCount = 1; // as one of them said last
  const count = agentMetrics(options.metrics, open, () => Math.max(serverCount, options.servers().length));

  async function keepOpen(keeper: Keeper): Promise<void> {
    const { server, signal } = keeper;
    for (let failures = 0; !signal.aborted; ) {
      const startMs = clock.uptimeMs();
      try {
        await hold(keeper);
        failures = clock.uptimeMs() - startMs >= HELD_MS ? 1 : failures + 1;
      } catch (error) {
        failures++;
        if (!signal.aborted) log.warn("no tunnel to the server, next try soon", { server, error });
      }
      if (!signal.aborted) await clock.sleep(backoffMs(failures, RETRY) * (0.5 + random.next()), signal);
    }
  }

  /** One stream, from its opening to its end. */
  async function hold(keeper: Keeper): Promise<void> {
    const { server, signal } = keeper;
    const { session: http2, stream, serverId, peerWindowBytes, ...told } = await openStream({
      server, credentials: options.credentials(), agentId: options.nodeName, identifiers: options.identifiers, windowBytes: (options.windows ?? WINDOW_LIMITS).initialBytes, proxyOf: options.proxyOf, clock, signal,
    });
    serverCount = told.serverCount;
    const other = [...open].find((one) => one.serverId === serverId);
    if (other) {
      http2.destroy();
      return await waitBehind(other, keeper);
    }
    keeper.met = 0;
    const closed = Promise.withResolvers<Error | undefined>();
    let farewell: Error | undefined;
    stream.on("trailers", (trailers) => { farewell = grpcErrorOf(trailers); });
    const session = new AgentSession({ ...options, stream, peerWindowBytes, onDial: count, onClose: closed.resolve });
    const held: Held = { keeper, serverId, session, closed: closed.promise };
    open.add(held);
    log.info("the tunnel to the server is open", { server, serverId, credit: peerWindowBytes !== undefined });
    const ended = new AbortController();
    void keepAlive(http2, { heard: () => session.packetCount, clock, signal: ended.signal });
    const leave = (): void => void drain(session, clock, ended.signal);
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    const error = (await closed.promise) ?? farewell;
    open.delete(held);
    ended.abort();
    signal.removeEventListener("abort", leave);
    http2.destroy();
    log.info("the tunnel to the server is closed", { server, ...(error ? { error } : {}) });
  }

  /** There is a stream to that server already: until it fails or, while there are servers without one, until it is time to see whether the address leads to another now. */
  async function waitBehind(other: Held, keeper: Keeper): Promise<void> {
    keeper.met++;
    const over = new AbortController();
    const signal = AbortSignal.any([keeper.signal, over.signal]);
    void other.closed.then(() => over.abort());
    do await clock.sleep(backoffMs(keeper.met, MET_AGAIN) * (0.5 + random.next()), signal); while (!signal.aborted && open.size >= serverCount);
  }

  /** One keeper an address; one more where all have a stream while there are servers without. */
  function adjust(keepers: Set<Keeper>, begin: (server: string) => Keeper): void {
    const servers = new Set(options.servers());
    const isOpen = (keeper: Keeper): boolean => [...open].some((held) => held.keeper === keeper);
    const drop = (keeper: Keeper): void => { keepers.delete(keeper); keeper.stop.abort(); };
    for (const keeper of keepers) if (!servers.has(keeper.server)) drop(keeper);
    for (const server of servers) {
      const own = [...keepers].filter((keeper) => keeper.server === server);
      const idle = own.filter((keeper) => !isOpen(keeper));
      if (own.length === 0 || (idle.length === 0 && open.size < serverCount)) keepers.add(begin(server));
      else if (open.size >= serverCount) for (const keeper of idle.slice(own.length === idle.length ? 1 : 0)) drop(keeper);
    }
  }

  return {
    name: "tunnel",
    connected: () => [...open].map(({ keeper: { server } }) => server),
    async run(signal, ready) {
      ready(); // servers may be away for long
      const keepers = new Set<Keeper>(), ended = new Set<Promise<void>>();
      const begin = (server: string): Keeper => {
        const stop = new AbortController();
        const keeper: Keeper = { server, stop, signal: AbortSignal.any([signal, stop.signal]), met: 0 };
        const life = keepOpen(keeper).finally(() => ended.delete(life));
        ended.add(life);
        return keeper;
      };
      for await (const _ of clock.every(SERVERS_CHECK_MS, signal)) adjust(keepers, begin);
      await Promise.all(ended);
    },
  };
}

/** Who sees to a stream by way of one address. */
interface Keeper {
  readonly server: string;
  readonly stop: AbortController;
  readonly signal: AbortSignal;
  /** How often in a row a server was there that has a stream already. */
  met: number;
}

interface Held { readonly keeper: Keeper; readonly serverId: string; readonly session: AgentSession; readonly closed: Promise<unknown> }

/** A server that does not answer, and says nothing else, is gone, whatever the kernel still believes. */
async function keepAlive(session: http2.ClientHttp2Session, { heard, clock, signal }: { readonly heard: () => number; readonly clock: Clock; readonly signal: AbortSignal }): Promise<void> {
  for await (const _ of clock.every(PING_MS, signal)) {
    if (session.destroyed) return;
    const late = unlessHeard(clock, PONG_MS_MAX, heard, () => session.destroy());
    if (!session.ping(() => late.cancel())) late.cancel();
  }
}

/** The server dials here no more; what is under way may end. */
async function drain(session: AgentSession, clock: Clock, ended: AbortSignal): Promise<void> {
  session.drain();
  for (let waitedMs = 0; session.connectionCount > 0 && waitedMs < DRAIN_MS_MAX && !ended.aborted; waitedMs += DRAIN_CHECK_MS) await clock.sleep(DRAIN_CHECK_MS, ended);
  session.destroy();
}

/** Source: pkg/agent/metrics/metrics.go, the names of those we have. */
function agentMetrics(metrics: Metrics, open: ReadonlySet<Held>, serverCount: () => number): (result: "connected" | "not-allowed" | "failed", durationMs: number) => void {
  const name = (text: string): string => `konnectivity_network_proxy_agent_${text}`;
  const duration = metrics.histogram(name("dial_duration_seconds"), "Latency of dial to the remote endpoint in seconds", [0.005, 0.025, 0.1, 0.5, 2.5, 10, 30]);
  const failures = metrics.counter(name("endpoint_dial_failure_total"), "Number of failures dialing the remote endpoint, by reason (example: timeout).");
  metrics.gaugeFrom(name("open_server_connections"), "Current number of open server connections.", () => [[{}, open.size]]);
  metrics.gaugeFrom(name("known_server_count"), "Current number of servers agent is trying to connect to.", () => [[{}, serverCount()]]);
  metrics.gaugeFrom(name("open_endpoint_connections"), "Current number of open endpoint connections.", () => [[{}, [...open].reduce((sum, { session }) => sum + session.connectionCount, 0)]]);
  return (result, durationMs) => {
    if (result === "connected") duration.observe(durationMs / 1000);
    else failures.inc({ reason: result === "not-allowed" ? "not_allowed" : "unknown" });
  };
}
