/**
 * The kubelet's HTTPS server: logs, exec, attach and port-forward of this node's pods, statistics, metrics, health.
 *
 * A client certificate or a bearer token says who calls, the API server says whether they may, unless the settings leave that out
 * (authentication.ts, authorization.ts). The API server itself calls with its own client certificate.
 *
 *   const server = kubeletServer({ api, host, port: 10250, tls, clientCa, client, clock, log, metrics });
 *   runAll([…, server], signal)
 *
 * Source: kubernetes v1.36 pkg/kubelet/server/server.go
 */
import type { IncomingMessage } from "node:http";
import { createSecureContext, type SecureContext } from "node:tls";
import type { ZPages } from "../../../core/api/codec/zpages.ts";
import type { Client } from "../../../core/client/client.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Connection } from "../../../core/net/connections.ts";
import { type HttpsServer, httpsServer } from "../../../core/net/http-server.ts";
import { KUBELET_SERVER_NAME, type TlsMaterial, tlsOptions } from "../../../core/net/tls.ts";
import type { DebugPages } from "../../../core/observe/debug-pages.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import type { Certificate } from "../../../core/pki/x509.ts";
import type { Exec } from "../../os/exec.ts";
import type { KubeletApi } from "../kubelet-api.ts";
import type { AccessSettings } from "../settings.ts";
import type { LocalPathDirectories } from "../volumes/local-path.ts";
import { type Answer, AnswerError } from "./answer.ts";
import { authentication } from "./authentication.ts";
import { authorization, nodeAttributes } from "./authorization.ts";
import { servingRotation } from "./certificate-metrics.ts";
import { checkedHealth } from "./healthz.ts";
import { answering, bodyOf, refuseUpgrade, type RequestCounts, targetOf } from "./requests.ts";
import { refuseDebugging, route } from "./routes.ts";
import { asAnswer, upgrade } from "./upgrades.ts";

export interface KubeletServerOptions {
  readonly api: KubeletApi;
  readonly access: AccessSettings;
  readonly counts: RequestCounts;
  readonly host: string;
  readonly port: number;
  /** The serving certificate; clientCas: the client CA. Asked again by `reloadCertificates`. */
  readonly tls: () => TlsMaterial;
  /** What the API server is shown, which believes nobody but the cluster's CA. Absent: what everybody is. */
  readonly tlsForApiServer?: (() => TlsMaterial) | undefined;
  /** Certificates that may have signed a caller's. */
  readonly clientCa: () => readonly Certificate[];
  /** In the name of this node: TokenReviews and SubjectAccessReviews. */
  readonly client: Client;
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

const UPGRADED: ReadonlySet<string> = new Set(["exec", "attach", "portForward"]);

export function kubeletServer({ api, access, counts, host, port, tls, tlsForApiServer, clientCa, client, localPath, configz, zpages, debug, clock, exec, log, metrics }: KubeletServerOptions): HttpsServer {
  const authenticate = authentication({ client, roots: clientCa, access, clock, metrics });
  const authorize = authorization({ client, nodeName: api.nodeName, access, clock, metrics });
  const health = checkedHealth(() => api.unhealthyReason());
  const streams = metrics.counter("kubelet_websocket_streaming_requests_total", "[ALPHA] Total number of WebSocket streaming requests (exec/attach/portforward) received by the kubelet.");
  metrics.gauge("kubelet_metrics_provider", "[ALPHA] Metrics provider used by kubelet to collect container stats. Values can be 'cadvisor' and 'cri'").set(1, { provider: "cadvisor" });

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
    return await route({ api, metrics, health, debugging: access.debugging, configz, zpages, debug, body: () => bodyOf(request), accept: request.headers.accept, userAgent: request.headers["user-agent"], clock, log, exec, localPath, method: request.method ?? "GET", parts, query, signal });
  }

  async function serveUpgrade(request: IncomingMessage, socket: Parameters<Parameters<typeof httpsServer>[0]["upgrade"]>[1], { head, connection }: { readonly head: Buffer; readonly connection: Connection }): Promise<void> {
    const gone = new AbortController();
    socket.on("close", () => gone.abort());
    socket.on("error", () => gone.abort());
    try {
      const { path, query, parts } = targetOf(request);
      await check(request, connection, path, gone.signal);
      if (!access.debugging) refuseDebugging(parts);
      if (!UPGRADED.has(parts[0] ?? "")) throw new AnswerError(404, "404 page not found\n");
      if (isTranslated(request, parts[0]!)) streams.inc({ subresource: parts[0]!.toLowerCase() });
      await upgrade(api, { request, socket, head, parts, query, clock, signal: gone.signal });
    } catch (error) {
      refuseUpgrade(socket, asAnswer(error), log);
    }
  }

  let forApiServer: SecureContext | undefined; // until a certificate changes
  const server: HttpsServer = httpsServer({
    host, port, portFlag: "--kubelet-port", tls, log, clock,
    certificateFor: tlsForApiServer && ((name) => (name === KUBELET_SERVER_NAME ? (forApiServer ??= createSecureContext(tlsOptions(tlsForApiServer()))) : undefined)),
    handler: answering({ counts, serverType: "readwrite", answer: answerTo, stopping: () => server.stopping, log }),
    upgrade(request, socket, how) { void serveUpgrade(request, socket, how).finally(counts.began(request, "readwrite")); },
  });
  return {
    ...server,
    name: "kubelet server",
    stopping: server.stopping,
    get connectionCount() { return server.connectionCount; },
    reloadCertificates,
    async run(signal, ready) {
      const renewing = watchCertificate(signal);
      await server.run(signal, ready);
      await renewing;
    },
  };

  function reloadCertificates(): void {
    forApiServer = undefined;
    server.reloadCertificates();
  }

  async function watchCertificate(signal: AbortSignal): Promise<void> {
    const rotated = servingRotation({ metrics, clock });
    const own = tlsForApiServer ?? tls;
    let used = own().cert;
    for await (const _ of clock.every(CERTIFICATE_CHECK_MS, signal)) {
      const { cert } = own();
      if (cert !== used) {
        reloadCertificates();
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
