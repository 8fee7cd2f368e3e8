/**
 * `fetch` over HTTP/2 where one process sends many requests and holds many watches: all that show the same certificate share a connection, as those of a client in Go do.
 * (The engine's own opens one for each request under way, and keeps no more than 64 of them idle.)
 *
 *   const fetch = http2Fetch({ clock, signal });
 *   const transport = httpTransport({ server, credentials, clock, fetch });
 *   fetch.reconnect("the server was away");     what is under way fails, what comes next has a new connection
 *
 * A connection takes as many requests at once as its server allows; beyond, there is another one. It ends with `signal`, when the server ends it, when nothing has
 * come for a while and a ping is not answered, or when nobody has used it for a while: that of a certificate that was renewed, for one. A request that the server says
 * it has not begun is sent again. With a server that has no HTTP/2 the engine's own fetch talks.
 *
 * Source: golang.org/x/net/http2 transport.go; kubernetes v1.36 apimachinery/pkg/util/net/http.go (ReadIdleTimeout, PingTimeout, IdleConnTimeout, the dialer's timeout)
 */
import * as http2 from "node:http2";
import type { Clock } from "../lifecycle/clock.ts";
import { dialOrigin } from "./dial-origin.ts";
import type { ProxyOf } from "./environment-proxy.ts";
import { type FetchAnswer, Http2Answer } from "./http2-body.ts";
import { checkHead } from "./http2-head.ts";
import "./spent-connections.ts";
import "./waiting-frames.ts";
import { unlessHeard } from "./unless-heard.ts";

export interface FetchInit {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** PEM; serverName: the name the server's certificate must carry, where it is not the host of the URL. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string; readonly serverName?: string } | undefined;
}

/** Throws what kept the answer from coming, and the signal's reason once it has aborted. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchAnswer>;

export interface Http2Fetch extends Fetch {
  /** Leaves all connections: what is under way on them fails with `reason`. */
  reconnect(reason: string): void;
}

export interface Http2FetchOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Absent: straight to every server. */
  readonly proxyOf?: ProxyOf | undefined;
  /** Nothing came for so long: a ping is sent. */
  readonly readIdleMs?: number;
  readonly pingMsMax?: number;
  /** No request was under way for so long: the connection ends. */
  readonly idleMs?: number;
}

/** A connection, or one that is being made: requests that wait for it count already. */
interface Open {
  readonly origin: string;
  readonly material: NonNullable<FetchInit["tls"]>;
  readonly session: Promise<http2.ClientHttp2Session | undefined>;
  opened?: http2.ClientHttp2Session;
  streams: number;
  streamsMax: number;
  /** Of the clock's uptime: when the server last sent anything, and when the last request was over. */
  heardMs: number;
  usedMs: number;
  ended: boolean;
  end(error: Error): void;
}

const READ_IDLE_MS = 30_000;
const PING_MS_MAX = 15_000;
const IDLE_MS = 90_000;
/** Until the server has said how many it takes. */
const STREAMS_FIRST = 100;
/**
 * What may be under way to this side, on one stream and on all of them: with HTTP/2's usual 64 KiB a watch gets no more than that each time the server has heard of what was read,
 * which behind many requests, or on a slow way, is seconds late. The same for both: the engine tells of what a stream has read by halves of the connection's.
 * Source: golang.org/x/net/http2 transportDefaultStreamFlow
 */
const WINDOW_BYTES = 4 * 1024 * 1024;
/** A request that a server has refused so often is not sent again. */
const REFUSALS_MAX = 6;

export async function engineFetch(url: string, init: FetchInit): Promise<Response> {
  return await fetch(url, { ...init, redirect: "manual", timeout: false } as RequestInit); // Bun's own limit of five minutes would end quiet watches
}

