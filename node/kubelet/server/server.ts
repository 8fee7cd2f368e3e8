/**
 * The kubelet's HTTPS server: logs, exec, attach and port-forward of this node's pods, statistics, metrics, health.
 *
 * Nobody is anonymous here: a client certificate or a bearer token says who calls, the API server says whether they may
 * (authentication.ts, authorization.ts). The API server itself calls with its own client certificate.
 *
 *   const server = kubeletServer({ api, host, port: 10250, tls, clientCa, client, clock, log, metrics });
 *   runAll([…, server], signal)
 *
 * Source: kubernetes v1.36 pkg/kubelet/server/server.go
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { ZPages } from "../../../core/api/codec/zpages.ts";
import { StatusError } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Connection } from "../../../core/net/connections.ts";
import { type HttpsServer, httpsServer } from "../../../core/net/http-server.ts";
import type { TlsMaterial } from "../../../core/net/tls.ts";
import type { DebugPages } from "../../../core/observe/debug-pages.ts";
import type { Log } from "../../../core/observe/log.ts";
import { DEFAULT_BUCKETS, type Labels, type Metrics } from "../../../core/observe/metrics.ts";
import type { Certificate } from "../../../core/pki/x509.ts";
import type { Exec } from "../../os/exec.ts";
import { KubeletApiError, type KubeletApi } from "../kubelet-api.ts";
import type { LocalPathDirectories } from "../volumes/local-path.ts";
import { type Answer, AnswerError, text } from "./answer.ts";
import { authentication } from "./authentication.ts";
import { authorization, nodeAttributes } from "./authorization.ts";
import { CALLER_TTLS, type CallerTtls } from "./caller-ttls.ts";
import { servingRotation } from "./certificate-metrics.ts";
import { checkedHealth } from "./healthz.ts";
import { route } from "./routes.ts";
import { asAnswer, upgrade } from "./upgrades.ts";

export interface KubeletServerOptions {
  readonly api: KubeletApi;
  readonly host: string;
  readonly port: number;
  /** The serving certificate; clientCas: the client CA. Asked again by `reloadCertificates`. */
  readonly tls: () => TlsMaterial;
  /** Certificates that may have signed a caller's. */
  readonly clientCa: () => readonly Certificate[];
  /** In the name of this node: TokenReviews and SubjectAccessReviews. */
  readonly client: Client;
  /** Absent: upstream's. */
  readonly callers?: CallerTtls | undefined;
  /** Where local-path volumes are; absent: not on this node. */
  readonly localPath?: LocalPathDirectories | undefined;
  /** What /configz shows. */
  readonly configz: () => Readonly<Record<string, unknown>>;
  /** /flagz and /statusz; absent: there are none. */
  readonly zpages?: ZPages | undefined;
  /** /debug/pprof and /debug/flags/v; absent: there are none. */
  readonly debug?: DebugPages | undefined;
  readonly clock: Clock;
  /** Runs journalctl. */
  readonly exec: Exec;
  readonly log: Log;
  readonly metrics: Metrics;
}

const CODES: Readonly<Record<KubeletApiError["code"], number>> = { "pod-not-found": 404, "container-not-found": 404, "bad-request": 400, "unavailable": 500 };
const UPGRADED: ReadonlySet<string> = new Set(["exec", "attach", "portForward"]);

