/**
 * Endpoints that speak HTTP/2, as gRPC servers do (appProtocol kubernetes.io/h2c), without TLS unless a policy says so: one connection each, which all requests share.
 *
 * Source: https://kubernetes.io/docs/reference/networking/service-protocols/  RFC 9113 section 3.3 (prior knowledge)
 */
import * as http2 from "node:http2";
import type { Readable } from "node:stream";
import type { Endpoint } from "../../core/ingress/endpoints.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { checkHead } from "../../core/net/http2-head.ts";
import "../../core/net/spent-connections.ts";
import "../../core/net/unasked-streams.ts";
import type { HeaderPairs } from "../../core/net/response-head.ts";
import { dialSecurely, keyOf, type Upstreams, type UpstreamTls } from "./upstreams.ts";

export interface Http2Response {
  readonly status: number;
  readonly headers: HeaderPairs;
  readonly body: Readable;
  /** The headers are all there is: a gRPC call that failed, whose client wants to be told by the headers' own end. */
  readonly headersOnly: boolean;
  /** What came behind the body; complete when that has ended. */
  readonly trailers: () => http2.OutgoingHttpHeaders | undefined;
}

interface Request { readonly scheme: "http" | "https"; readonly method: string; readonly target: string; readonly headers: HeaderPairs; readonly body?: Readable | undefined }
interface Shared { readonly session: Promise<http2.ClientHttp2Session>; active: number; quietSinceMs: number }

/** A gRPC client that is quiet for longer makes its next call on a new connection. */
const IDLE_MS_MAX = 60_000;
/** Source: RFC 9113 section 6.2 */
const END_STREAM = 1;

export class H2Upstreams {
  readonly #clock: Clock;
  readonly #dial: Pick<Upstreams, "dial">;
  readonly #shared = new Map<string, Shared>();

  constructor(clock: Clock, dial: Pick<Upstreams, "dial">) {
    this.#clock = clock;
    this.#dial = dial;
  }

  /** Resolves once there is a connection; the request has not been sent then. */
  async connect(endpoint: Endpoint, tls: UpstreamTls | undefined): Promise<(request: Omit<Request, "scheme">, signal: AbortSignal) => Promise<Http2Response>> {
    const key = keyOf(endpoint, tls);
    let shared = this.#shared.get(key);
    while (shared && isOver(await shared.session)) {
      if (this.#shared.get(key) === shared) this.#shared.delete(key);
      shared = this.#shared.get(key); // perhaps somebody else has made one meanwhile
    }
    if (!shared) { // nor does anybody, until it is noted
      shared = { session: this.#open(endpoint, tls, () => { if (this.#shared.get(key) === shared) this.#shared.delete(key); }), active: 0, quietSinceMs: this.#clock.uptimeMs() };
      this.#shared.set(key, shared);
    }
    const { session } = shared, own = shared;
    const connected = await session;
    return async (request, signal) => {
      const done = (): void => {
        own.active--;
        own.quietSinceMs = this.#clock.uptimeMs();
      };
      own.active++;
      try {
        return await send(connected, { ...request, scheme: tls ? "https" : "http" }, signal, done);
      } catch (error) {
        if (error instanceof NotSent) done();
        throw error;
      }
    };
  }

  /** Closes what has been quiet for too long, or everything. */
  sweep(olderThanMs: number = IDLE_MS_MAX): void {
    for (const [key, { session, active, quietSinceMs }] of this.#shared) {
      if (olderThanMs > 0 && (active > 0 || this.#clock.uptimeMs() - quietSinceMs < olderThanMs)) continue;
      this.#shared.delete(key);
      session.then((open) => open.close(), () => undefined); // one that never opened needs no closing
    }
  }

  async #open(endpoint: Endpoint, tls: UpstreamTls | undefined, forget: () => void): Promise<http2.ClientHttp2Session> {
    try {
      const { signal } = new AbortController(); // not one client's: others wait for it too
      const plain = await this.#dial.dial(endpoint, signal);
      const socket = tls ? await dialSecurely(plain, endpoint, { tls, alpn: "h2", signal }) : plain;
      const session = http2.connect("http://endpoint", { createConnection: () => socket });
      session.on("error", forget).on("goaway", forget).on("close", forget);
      return session;
    } catch (error) {
      forget();
      throw error;
    }
  }
}

function send(session: http2.ClientHttp2Session, { scheme, method, target, headers, body }: Request, signal: AbortSignal, done: () => void): Promise<Http2Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Http2Response>();
  const sent = Object.assign(Object.create(null) as Record<string, string | string[]>, { ":method": method, ":path": target, ":scheme": scheme }); // "constructor" is a name like any
  for (const [name, value] of headers) {
    const to = name === "host" ? ":authority" : name, before = sent[to];
    sent[to] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
  }
  const stream = requested(session, sent, { endStream: body === undefined });
  let trailers: http2.OutgoingHttpHeaders | undefined;
  const quit = (): void => {
    if (body === undefined || stream.writableEnded) stream.close(http2.constants.NGHTTP2_CANCEL);
    else stream.destroy(new Error("canceled")); // of `close` Bun makes an end like any: half a request would look whole
  };
  signal.addEventListener("abort", quit, { once: true });
  stream.once("response", ({ ":status": status = 502, ...received }, flags) => resolve({ status, headers: pairsOf(received), body: stream, headersOnly: (flags & END_STREAM) !== 0, trailers: () => trailers }));
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
