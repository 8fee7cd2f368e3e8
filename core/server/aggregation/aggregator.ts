/**
 * The aggregation layer: groups and versions that other API servers serve behind ours, as APIServices say.
 *
 *   const aggregation = aggregator({ … });
 *   aggregation.answer(request, info, user)     the answer of the server behind; undefined: it is ours to give
 *   aggregation.versions()                      what they serve, for discovery
 *   aggregation.parts                           what keeps all that true
 *
 * Who calls was found out, and whether he may, before anything is passed on; the server behind believes us whom we name, and asks itself again.
 *
 * Source: kubernetes v1.36 kube-aggregator/pkg/apiserver/{apiserver,handler_proxy}.go
 */
import { Readable } from "node:stream";
import type { DiscoveredVersion } from "../../api/discovery/discovery.ts";
import { encodeJson } from "../../api/codec/json.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import { StatusError } from "../../api/meta/status-error.ts";
import type { Swagger } from "../../api/openapi/v2.ts";
import type { UserInfo } from "../../api/request/user.ts";
import type { Service } from "../../api/gen/core.v1.ts";
import type { ResourceClient } from "../../client/client.ts";
import type { Informer } from "../../client/informer.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { HeaderPairs } from "../../net/response-head.ts";
import type { Log } from "../../observe/log.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { APIService } from "../../registry/apiregistration/api-service.ts";
import type { Registry } from "../../registry/registry.ts";
import { type Answer, raw, type RawAnswer } from "../answer.ts";
import { asksForUpgrade, forwardHttp, forwardUpgrade } from "../node-proxy/forward.ts";
import type { ServerRequest } from "../request.ts";
import { availability } from "./availability.ts";
import { isAvailable } from "./availability-plan.ts";
import { extensionBackend, type ExtensionDeps, shownHost } from "./extension-server.ts";
import { identityHeaders } from "./identity.ts";
import { apiServiceName } from "./local-plan.ts";
import { localServices } from "./local-services.ts";
import { escapedPath, sortedQuery } from "./location.ts";
import { mergeOpenApi, type SwaggerPart } from "./merge-openapi.ts";
import { RemoteCatalog } from "./remote-documents.ts";

export interface Aggregation {
  /** What this server serves itself is known by its APIServices. */
  readonly registered: boolean;
  /** What other servers serve is known. */
  readonly synced: boolean;
  readonly parts: readonly Runnable[];
  /** What the server behind the request's path answers; undefined if there is none. */
  answer(request: ServerRequest, user: UserInfo, known?: Known): Promise<Answer> | undefined;
  /** Whether there is one behind the path. */
  serves(path: string): boolean;
  /** Grows with every change of what follows. */
  readonly changes: number;
  /** Served elsewhere. */
  versions(): readonly DiscoveredVersion[];
  /** What an APIService says of the place of its group version; undefined if there is none. */
  priorityOf(group: string, version: string): { readonly groupPriority: number; readonly versionPriority: number } | undefined;
  /** Entries of OpenAPI v3's index. */
  openApiIndex(): readonly { readonly path: string; readonly hash: string }[];
  /** For OpenAPI v2; undefined while there is nothing to add. */
  openApiV2(): { readonly hash: string; add(document: Swagger): Swagger } | undefined;
}

/** By what a request is known here and behind; `unavailable` is told that the server behind is not asked. */
export interface Known { readonly traceparent?: string | undefined; readonly auditId?: string | undefined; readonly unavailable?: (() => void) | undefined }