export function kubeletServer({ api, host, port, tls, clientCa, client, callers: ttls = CALLER_TTLS, localPath, configz, zpages, debug, clock, exec, log, metrics }: KubeletServerOptions): HttpsServer {
  const authenticate = authentication({ client, roots: clientCa, clock, ttls });
  const authorize = authorization({ client, nodeName: api.nodeName, clock, ttls });
  const health = checkedHealth(() => api.unhealthyReason());
  const requests = metrics.counter("kubelet_http_requests_total", "[ALPHA] Number of the http requests received since the server started");
  const took = metrics.histogram("kubelet_http_requests_duration_seconds", "[ALPHA] Duration in seconds to serve http requests", DEFAULT_BUCKETS);
  const inFlight = metrics.gauge("kubelet_http_inflight_requests", "[ALPHA] Number of the inflight http requests");

  const streams = metrics.counter("kubelet_websocket_streaming_requests_total", "[ALPHA] Total number of WebSocket streaming requests (exec/attach/portforward) received by the kubelet.");
  metrics.gauge("kubelet_metrics_provider", "[ALPHA] Metrics provider used by kubelet to collect container stats. Values can be 'cadvisor' and 'cri'").set(1, { provider: "cadvisor" });

  function counted(labels: Labels, beganMs: number): void {
    inFlight.add(-1, labels);
    requests.inc(labels);
    took.observe((clock.uptimeMs() - beganMs) / 1000, labels);
  }

  /** Throws the answer if they may not. */
  async function check(request: IncomingMessage, { peerCertificate }: Connection, path: string, signal: AbortSignal): Promise<void> {
    const user = await authenticate({ peerCertificate, authorization: request.headers.authorization }, signal).catch((error: unknown) => {
      log.warn("a request to the kubelet could not be authenticated", { path, error });
      return undefined;
    });
    if (!user) throw new AnswerError(401, "Unauthorized");
    const { verb, subresources } = nodeAttributes(request.method ?? "GET", path);
    for (const subresource of subresources) {
      const allowed = await authorize(user, { verb, subresource }, signal).catch((error: unknown) => {
        log.warn("a request to the kubelet could not be authorized", { path, user: user.name, error });
        throw new AnswerError(500, `Authorization error (user=${user.name}, verb=${verb}, resource=nodes, subresource=${subresource})`);
      });
      if (allowed) return;
    }
    throw new AnswerError(403, `Forbidden (user=${user.name}, verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(" ")}])\n`);
  }

  async function answerTo(request: IncomingMessage, connection: Connection, signal: AbortSignal): Promise<Answer> {
    const { path, query, parts } = targetOf(request);
    await check(request, connection, path, signal);
    return await route({ api, metrics, health, configz, zpages, debug, body: () => bodyOf(request), accept: request.headers.accept, clock, log, exec, localPath, method: request.method ?? "GET", parts, query, signal });
  }

  function handler(request: IncomingMessage, response: ServerResponse, connection: Connection): void {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const signal = AbortSignal.any([gone.signal, server.stopping]);
    const labels = labelsOf(request), beganMs = clock.uptimeMs();
    inFlight.add(1, labels);
    answerTo(request, connection, signal).catch((error: unknown) => answerOf(error, log))
      .then((answer) => send(response, answer, request.method === "HEAD", signal))
      .catch((error: unknown) => {
        if (!signal.aborted) log.warn("an answer of the kubelet failed", { path: request.url, error });
        response.destroy();
      })
      .finally(() => {
        counted(labels, beganMs);
      });
  }

  async function serveUpgrade(request: IncomingMessage, socket: Parameters<Parameters<typeof httpsServer>[0]["upgrade"]>[1], { head, connection }: { readonly head: Buffer; readonly connection: Connection }): Promise<void> {
    const gone = new AbortController();
    socket.on("close", () => gone.abort());
    socket.on("error", () => gone.abort());
    try {
      const { path, query, parts } = targetOf(request);
      await check(request, connection, path, gone.signal);
      if (!UPGRADED.has(parts[0] ?? "")) throw new AnswerError(404, "404 page not found\n");
      if (isTranslated(request, parts[0]!)) streams.inc({ subresource: parts[0]!.toLowerCase() });
      await upgrade(api, { request, socket, head, parts, query, clock, signal: gone.signal });
    } catch (error) {
      const { status, body, contentType } = answerOf(asAnswer(error), log);
      const bytes = Buffer.from(body as string);
      if (socket.writable) socket.end(Buffer.concat([Buffer.from(`HTTP/1.1 ${status} ${STATUS_TEXTS[status] ?? "Error"}\r\nContent-Type: ${contentType}\r\nContent-Length: ${bytes.length}\r\nConnection: close\r\n\r\n`), bytes]));
    }
  }

  const server = httpsServer({
    host, port, portFlag: "--kubelet-port", tls, handler, log, clock,
    upgrade(request, socket, how) {
      const labels = labelsOf(request), beganMs = clock.uptimeMs();
      inFlight.add(1, labels);
      void serveUpgrade(request, socket, how).finally(() => {
        counted(labels, beganMs);
      });
    },
  });
  return {
    ...server,
    name: "kubelet server",
    stopping: server.stopping,
    get connectionCount() { return server.connectionCount; },
    async run(signal, ready) {
      const renewing = watchCertificate(signal);
      await server.run(signal, ready);
      await renewing;
    },
  };

  async function watchCertificate(signal: AbortSignal): Promise<void> {
    const rotated = servingRotation({ metrics, clock });
    let used = tls().cert;
    for await (const _ of clock.every(CERTIFICATE_CHECK_MS, signal)) {
      const { cert } = tls();
      if (cert !== used) {
        server.reloadCertificates();
        rotated(used);
      }
      used = cert;
    }
  }
}

