/**
 * What load balancers ask a node.
 *
 *   health check node ports   one for each Service with externalTrafficPolicy Local: 200 if this node has ready endpoints for it, else 503
 *   /healthz  /livez          the proxy's own (port 10256 by default): 503 while changes have been waiting for a minute; healthz also when the node is on its way out
 *
 * Source: kubernetes v1.36 pkg/proxy/healthcheck/{service_health,proxy_health}.go (answers)
 */
import type { RequestListener } from "node:http";
import type { Node } from "../../core/api/gen/core.v1.ts";
import type { ZPage, ZPages } from "../../core/api/codec/zpages.ts";
import { StatusError } from "../../core/api/meta/status-error.ts";
import type { EventReporter } from "../../core/client/events.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { type Cidr, cidrContains, parseCidr, parseIp } from "../../core/net/cidr.ts";
import { type SmallServer, smallServer } from "../../core/net/small-server.ts";
import { expose, type Exposition } from "../../core/observe/exposition.ts";
import { isOfNode } from "../../core/observe/families.ts";
import { type Counter, type Metrics, metricsRegistry } from "../../core/observe/metrics.ts";
import { isOfSlis, sliCounts } from "../../core/observe/slis.ts";
import type { Log } from "../../core/observe/log.ts";
import type { ProxyMode } from "./configz.ts";

const STALE_MS = 60_000; // twice upstream's syncPeriod
/** Cluster autoscalers put it on nodes they are about to remove. */
const TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler";
const HEADERS = { "content-type": "application/json", "x-content-type-options": "nosniff" };

export interface HealthCheck { readonly namespace: string; readonly name: string; readonly port: number; readonly localEndpoints: number }