export interface AggregatorDeps extends ExtensionDeps {
  readonly registry: Registry;
  readonly apiServices: Informer<APIService>;
  readonly serviceCopies: Informer<Service>;
  readonly resource: ResourceClient<APIService>;
  /** Headers no server behind this one gets: see ServerDeps. */
  readonly isWithheld?: ((header: string) => boolean) | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function aggregator(deps: AggregatorDeps): Aggregation {
  const { apiServices } = deps;
  const remote = new Map<string, Readonly<APIService>>(); // by "group/version"
  const catalog = new RemoteCatalog(deps);
  const local = localServices(deps);
  let changes = 0;
  apiServices.onChange(({ object, deleted }) => {
    const key = `${object.spec.group ?? ""}/${object.spec.version ?? ""}`;
    if (deleted || !object.spec.service) remote.delete(key);
    else remote.set(key, object);
    changes++;
  });

  function find(path: string): Readonly<APIService> | undefined {
    if (remote.size === 0) return undefined;
    const [, root, first = "", second = "", third = ""] = path.split("/");
    if (root === "apis") return second === "" ? undefined : remote.get(`${first}/${second}`);
    return root === "openapi" && first === "v3" && second === "apis" ? remoteDocument(third, path) : undefined;
  }

  /** /openapi/v3/apis/group/version */
  function remoteDocument(group: string, path: string): Readonly<APIService> | undefined {
    const found = remote.get(`${group}/${path.split("/")[5] ?? ""}`);
    return found && catalog.of(found.metadata.name).v3 ? found : undefined;
  }

  return {
    parts: [local, availability(deps), catalog],
    get registered() { return local.done; },
    get synced() { return apiServices.synced; },
    answer(request, user, { traceparent = "", auditId = "", unavailable } = {}) {
      const found = find(request.path);
      return found && forward({ ...deps, unavailable }, found, request, [...(auditId ? [["Audit-Id", auditId] as const] : []), ...identityHeaders(user), ...(traceparent ? [["Traceparent", traceparent] as const] : [])]);
    },
    serves: (path) => find(path) !== undefined,
    get changes() {
      return changes + catalog.changes;
    },
    versions: () => [...remote.values()].map(({ metadata, spec }) => {
      const { resources, stale } = catalog.of(metadata.name);
      return {
        group: spec.group ?? "", version: spec.version ?? "", groupPriority: spec.groupPriorityMinimum, versionPriority: spec.versionPriority,
        rows: [], foreign: resources, freshness: stale ? "Stale" : "Current",
      };
    }),
    priorityOf(group, version) {
      const found = apiServices.get(objectKey("", apiServiceName({ group, version })));
      return found && { groupPriority: found.spec.groupPriorityMinimum, versionPriority: found.spec.versionPriority };
    },
    openApiIndex: () => [...remote.values()].flatMap(({ metadata }) => catalog.of(metadata.name).v3 ?? []),
    openApiV2() {
      const parts = [...remote.values()].flatMap(({ metadata, spec }) => {
        const { v2 } = catalog.of(metadata.name);
        return v2 ? [{ ...v2, prefix: `/apis/${spec.group}/${spec.version}` }] : [];
      });
      if (parts.length === 0) return undefined;
      return {
        hash: parts.map(({ etag, prefix }) => `${prefix}=${etag}`).toSorted().join(" "),
        add: (document) => parts.reduce((whole, { document: part, prefix }) => withPart(whole, part, prefix, deps.log), document),
      };
    },
  };
}

/** One that is no such document, or too deep to go through, costs its server's part alone. */
export function withPart(whole: Swagger, part: SwaggerPart, prefix: string, log: Pick<Log, "debug">): Swagger {
  try {
    return mergeOpenApi(whole, part, prefix);
  } catch (error) {
    log.debug("an extension API server's OpenAPI is left out", { prefix, error });
    return whole;
  }
}

/** Source: handler_proxy.go proxyError, which is Go's http.Error */
function plainError(text: string, status: number): Answer {
  return raw(`${text}\n`, "text/plain; charset=utf-8", status, { "x-content-type-options": "nosniff" });
}

async function forward(deps: AggregatorDeps & Pick<Known, "unavailable">, apiService: Readonly<APIService>, request: ServerRequest, identity: HeaderPairs): Promise<Answer> {
  if (!isAvailable(apiService) || !(await isThere(apiService, deps, request.signal))) {
    deps.unavailable?.();
    return plainError("service unavailable", 503);
  }
  if (request.method === "CONNECT") return plainError("client sent unsupported CONNECT request", 503);
  const limit = DISCOVERY.test(request.path) ? limited(request, deps) : undefined;
  const signal = limit?.signal ?? request.signal;
  const backend = extensionBackend(apiService.spec, deps, signal);
  const scope = { request: request.wire ? request : await asWire(request), signal, server: deps };
  const path = escapedPath(request.path);
  const query = sortedQuery(request.wire?.rawQuery ?? request.query.toString());
  try {
    const host = await shownHost(apiService.spec, deps, signal);
    if (asksForUpgrade(request)) return await forwardUpgrade(scope, backend, `${path}${query === "" ? "" : `?${query}`}`, { identity, host }).finally(() => limit?.end());
    const answer = refuseRedirect(await forwardHttp(scope, { backend, path, query, prefix: "", origin: `${backend.scheme}://${host}`, host, identity: [["X-Forwarded-Host", host], ["X-Forwarded-Proto", backend.scheme], ...identity] }));
    limit?.until(answer);
    return answer;
  } catch (error) {
    limit?.end();
    if (limit?.isOver() && !request.signal.aborted) return plainError("error trying to reach service: context deadline exceeded", 503);
    if (signal.aborted || !(error instanceof StatusError)) throw error;
    return plainError(error.cause instanceof Error ? error.cause.message : error.message, error.code >= 500 ? 503 : error.code);
  }
}

/** Whether its Service is still what the last look at it found. Source: kubernetes v1.36 apiserver/pkg/util/proxy/proxy.go ResolveCluster */
async function isThere({ spec: { service } }: Readonly<APIService>, { services }: AggregatorDeps, signal: AbortSignal): Promise<boolean> {
  const { name = "", namespace = "", port = 443 } = service ?? {};
  const { spec } = (await services.find(namespace, name, signal)) ?? {};
  return spec !== undefined && (spec.type === "ExternalName" || (spec.ports?.some((one) => one.port === port) ?? false));
}

/** /apis/group/version: what every client asks for before all else. Source: kubernetes v1.36 apiserver/pkg/util/proxy/proxy.go NewRequestForProxy */
const DISCOVERY = /^\/+[^/]+\/+[^/]+\/+[^/]+\/*$/;
const DISCOVERY_MS = 5_000;

interface Limit {
  readonly signal: AbortSignal;
  isOver(): boolean;
  /** Ends with the answer's body. */
  until(answer: RawAnswer): void;
  end(): void;
}