/** It comes as a WebSocket, of those that the runtime does not speak. */
function isTranslated({ headers }: IncomingMessage, root: string): boolean {
  const wanted = root === "portForward" ? /SPDY\/3\.1\+portforward\.k8s\.io/ : /\bv5\.channel\.k8s\.io\b/;
  return wanted.test(String(headers["sec-websocket-protocol"] ?? ""));
}

/** A renewed certificate is due weeks before the old one ends. */
const CERTIFICATE_CHECK_MS = 60_000;

const STATUS_TEXTS: Readonly<Record<number, string>> = { 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 500: "Internal Server Error" };

interface Target { readonly path: string; readonly query: URLSearchParams; readonly parts: readonly string[] }

/** Throws the answer to a path that cannot be read. */
function targetOf({ url = "/" }: IncomingMessage): Target {
  const mark = url.indexOf("?");
  try {
    const parts = (mark < 0 ? url : url.slice(0, mark)).split("/").filter((part) => part !== "").map(decodeURIComponent);
    // authorized as it is routed: however it was spelled
    return { path: `/${parts.join("/")}`, query: new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1)), parts };
  } catch {
    throw new AnswerError(400, "400 Bad Request");
  }
}

const ROOTS: ReadonlySet<string> = new Set(["healthz", "pods", "stats", "metrics", "metrics/cadvisor", "metrics/probes", "metrics/resource", "metrics/slis", "run", "exec", "attach", "portForward", "containerLogs", "configz", "flagz", "statusz", "runningpods", "logs", "checkpoint", "debug"]);

/** Forwarded ports count as short with upstream, which looks for them by another name. */
const LONG_RUNNING: ReadonlySet<string> = new Set(["exec", "attach", "debug"]);

/** What a request brings is a number or nothing. */
const BODY_BYTES_MAX = 4096;

async function bodyOf(request: IncomingMessage): Promise<string> {
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

function labelsOf({ method = "GET", url = "/" }: IncomingMessage): Record<string, string> {
  const parts = url.split("?")[0]!.split("/");
  const root = parts[1] === "metrics" && parts[2] ? `metrics/${parts[2]}` : parts[1] ?? "";
  const path = ROOTS.has(root) ? root : "other";
  return { method: METHODS.has(method) ? method : "other", path, server_type: "readwrite", long_running: String(LONG_RUNNING.has(path)) };
}

function answerOf(error: unknown, log: Log): Answer {
  if (error instanceof AnswerError) return error.answer;
  if (error instanceof StatusError) return text(error.code, error.message);
  if (error instanceof KubeletApiError) return text(CODES[error.code], error.message);
  log.warn("a request to the kubelet failed", { error });
  return text(500, error instanceof Error ? error.message : String(error));
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

function takesGzip(accepted: string | string[] | undefined): boolean { return String(accepted ?? "").split(",").some((one) => /^\s*gzip\s*(;(?!\s*q=0(\.0*)?\s*$)|$)/.test(one)); }