/** Whether the kernel has what the cluster wants. */
export class ProxyHealth {
  readonly #clock: Clock;
  #pendingSinceMs: number | undefined;
  /** Of those being written, which are not yet there. */
  #takenSinceMs: number | undefined;
  #updatedMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#updatedMs = clock.nowMs();
  }

  queued(): void { this.#pendingSinceMs ??= this.#clock.uptimeMs(); }
  /** What has changed so far is about to be written; what changes from now on is not among it. */
  taken(): void {
    this.#takenSinceMs ??= this.#pendingSinceMs;
    this.#pendingSinceMs = undefined;
  }
  /** What was taken is there. */
  updated(): void {
    this.#takenSinceMs = undefined;
    this.#updatedMs = this.#clock.nowMs();
  }
  get healthy(): boolean {
    const sinceMs = this.#takenSinceMs ?? this.#pendingSinceMs;
    return sinceMs === undefined || this.#clock.uptimeMs() - sinceMs < STALE_MS;
  }
  /** Both families are written in one go, so they are told the same. Of a node on its way out the last update is told even while the proxy is healthy. */
  describe(nowMs: number, told: { readonly nodeEligible?: boolean }): Record<string, unknown> {
    const { healthy } = this;
    const family = { lastUpdated: new Date(this.#updatedMs).toISOString(), healthy };
    return { lastUpdated: healthy && told.nodeEligible !== false ? new Date(nowMs).toISOString() : family.lastUpdated, currentTime: new Date(nowMs).toISOString(), ...told, healthy, status: { IPv4: family, IPv6: family } };
  }
}

/** Servers on the node ports that Services want asked; opened and closed as they come and go. */
export class ServiceHealth {
  readonly #log: Log;
  readonly #healthy: () => boolean;
  readonly #cidrs: readonly Cidr[] | undefined;
  readonly #onFailed: (check: HealthCheck, error: Error) => void;
  readonly #open = new Map<number, { server: SmallServer; check: HealthCheck }>();
  #wanted: ReadonlyMap<number, HealthCheck> = new Map();
  /** Ports that somebody else has, as far as that is told of. */
  readonly #refused = new Set<number>();

  /** `cidrs`: of the node's addresses, those at which it answers; absent: all. `onFailed`: a port cannot be opened. */
  constructor({ log, healthy, cidrs, onFailed = () => undefined }: { readonly log: Log; readonly healthy: () => boolean; readonly cidrs?: readonly string[] | undefined; readonly onFailed?: (check: HealthCheck, error: Error) => void }) {
    this.#log = log;
    this.#cidrs = cidrs?.flatMap((text) => parseCidr(text) ?? []);
    this.#onFailed = onFailed;
    this.#healthy = healthy;
  }

  update(checks: readonly HealthCheck[]): void {
    this.#wanted = new Map(checks.map((check) => [check.port, check]));
    for (const [port, { server }] of this.#open) {
      if (this.#wanted.has(port)) continue;
      server.close();
      server.closeAllConnections();
      this.#open.delete(port);
    }
    for (const port of this.#refused) if (!this.#wanted.has(port)) this.#refused.delete(port);
    this.again();
  }

  /** Ports that could not be opened are tried again. */
  again(): void {
    for (const check of this.#wanted.values()) {
      const open = this.#open.get(check.port);
      if (open) open.check = check;
      else this.#listen(check);
    }
  }

  close(): void { this.update([]); }

  #answersAt(address = ""): boolean {
    const ip = parseIp(address.replace(/^::ffff:/, "")); // of a socket for both families
    return this.#cidrs === undefined || (ip !== undefined && this.#cidrs.some((cidr) => cidrContains(cidr, ip)));
  }

  #listen(first: HealthCheck): void {
    const entry = { check: first, server: smallServer(({ socket }, response) => {
      if (!this.#answersAt(socket.localAddress)) return void socket.destroy();
      const { namespace, name, localEndpoints } = entry.check;
      const serviceProxyHealthy = this.#healthy();
      response.writeHead(localEndpoints > 0 && serviceProxyHealthy ? 200 : 503, { ...HEADERS, "x-load-balancing-endpoint-weight": String(localEndpoints) });
      response.end(JSON.stringify({ service: { namespace, name }, localEndpoints, serviceProxyHealthy }, null, "\t"));
    }) };
    entry.server.on("error", (error) => {
      if (this.#open.get(first.port) !== entry) return; // nobody wants it any more
      this.#open.delete(first.port);
      if (this.#refused.has(first.port)) return;
      this.#refused.add(first.port);
      this.#log.warn("the health check node port of a service cannot be opened, trying again", { namespace: first.namespace, service: first.name, port: first.port, error });
      this.#onFailed(entry.check, error);
    });
    entry.server.on("listening", () => this.#refused.delete(first.port));
    this.#open.set(first.port, entry);
    entry.server.listen(first.port);
  }
}

/** The node is told that its proxy runs; it goes by its name alone. Source: kubernetes v1.36 cmd/kube-proxy/app/server.go birthCry */
export function tellStart(events: EventReporter | undefined, nodeName: string): void {
  events?.report({ apiVersion: "v1", kind: "Node", metadata: { name: nodeName } } as Node, { type: "Normal", reason: "Starting", action: "StartKubeProxy", note: "" });
}

/** What a Service is told of a health check node port that cannot be opened. */
export function unopened(nodeName: string, { namespace, name, port }: HealthCheck, error: Error): Parameters<EventReporter["report"]>[1] {
  return { type: "Warning", reason: "FailedToStartServiceHealthcheck", action: "Listen", note: `node ${nodeName} failed to start healthcheck "${namespace}/${name}" on port ${port}: ${error.message}` };
}

export interface ProxyStatus {
  readonly metrics: Pick<Metrics, "render">;
  readonly mode: ProxyMode;
  /** /flagz and /statusz; absent: there are none. */
  readonly zpages?: ZPages | undefined;
  /** Absent: there is no /configz. */
  readonly configz?: (() => object) | undefined;
}

/** What upstream's proxy tells on its metrics port, to whoever is on this machine. */
export function proxyStatusListener({ metrics, mode, zpages, configz }: ProxyStatus): RequestListener {
  const slis = metricsRegistry();
  const count = sliCounts(slis);
  const answers: Readonly<Record<string, (accept: string | undefined) => Exposition>> = {
    "/proxyMode": () => ({ contentType: "text/plain; charset=utf-8", body: mode }),
    "/healthz": () => {
      count("healthz", "ping", true);
      return { contentType: "text/plain; charset=utf-8", body: "ok" };
    },
    "/metrics": (accept) => expose(metrics.render(isOfNode), accept),
    "/metrics/slis": (accept) => {
      count("healthz", "ping", true); // nobody may have asked for long
      return expose(slis.render(isOfSlis), accept);
    },
    ...(configz && { "/configz": () => ({ contentType: "application/json", body: JSON.stringify(configz()) }) }),
  };
  return ({ url, headers }, response) => {
    const [path = "", query] = url?.split("?", 2) ?? [];
    try {
      const page: (Exposition & Partial<Pick<ZPage, "headers">>) | undefined = Object.hasOwn(answers, path) ? answers[path]!(headers.accept) : zpages?.(path, { accept: headers.accept, userAgent: headers["user-agent"], pretty: new URLSearchParams(query).get("pretty") ?? undefined });
      if (!page) return void response.writeHead(404).end("404 page not found\n");
      response.writeHead(200, { "content-type": page.contentType, "x-content-type-options": "nosniff", ...page.headers }).end(page.body);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      response.writeHead(error.status.code ?? 500, { "content-type": "application/json" }).end(JSON.stringify(error.status));
    }
  };
}

interface Options {
  readonly health: ProxyHealth;
  readonly node: () => Readonly<Node> | undefined;
  readonly clock: Clock;
  readonly healthz: Counter;
  readonly livez: Counter;
}

export function proxyHealthListener({ health, node, clock, healthz, livez }: Options): RequestListener {
  return ({ url }, response) => {
    const path = url?.split("?")[0];
    if (path !== "/healthz" && path !== "/livez") return void response.writeHead(404).end("404 page not found\n");
    const nodeEligible = isEligible(node());
    const ok = health.healthy && (path === "/livez" || nodeEligible);
    (path === "/livez" ? livez : healthz).inc({ code: ok ? "200" : "503" });
    response.writeHead(ok ? 200 : 503, HEADERS).end(JSON.stringify(health.describe(clock.nowMs(), path === "/healthz" ? { nodeEligible } : {})));
  };
}

function isEligible(node: Readonly<Node> | undefined): boolean {
  return node !== undefined && node.metadata.deletionTimestamp === undefined && !node.spec?.taints?.some(({ key }) => key === TO_BE_DELETED_TAINT);
}
