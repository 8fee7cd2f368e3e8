/**
 * Transport over HTTPS, for agents and tools outside the server's process.
 *
 *   const transport = httpTransport({ server: "https://10.0.0.1:6443", clock, credentials: () => ({ ca, cert, key }) });
 *
 * `credentials` is asked at every request, so a renewed certificate or token is used from the next request on.
 * A server that is too busy (429 and 5xx with Retry-After) is asked again, ten times at most, as client-go does.
 * A request without an answer after a minute is given up; a watch may last, its reader decides when it has been quiet for too long.
 */
import { stringify } from "../api/codec/json.ts";
import { errorText } from "../api/meta/error-text.ts";
import { type Status, StatusError, serviceUnavailable, statusError, type StatusReason, timeout } from "../api/meta/status-error.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { FetchAnswer } from "../net/http2-body.ts";
import { engineFetch, type Fetch } from "../net/http2-fetch.ts";
import { ANCHORS, KEY_AGREEMENTS } from "../net/tls.ts";
import { jsonLines } from "./json-lines.ts";
import type { ApiRequest, ApiWatchEvent, Transport } from "./transport.ts";

export interface Credentials {
  /** PEM certificates that may have signed the server's; absent: the machine's own list. */
  readonly ca?: string | undefined;
  /** PEM client certificate and its key. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** Bearer token. */
  readonly token?: string | undefined;
  /** The name the server's certificate must carry, where it is not the host of `server`. */
  readonly serverName?: string | undefined;
  /** Any certificate of the server's will do. */
  readonly insecure?: boolean | undefined;
}

interface Options {
  /** "https://host:port", perhaps with a path before "/api"; a function is asked at every request. */
  readonly server: string | (() => string);
  readonly credentials: () => Credentials;
  readonly clock: Clock;
  readonly userAgent?: string | undefined;
  readonly requestTimeoutMs?: number | undefined;
  /** Absent: the engine's own, over HTTP/1.1. */
  readonly fetch?: Fetch | undefined;
  /** Hears each answer's Date. */
  readonly onDate?: ((date: string) => void) | undefined;
}

const RETRIES_MAX = 10; // client-go rest.Request maxRetries
const REQUEST_TIMEOUT_MS = 60_000; // the server's own --request-timeout

export function httpTransport({ server, credentials, clock, userAgent = "coracle", requestTimeoutMs = REQUEST_TIMEOUT_MS, fetch = engineFetch, onDate }: Options): Transport {
  const rootNow = (): string => (typeof server === "string" ? server : server()).replace(/\/+$/, "");

  async function send(request: ApiRequest, body: string | undefined, signal: AbortSignal): Promise<FetchAnswer> {
    const root = rootNow();
    const { ca, cert, key, token, serverName, insecure } = credentials();
    const headers: Record<string, string> = { accept: "application/json", "user-agent": userAgent };
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    if (request.body !== undefined) headers["content-type"] = request.contentType ?? "application/json";
    const tls = { ...(root.startsWith("https:") ? KEY_AGREEMENTS : {}), ...(ca === undefined ? {} : { ca, ...ANCHORS }), ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }), ...(serverName === undefined ? {} : { serverName }), ...(insecure ? { rejectUnauthorized: false } : {}) };
    try {
      return await fetch(`${root}${request.path}${queryText(request.query)}`, {
        method: request.method, headers, signal,
        ...(body === undefined ? {} : { body }),
        ...(Object.keys(tls).length === 0 ? {} : { tls }),
      });
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      throw unreachable(root, cause);
    }
  }

  /** An answer of 2xx; others are thrown, after the retries they ask for. */
  async function ask(request: ApiRequest, signal: AbortSignal, body = encoded(request)): Promise<FetchAnswer> {
    for (let retries = 0; ; retries++) {
      const response = await send(request, body, signal);
      onDate?.(response.headers.get("date") ?? "");
      if (response.ok) {
        request.answered?.(response.status);
        return response;
      }
      const waitSeconds = Number(response.headers.get("retry-after") ?? Number.NaN);
      const busy = response.status === 429 || response.status >= 500;
      if (!busy || Number.isNaN(waitSeconds) || retries >= RETRIES_MAX) throw await errorOf(response, request);
      await response.body?.cancel();
      await clock.sleep(Math.max(waitSeconds, 1) * 1000, signal);
      signal.throwIfAborted();
    }
  }

  return {
    async call(request) {
      const root = rootNow();
      const late = new AbortController();
      const alarm = clock.after(requestTimeoutMs, () => late.abort(timeout(`no answer from ${root} within ${requestTimeoutMs / 1000}s`)));
      const signal = AbortSignal.any([request.signal, late.signal]);
      try {
        const body = encoded(request);
        const text = await textOf(await ask(request, signal, body), signal, root);
        request.sized?.({ sent: body === undefined ? 0 : Buffer.byteLength(body), received: Buffer.byteLength(text) });
        return parse(text);
      } finally {
        alarm.cancel();
      }
    },

    async *watch(request) {
      const { signal } = request;
      const root = rootNow();
      let response: FetchAnswer;
      try {
        response = await ask(request, signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      try {
        for await (const line of jsonLines(response.body ?? new ReadableStream())) {
          const event = parse(line) as ApiWatchEvent | { readonly type: "ERROR"; readonly object: Status };
          if (event.type === "ERROR") throw new StatusError(event.object as Status);
          yield event;
        }
      } catch (cause) {
        if (signal.aborted) return;
        if (cause instanceof StatusError) throw cause;
        throw unreachable(root, cause);
      }
    },
  };
}

function encoded({ body }: ApiRequest): string | undefined { return body === undefined ? undefined : stringify(body); }

function unreachable(root: string, cause: unknown): StatusError {
  const { status } = serviceUnavailable(`cannot reach ${root}: ${errorText(cause)}`);
  return new StatusError(status, { cause });
}

async function textOf(response: FetchAnswer, signal: AbortSignal, root: string): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw unreachable(root, cause);
  }
}

/** Plain text answers (/healthz, /metrics, logs) come back as text. */
function parse(text: string): unknown {
  if (text === "") return undefined;
  try {
    return deepFreeze(JSON.parse(text) as unknown);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/** Objects, not arrays: a frozen array takes three times the memory in JavaScriptCore, and longer to read. */
function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (const item of value) deepFreeze(item);
    return value;
  }
  for (const name in value) deepFreeze((value as Record<string, unknown>)[name]);
  return Object.freeze(value);
}

async function errorOf(response: FetchAnswer, { method, path }: ApiRequest): Promise<StatusError> {
  const text = await response.text().catch((error: unknown) => String(error));
  const body = parse(text) as Status | string | null | undefined;
  if (typeof body === "object" && body?.kind === "Status") return new StatusError(body);
  const message = typeof body === "string" && body.trim() !== "" ? body.trim() : `the server answered ${response.status} to ${method} ${path}`;
  return statusError({ code: response.status, reason: REASONS[response.status] ?? "", message });
}

/** What an answer without a Status means. */
const REASONS: Readonly<Partial<Record<number, StatusReason>>> = {
  401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict", 410: "Gone", 429: "TooManyRequests",
  500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
};

function queryText(query: ApiRequest["query"]): string {
  const given = Object.entries(query ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`;
}
