/**
 * Endpoints that speak HTTP/2, as gRPC servers do (appProtocol kubernetes.io/h2c), without TLS unless a policy says so: one connection each, which all requests share;
 * another one where an endpoint takes no more at once on those there are.
 *
 * Source: https://kubernetes.io/docs/reference/networking/service-protocols/  RFC 9113 section 3.3 (prior knowledge)
 */
import * as http2 from "node:http2";
import { Readable } from "node:stream";
import type { Endpoint } from "../../core/ingress/endpoints.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { checkHead } from "../../core/net/http2-head.ts";
import "../../core/net/spent-connections.ts";
import "../../core/net/unasked-streams.ts";
import "../../core/net/waiting-frames.ts";
import { serverMayWiden } from "../../core/net/widened-windows.ts";
import type { HeaderPairs } from "../../core/net/response-head.ts";
import { dialSecurely, keyOf, type Upstreams, type UpstreamTls } from "./upstreams.ts";

export interface Http2Response {
  readonly status: number;
  readonly headers: HeaderPairs;
  readonly body: Readable;
  /** The headers are all there is: a gRPC call that failed, whose client wants to be told by the headers' own end. */
  readonly headersOnly: boolean;
  /** When the body has ended: whether the endpoint had said all, or was cut off. */
  readonly isWhole: () => boolean;
  /** What came behind the body; complete when that has ended. */
  readonly trailers: () => http2.OutgoingHttpHeaders | undefined;
}

interface Request { readonly scheme: "http" | "https"; readonly method: string; readonly target: string; readonly headers: HeaderPairs; readonly body?: Readable | undefined }
/** `active`: requests under way, or that wait for it. */
interface Shared { readonly session: Promise<http2.ClientHttp2Session>; active: number; activeMax: number; quietSinceMs: number }

/** A gRPC client that is quiet for longer makes its next call on a new connection. */
const IDLE_MS_MAX = 60_000;
/** Until the endpoint has said how many requests it takes at once on a connection. Source: golang.org/x/net/http2 initialMaxConcurrentStreams */
const ACTIVE_FIRST = 100;
/** One that was there may have just been closed. */
const LOST_MAX = 2;
/** As long as a dial may take. */
const SETTINGS_MS_MAX = 5_000;
/** Source: RFC 9113 section 6.2 */
const END_STREAM = 1;

export class H2Upstreams {
  readonly #clock: Clock;
  readonly #dial: Pick<Upstreams, "dial">;
  readonly #shared = new Map<string, Shared[]>();

  constructor(clock: Clock, dial: Pick<Upstreams, "dial">) {
    this.#clock = clock;
    this.#dial = dial;
  }

  /** Resolves once there is a connection; the request has not been sent then. A place on it is kept for the one that is asked next. */
  async connect(endpoint: Endpoint, tls: UpstreamTls | undefined): Promise<(request: Omit<Request, "scheme">, signal: AbortSignal) => Promise<Http2Response>> {
    for (let lost = 0; lost < LOST_MAX;) {
      const own = this.#place(endpoint, tls);
      const done = (): void => {
        own.active--;
        own.quietSinceMs = this.#clock.uptimeMs();
      };
      const session = await own.session.catch((error: unknown) => {
        done();
        throw error;
      });
      if (!isOver(session) && own.active <= own.activeMax) return async (request, signal) => {
        try {
          return await send(session, { ...request, scheme: tls ? "https" : "http" }, signal, done);
        } catch (error) {
          if (error instanceof NotSent) done();
          throw error;
        }
      };
      done();
      if (!isOver(session)) continue; // more have waited for it than it takes
      this.#forget(keyOf(endpoint, tls), own);
      lost++;
    }
    throw new Error("the endpoint closed the connection");
  }

  /** On the first connection that has room; a new one is everybody's at once, so that nobody makes another. */
  #place(endpoint: Endpoint, tls: UpstreamTls | undefined): Shared {
    const key = keyOf(endpoint, tls), those = this.#shared.get(key) ?? [];
    const free = those.find(({ active, activeMax }) => active < activeMax);
    if (free) {
      free.active++;
      return free;
    }
    const session = this.#open(endpoint, tls, { forget: () => this.#forget(key, made), allows: (count) => { made.activeMax = Math.max(1, count); } });
    const made: Shared = { session, active: 1, activeMax: those[0]?.activeMax ?? ACTIVE_FIRST, quietSinceMs: this.#clock.uptimeMs() };
    this.#shared.set(key, [...those, made]);
    return made;
  }

  #forget(key: string, gone: Shared): void {
    const left = (this.#shared.get(key) ?? []).filter((one) => one !== gone);
    if (left.length > 0) this.#shared.set(key, left);
    else this.#shared.delete(key);
  }

