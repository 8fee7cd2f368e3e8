/** Requests to the kubelet's servers: where they go, how they are counted, how they are answered. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, Readable } from "node:stream";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { errorText } from "../../../core/api/meta/error-text.ts";
import { StatusError } from "../../../core/api/meta/status-error.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Connection } from "../../../core/net/connections.ts";
import { takesGzip } from "../../../core/net/takes-gzip.ts";
import type { Log } from "../../../core/observe/log.ts";
import { DEFAULT_BUCKETS, type Labels, type Metrics } from "../../../core/observe/metrics.ts";
import { KubeletApiError } from "../kubelet-api.ts";
import { type Answer, AnswerError, text } from "./answer.ts";

const CODES: Readonly<Record<KubeletApiError["code"], number>> = { "pod-not-found": 404, "container-not-found": 404, "bad-request": 400, "no-log": 400, "unavailable": 500 };
const STATUS_TEXTS: Readonly<Record<number, string>> = { 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 429: "Too Many Requests", 500: "Internal Server Error" };

/** The server that asks who calls, and the one that asks nothing. */
export type ServerType = "readwrite" | "readonly";

/** One for both servers. */
export interface RequestCounts {
  /** Returns what to call when the request has ended. */
  began(request: IncomingMessage, serverType: ServerType): () => void;
}

export function requestCounts({ metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock }): RequestCounts {
  const requests = metrics.counter("kubelet_http_requests_total", "[ALPHA] Number of the http requests received since the server started");
  const took = metrics.histogram("kubelet_http_requests_duration_seconds", "[ALPHA] Duration in seconds to serve http requests", DEFAULT_BUCKETS);
  const inFlight = metrics.gauge("kubelet_http_inflight_requests", "[ALPHA] Number of the inflight http requests");
  return {
    began(request, serverType) {
      const labels = labelsOf(request, serverType), beganMs = clock.uptimeMs();
      inFlight.add(1, labels);
      return () => {
        inFlight.add(-1, labels);
        requests.inc(labels);
        took.observe((clock.uptimeMs() - beganMs) / 1000, labels);
      };
    },
  };
}

export interface Answering {
  readonly counts: RequestCounts;
  readonly serverType: ServerType;
  /** May throw: answerOf. */
  readonly answer: (request: IncomingMessage, connection: Connection, signal: AbortSignal) => Promise<Answer>;
  /** Aborts when the server ends. */
  readonly stopping: () => AbortSignal;
  readonly log: Log;
}

/** The handler of a server. */
export function answering({ counts, serverType, answer, stopping, log }: Answering) {
  return (request: IncomingMessage, response: ServerResponse, connection: Connection): void => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const signal = AbortSignal.any([gone.signal, stopping()]);
    const ended = counts.began(request, serverType);
    answer(request, connection, signal).catch((error: unknown) => answerOf(error, log))
      .then((found) => send(response, found, request.method === "HEAD", signal))
      .catch((error: unknown) => {
        if (!signal.aborted) log.warn("an answer of the kubelet failed", { path: request.url, error });
        response.destroy();
      })
      .finally(ended);
  };
}

/** Answers a request to upgrade its connection with an error. */
export function refuseUpgrade(socket: Duplex, error: unknown, log: Log): void {
  const { status, body, contentType, headers = {} } = answerOf(error, log);
  const bytes = Buffer.from(body as string);
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  if (socket.writable) socket.end(Buffer.concat([Buffer.from(`HTTP/1.1 ${status} ${STATUS_TEXTS[status] ?? "Error"}\r\nContent-Type: ${contentType}\r\nContent-Length: ${bytes.length}\r\n${more}Connection: close\r\n\r\n`), bytes]));
}

export interface Target { readonly path: string; readonly query: URLSearchParams; readonly parts: readonly string[] }

/** Throws the answer to a path that cannot be read. */
export function targetOf({ url = "/" }: IncomingMessage): Target {
  const mark = url.indexOf("?");
  try {
    const parts = (mark < 0 ? url : url.slice(0, mark)).split("/").filter((part) => part !== "").map(decodeURIComponent);
    // authorized as it is routed: however it was spelled
    return { path: `/${parts.join("/")}`, query: new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1)), parts };
  } catch {
    throw new AnswerError(400, "400 Bad Request");
  }
}

const ROOTS: ReadonlySet<string> = new Set([
  "healthz", "pods", "stats", "metrics", "metrics/cadvisor", "metrics/probes", "metrics/resource", "metrics/slis", "run", "exec", "attach", "portForward",
  "containerLogs", "configz", "flagz", "statusz", "runningpods", "logs", "checkpoint", "debug",
]);

/** Forwarded ports count as short with upstream, which looks for them by another name. */
const LONG_RUNNING: ReadonlySet<string> = new Set(["exec", "attach", "debug"]);

/** What a request brings is a number or nothing. */
const BODY_BYTES_MAX = 4096;

export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new AnswerError(413, "http: request body too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Anyone can make up methods over HTTP/2, and is counted before it is known who that is. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"]);

function labelsOf({ method = "GET", url = "/" }: IncomingMessage, serverType: ServerType): Labels {
  const parts = url.split("?")[0]!.split("/");
  const root = parts[1] === "metrics" && parts[2] ? `metrics/${parts[2]}` : parts[1] ?? "";
  const path = ROOTS.has(root) ? root : "other";
  return { method: METHODS.has(method) ? method : "other", path, server_type: serverType, long_running: String(LONG_RUNNING.has(path)) };
}

function answerOf(error: unknown, log: Log): Answer {
  if (error instanceof AnswerError) return error.answer;
  if (error instanceof StatusError) return text(error.code, error.message);
  if (error instanceof KubeletApiError) return text(CODES[error.code], error.message);
  log.warn("a request to the kubelet failed", { error });
  return text(500, errorText(error));
}

const pack = promisify(gzip);

async function send(response: ServerResponse, { status, contentType, body, mayGzip = false, headers = {} }: Answer, headOnly: boolean, signal: AbortSignal): Promise<void> {
  if (signal.aborted) {
    if (body instanceof Readable) body.destroy();
    response.destroy();
    return;
  }
  response.statusCode = status;
  response.setHeader("Content-Type", contentType);
  response.setHeader("X-Content-Type-Options", "nosniff");
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (!(body instanceof Readable)) {
    const plain = typeof body === "string" ? Buffer.from(body) : body;
    const isPacked = mayGzip && takesGzip(response.req.headers["accept-encoding"]);
    if (isPacked) response.setHeader("Content-Encoding", "gzip");
    const bytes = isPacked ? await pack(plain) : plain;
    response.setHeader("Content-Length", bytes.length);
    response.end(headOnly ? undefined : bytes);
    return;
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => body.destroy(), { once: true });
  body.on("error", reject);
  body.on("close", resolve);
  response.flushHeaders();
  body.pipe(response);
  await promise;
}