export function http2Fetch({ clock, signal: life, proxyOf, readIdleMs = READ_IDLE_MS, pingMsMax = PING_MS_MAX, idleMs = IDLE_MS }: Http2FetchOptions): Http2Fetch {
  const connections = new Map<string, Open[]>(); // for what comes next, by the certificate that is shown
  const all = new Set<Open>(); // those as well that only end what is under way on them
  const older = new Set<string>(); // origins without HTTP/2

  /** One with room for another request, made if need be. */
  function connection(origin: string, material: FetchInit["tls"] = {}): Open {
    const { cert = "", ca, serverName } = material;
    const those = connections.get(cert) ?? [];
    const free = those.find((one) => one.streams < one.streamsMax && one.origin === origin && one.material.ca === ca && one.material.serverName === serverName);
    if (free) return free;
    const made = open(origin, material, () => {
      const left = (connections.get(cert) ?? []).filter((one) => one !== made);
      if (left.length > 0) connections.set(cert, left);
      else connections.delete(cert);
    });
    connections.set(cert, [...those, made]);
    return made;
  }

  function open(origin: string, material: NonNullable<FetchInit["tls"]>, forget: () => void): Open {
    const quit = new AbortController();
    let session: http2.ClientHttp2Session | undefined;
    const end = (error: Error): void => {
      leave();
      quit.abort(error);
      session?.destroy(error);
    };
    const leave = (): void => {
      if (made.ended) return;
      made.ended = true;
      alarm.cancel();
      life.removeEventListener("abort", stop);
      all.delete(made);
      forget();
    };
    const stop = (): void => end(life.reason instanceof Error ? life.reason : new Error("http2: client connection force closed"));
    const made: Open = { origin, material, session: connect(), streams: 0, streamsMax: STREAMS_FIRST, heardMs: clock.uptimeMs(), usedMs: clock.uptimeMs(), ended: false, end };
    let alarm = clock.after(Math.min(readIdleMs, idleMs), look);
    all.add(made);
    life.addEventListener("abort", stop, { once: true });
    made.session.catch(leave);
    return made;

    async function connect(): Promise<http2.ClientHttp2Session | undefined> {
      const socket = await dialOrigin(origin, { proxyOf, tls: material, alpn: ["h2", "http/1.1"], clock, signal: quit.signal });
      if (socket.alpnProtocol !== "h2") {
        socket.destroy();
        leave();
        return undefined;
      }
      const opened = http2.connect(origin, { createConnection: () => socket, settings: { enablePush: false, initialWindowSize: WINDOW_BYTES } });
      session = made.opened = opened;
      session.setMaxListeners(0); // one for each request under way
      session.once("connect", () => opened.setLocalWindowSize(WINDOW_BYTES));
      session.on("error", leave).on("goaway", forget).on("close", leave); // its streams say why
      session.on("remoteSettings", ({ maxConcurrentStreams }) => { made.streamsMax = maxConcurrentStreams ?? made.streamsMax; });
      return session;
    }

    function look(): void {
      const nowMs = clock.uptimeMs();
      const unusedMs = made.streams > 0 ? 0 : nowMs - made.usedMs;
      if (unusedMs >= idleMs) return void leaveQuietly();
      const leftMs = made.heardMs + readIdleMs - nowMs;
      if (leftMs > 0 || !session || made.streams === 0) return void (alarm = clock.after(Math.max(1, Math.min(leftMs > 0 ? leftMs : readIdleMs, idleMs - unusedMs)), look));
      alarm = unlessHeard(clock, pingMsMax, () => made.heardMs, () => end(new Error("http2: client connection lost")));
      session.ping((error) => {
        if (error || made.ended) return;
        made.heardMs = clock.uptimeMs();
        alarm.cancel();
        alarm = clock.after(readIdleMs, look);
      });
    }

    function leaveQuietly(): void {
      leave();
      session?.close();
    }
  }

  /** The answer; "refused": the server has not begun with it; "http/1.1": it cannot be asked so. */
  async function ask(on: Open, url: URL, { method, headers, body, signal }: FetchInit): Promise<FetchAnswer | "refused" | "http/1.1"> {
    const head = { ":method": method, ":path": url.pathname + url.search, "accept-encoding": "gzip", ...headers };
    checkHead({ ...head, ":scheme": "https", ":authority": url.host });
    on.streams++;
    const free = (): void => {
      on.streams--;
      on.usedMs = clock.uptimeMs();
    };
    let session: http2.ClientHttp2Session | undefined;
    try {
      session = on.opened ?? await unlessAborted(on.session, signal);
    } catch (error) {
      free();
      throw error;
    }
    if (!session || session.closed || session.destroyed) {
      free();
      return session ? "refused" : "http/1.1";
    }
    const stream = session.request(head, { endStream: body === undefined });
    const { promise, resolve, reject } = Promise.withResolvers<FetchAnswer | "refused">();
    const quit = (): void => stream.close(http2.constants.NGHTTP2_CANCEL);
    const failure = (): unknown => (signal.aborted ? signal.reason : stream.rstCode ? new Error(`http2: the stream was closed (${stream.rstCode})`) : undefined);
    const heard = (): void => { on.heardMs = clock.uptimeMs(); };
    signal.addEventListener("abort", quit, { once: true });
    stream.on("response", (received) => {
      heard();
      resolve(new Http2Answer(stream, received, { heard, failure }));
    });
    stream.on("error", (error) => (stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM ? resolve("refused") : reject(error)));
    stream.once("close", () => {
      signal.removeEventListener("abort", quit);
      free();
      if (stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM) resolve("refused");
      reject(failure() ?? new Error("http2: the stream ended without an answer"));
    });
    if (body !== undefined) stream.end(body);
    return await promise;
  }

  async function request(url: string, init: FetchInit): Promise<FetchAnswer> {
    const parsed = new URL(url);
    for (let refusals = 0; !older.has(parsed.origin); refusals++) {
      init.signal.throwIfAborted();
      life.throwIfAborted();
      const answer = await ask(connection(parsed.origin, init.tls), parsed, init);
      if (answer === "http/1.1") older.add(parsed.origin);
      else if (answer !== "refused") return answer;
      if (refusals === REFUSALS_MAX) throw new Error("http2: the server refuses the stream");
    }
    return await engineFetch(url, init);
  }

  return Object.assign(request, {
    reconnect(reason: string): void {
      older.clear();
      for (const one of [...all]) one.end(new Error(reason));
    },
  });
}

/** What others wait for as well goes on without who gives up. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const quit = (): void => reject(signal.reason);
  signal.addEventListener("abort", quit, { once: true });
  if (signal.aborted) quit();
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", quit);
  }
}