  /** Closes what has been quiet for too long, or everything. */
  sweep(olderThanMs: number = IDLE_MS_MAX): void {
    for (const [key, those] of this.#shared) {
      for (const one of those) {
        if (olderThanMs > 0 && (one.active > 0 || this.#clock.uptimeMs() - one.quietSinceMs < olderThanMs)) continue;
        this.#forget(key, one);
        one.session.then((open) => open.close(), () => undefined); // one that never opened needs no closing
      }
    }
  }

  /** `allows`: is told how many requests the endpoint takes at once. */
  async #open(endpoint: Endpoint, tls: UpstreamTls | undefined, { forget, allows }: { readonly forget: () => void; readonly allows: (count: number) => void }): Promise<http2.ClientHttp2Session> {
    try {
      const { signal } = new AbortController(); // not one client's: others wait for it too
      const plain = await this.#dial.dial(endpoint, signal);
      const socket = tls ? await dialSecurely(plain, endpoint, { tls, alpn: "h2", signal }) : plain;
      socket.once("end", () => void socket.destroy()); // half a connection is none: who waits for an answer on it would wait for ever
      const session = http2.connect("http://endpoint", { createConnection: () => socket });
      serverMayWiden(session);
      session.on("error", forget).on("goaway", forget).on("close", forget).on("remoteSettings", ({ maxConcurrentStreams = ACTIVE_FIRST }) => allows(maxConcurrentStreams));
      await begun(session, this.#clock);
      return session;
    } catch (error) {
      forget();
      throw error;
    }
  }
}

/** The endpoint has said how many requests it takes at once, or nothing for too long. */
async function begun(session: http2.ClientHttp2Session, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const alarm = clock.after(SETTINGS_MS_MAX, resolve);
  for (const event of ["remoteSettings", "error", "close"] as const) session.once(event, () => resolve());
  await promise;
  alarm.cancel();
}

function send(session: http2.ClientHttp2Session, { scheme, method, target, headers, body }: Request, signal: AbortSignal, done: () => void): Promise<Http2Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Http2Response>();
  const sent = Object.assign(Object.create(null) as Record<string, string | string[]>, { ":method": method, ":path": target, ":scheme": scheme }); // "constructor" is a name like any
  for (const [name, value] of headers) {
    const to = name === "host" ? ":authority" : name, before = sent[to];
    sent[to] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
  }
  const stream = requested(session, sent, { endStream: body === undefined });
  const isWhole = keepSaid(stream, signal), said = saidBy(stream);
  let trailers: http2.OutgoingHttpHeaders | undefined;
  const quit = (): void => {
    if (body === undefined || stream.writableEnded) stream.close(http2.constants.NGHTTP2_CANCEL);
    else stream.destroy(new Error("canceled")); // of `close` Bun makes an end like any: half a request would look whole
  };
  signal.addEventListener("abort", quit, { once: true });
  stream.once("response", ({ ":status": status = 502, ...received }, flags) => resolve({ status, headers: pairsOf(received), body: said, headersOnly: (flags & END_STREAM) !== 0, isWhole, trailers: () => trailers }));
  stream.once("trailers", (received) => { trailers = Object.fromEntries(Object.entries(received).filter(([name]) => !name.startsWith(":"))); });
  stream.on("error", reject);
  stream.once("close", () => {
    reject(signal.aborted ? signal.reason : new Error(`the endpoint closed the stream (${stream.rstCode})`));
    signal.removeEventListener("abort", quit);
    done();
  });
  body?.on("error", quit).pipe(stream);
  if (signal.aborted) quit();
  return promise;
}

/**
 * What an endpoint says, for whoever reads it in time: head, body and end may come in one piece, and of the engine's own stream who listens a little later has missed the end. It is told of a failure
 * once who has waited for the head listens.
 */
function saidBy(stream: http2.ClientHttp2Stream): Readable {
  const said = new Readable({
    read: () => void stream.resume(),
    destroy(error, done) {
      if (!said.readableEnded) stream.destroy(); // else the request may go on
      done(error);
    },
  });
  let hasEnded = false;
  stream.on("data", (piece: Buffer) => { if (!said.push(piece)) stream.pause(); });
  stream.once("end", () => {
    hasEnded = true;
    said.push(null);
  });
  stream.on("error", (error) => setImmediate(() => said.destroy(error)));
  stream.once("close", () => { if (!hasEnded) setImmediate(() => said.destroy()); });
  return said.on("error", () => undefined);
}

/**
 * An endpoint that has said all may reset the stream, as it wants no more of the request (RFC 9113 section 8.1): every server of gRPC in Go does. What its client has not taken by then
 * the engine would throw away; here it can still be read, until `signal` aborts. Returns whether the endpoint has said all.
 */
function keepSaid(stream: http2.ClientHttp2Stream, signal: AbortSignal): () => boolean {
  let saidAll = false;
  const push = stream.push.bind(stream), destroy = stream._destroy.bind(stream);
  stream.push = (piece: unknown, encoding?: BufferEncoding) => {
    if (piece === null) saidAll ||= stream.rstCode === 0; // of what is cut off the engine makes an end, too, and says 0 of one that came
    return push(piece, encoding);
  };
  stream._destroy = (error, done) => destroy(error, (failure) => {
    if (error || !saidAll || stream.readableEnded || signal.aborted) return done(failure);
    const over = (): void => {
      stream.off("end", over);
      signal.removeEventListener("abort", over);
      done(failure);
    };
    stream.on("end", over);
    signal.addEventListener("abort", over, { once: true });
  });
  return () => saidAll || !stream.rstCode;
}

/** There is no stream: its headers are none that HTTP/2 has, or the connection has just ended. */
class NotSent extends Error { override readonly name = "NotSent"; }

function requested(session: http2.ClientHttp2Session, headers: http2.OutgoingHttpHeaders, options: http2.ClientSessionRequestOptions): http2.ClientHttp2Stream {
  try {
    checkHead(headers as Record<string, string | string[]>); // others' requests are on that connection
    return session.request(headers, options);
  } catch (cause) {
    throw new NotSent((cause as Error).message, { cause });
  }
}

function isOver({ closed, destroyed }: http2.ClientHttp2Session): boolean { return closed || destroyed; }

function pairsOf(headers: http2.IncomingHttpHeaders): HeaderPairs {
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => (name.startsWith(":") || value === undefined ? [] : (Array.isArray(value) ? value : [value]).map((one) => [name, one])));
}