function limited({ signal }: Pick<ServerRequest, "signal">, { clock }: Pick<AggregatorDeps, "clock">): Limit {
  const late = new AbortController();
  const alarm = clock.after(DISCOVERY_MS, () => late.abort(new Error("context deadline exceeded")));
  const end = (): void => alarm.cancel();
  return {
    signal: AbortSignal.any([signal, late.signal]),
    isOver: () => late.signal.aborted,
    until({ body }) {
      if (body instanceof Readable) body.once("close", end);
      else end();
    },
    end,
  };
}

/** Clients believe what they are told here: no server behind this one may send them elsewhere. Source: upgradeaware.go RejectForwardingRedirects */
export function refuseRedirect(answer: RawAnswer): RawAnswer {
  const { status, headers, body } = answer;
  if (status < 300 || status > 399 || !headers["location"]) return answer;
  if (body instanceof Readable) body.destroy();
  return raw("the backend attempted to redirect this request, which is not permitted", "text/plain; charset=utf-8", 502);
}

/** A caller in this process, as if it had come over the network. */
async function asWire(request: ServerRequest): Promise<ServerRequest> {
  const body = request.method === "GET" || request.method === "HEAD" ? undefined : await request.body();
  const bytes = body === undefined ? Buffer.alloc(0) : body.type === "bytes" ? body.bytes : body.value === undefined ? Buffer.alloc(0) : Buffer.from(encodeJson(body.value));
  const headers: (readonly [string, string])[] = [
    ["accept", "application/json"], ["user-agent", request.header("user-agent") ?? "kube-apiserver"],
    ...(bytes.length > 0 ? [["content-type", body!.contentType], ["content-length", String(bytes.length)]] as const : [["content-length", "0"]] as const),
  ];
  const named = new Map(headers);
  return { ...request, header: (name) => named.get(name), headers: () => headers, wire: { body: Readable.from(bytes.length > 0 ? [bytes] : []), rawQuery: request.query.toString() } };
}
