/**
 * `fetch` over HTTP/2 where one process speaks for many: all requests that show the same certificate share one connection, as those of a client in Go do.
 * (The engine's own keeps no more than 64 connections idle, whoever they are of: beyond, each request costs a TLS handshake on both sides.)
 *
 *   const transport = httpTransport({ server, credentials, clock, fetch: http2Fetch({ clock, signal }) });
 *
 * A connection ends with `signal`, when the server ends it, or when nothing has come for a while and a ping is not answered.
 *
 * Source: golang.org/x/net/http2 transport.go; kubernetes v1.36 apimachinery/pkg/util/net/http.go (ReadIdleTimeout, PingTimeout)
 */
import * as http2 from "node:http2";
import type { Clock } from "../lifecycle/clock.ts";

export interface FetchInit {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** PEM; serverName: the name the server's certificate must carry, where it is not the host of the URL. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string; readonly serverName?: string } | undefined;
}

/** Throws what kept the answer from coming, and the signal's reason once it has aborted. */
export type Fetch = (url: string, init: FetchInit) => Promise<Response>;

interface Open { readonly session: http2.ClientHttp2Session; heardMs: number }

const READ_IDLE_MS = 30_000;
const PING_MS_MAX = 15_000;
/** An answer without a body: Response insists on it. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

export function http2Fetch({ clock, signal: life, readIdleMs = READ_IDLE_MS, pingMsMax = PING_MS_MAX }: { readonly clock: Clock; readonly signal: AbortSignal; readonly readIdleMs?: number; readonly pingMsMax?: number }): Fetch {
  const open = new Map<string, Open>();

  function connection(origin: string, tls: FetchInit["tls"] = {}): Open {
    const key = [origin, tls.serverName, tls.cert, tls.ca].join("\n");
    const known = open.get(key);
    if (known && !known.session.closed && !known.session.destroyed) return known;
    const { serverName, ...material } = tls;
    const session = http2.connect(origin, { ...material, ...(serverName === undefined ? {} : { servername: serverName }), settings: { enablePush: false } });
    const made: Open = { session, heardMs: clock.uptimeMs() };
    let alarm = clock.after(readIdleMs, look);
    const end = (): void => session.destroy();
    const forget = (): void => {
      alarm.cancel();
      life.removeEventListener("abort", end);
      if (open.get(key) === made) open.delete(key);
    };
    session.setMaxListeners(0); // one for each request under way
    session.on("error", forget).on("goaway", forget).on("close", forget); // its streams say why
    life.addEventListener("abort", end, { once: true });
    open.set(key, made);
    return made;

    function look(): void {
      const leftMs = made.heardMs + readIdleMs - clock.uptimeMs();
      if (leftMs > 0) return void (alarm = clock.after(leftMs, look));
      alarm = clock.after(pingMsMax, () => session.destroy(new Error("http2: client connection lost")));
      if (session.connecting) return;
      session.ping((error) => {
        if (error) return;
        made.heardMs = clock.uptimeMs();
        alarm.cancel();
        alarm = clock.after(readIdleMs, look);
      });
    }
  }

  return async (url, { method, headers, body, signal, tls }) => {
    signal.throwIfAborted();
    const { origin, pathname, search } = new URL(url);
    const on = connection(origin, tls);
    const stream = on.session.request({ ":method": method, ":path": pathname + search, ...headers }, { endStream: body === undefined });
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const quit = (): void => stream.close(http2.constants.NGHTTP2_CANCEL);
    const failure = (): unknown => (signal.aborted ? signal.reason : stream.rstCode ? new Error(`http2: the stream was closed (${stream.rstCode})`) : undefined);
    signal.addEventListener("abort", quit, { once: true });
    on.session.once("error", reject); // it could not connect: its streams only end
    stream.on("response", ({ ":status": status = 502, ...received }) => {
      on.heardMs = clock.uptimeMs();
      resolve(new Response(BODILESS.has(status) ? null : bodyOf(stream, { heard: () => { on.heardMs = clock.uptimeMs(); }, failure }), { status, headers: pairsOf(received) }));
    });
    stream.on("error", reject);
    stream.once("close", () => {
      signal.removeEventListener("abort", quit);
      on.session.off("error", reject);
      reject(failure() ?? new Error("http2: the stream ended without an answer"));
    });
    if (body !== undefined) stream.end(body);
    return await promise;
  };
}

/** Reads no faster than its reader. `heard` is called for each piece; `failure` says why it ended early, if it did. */
function bodyOf(stream: http2.ClientHttp2Stream, { heard, failure }: { readonly heard: () => void; readonly failure: () => unknown }): ReadableStream<Uint8Array> {
  let ended = false;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const end = (error: unknown): void => {
        if (ended) return;
        ended = true;
        if (error === undefined) controller.close();
        else controller.error(error);
      };
      stream.on("data", (piece: Uint8Array) => {
        heard();
        if (ended) return;
        controller.enqueue(piece);
        if ((controller.desiredSize ?? 0) <= 0) stream.pause();
      });
      stream.on("end", () => end(failure()));
      stream.on("close", () => end(failure() ?? new Error("http2: unexpected end of the stream")));
    },
    pull: () => void stream.resume(),
    cancel() {
      ended = true;
      stream.close(http2.constants.NGHTTP2_CANCEL);
    },
  });
}

function pairsOf(headers: http2.IncomingHttpHeaders): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => (name.startsWith(":") || value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]]));
}
