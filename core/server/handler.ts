/**
 * The chain, on one screen. Every request takes it, from the network or from within this process:
 *
 *   what is asked (request-info) → who asks (authn, impersonation) → may they (authz) → the verb (which calls admission and the registry)
 *
 * What is thrown anywhere below becomes the Status the client gets.
 */
import type { AdmissionRequest } from "../admission/plugin.ts";
import { internalError, methodNotSupported, notAllowed, notFound, StatusError, statusError, statusOf, unauthorized } from "../api/meta/status-error.ts";
import type { Attributes } from "../api/request/attributes.ts";
import { ANONYMOUS, type UserInfo } from "../api/request/user.ts";
import type { Authenticator } from "../authn/authenticator.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Log } from "../observe/log.ts";
import type { Counter, Histogram, Metrics } from "../observe/metrics.ts";
import type { WatchCache } from "../registry/generic/watch-cache.ts";
import type { Registry, ServedResource } from "../registry/registry.ts";
import type { Aggregation } from "./aggregation/aggregator.ts";
import { checkAcceptable } from "./acceptable.ts";
import type { Answer } from "./answer.ts";
import { timed } from "./deadline.ts";
import { deprecation } from "./deprecation.ts";
import type { ServerRequest } from "./request.ts";
import { type RequestInfo, requestInfo, type ResourceRequestInfo } from "./request-info.ts";

/** Answers requests that are not about a resource: health, discovery, OpenAPI, metrics. Undefined: not one of its paths. */
export type PathHandler = (request: ServerRequest, user: UserInfo) => Promise<Answer | undefined> | Answer | undefined;

/** Answers one verb of one subresource, or of a resource that is not stored; `${verb} ${group}/${resource}/${subresource}` names it. */
export type ResourceHandler = (scope: Scope) => Promise<Answer>;

export interface ServerDeps {
  readonly registry: Registry;
  readonly cache: WatchCache;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  /** Who the caller is to be taken for, when Impersonate-* headers ask for it. Throws 403. */
  impersonate(attributes: Attributes, request: ServerRequest): Promise<UserInfo>;
  readonly admission: { admit(request: AdmissionRequest): Promise<void>; validate(request: AdmissionRequest): Promise<void> };
  readonly paths: readonly PathHandler[];
  /** Servers behind this one, which answer for groups of their own. */
  readonly aggregation?: Pick<Aggregation, "answer"> | undefined;
  /** Finds what answers a request that the generic verbs do not: reviews, tokens, bindings, logs, exec, proxies. */
  special(info: ResourceRequestInfo): ResourceHandler | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** One request, as the verbs see it. */
export interface Scope {
  readonly request: ServerRequest;
  readonly info: ResourceRequestInfo;
  readonly served: ServedResource;
  readonly user: UserInfo;
  readonly server: ServerDeps;
  readonly signal: AbortSignal;
  /** Texts for the Warning header. */
  readonly warnings: string[];
}

export type Handler = (request: ServerRequest) => Promise<Answer>;

export function apiHandler(server: ServerDeps, verbs: Readonly<Record<string, ResourceHandler>>): Handler {
  const count = requestMetrics(server.metrics);

  async function answer(request: ServerRequest, info: RequestInfo): Promise<Answer> {
    const caller = request.user ?? (await authenticate(server, request));
    const user = request.user ? caller : await server.impersonate(attributesOf(info, request, caller), request);
    await authorize(server.authorizer, attributesOf(info, request, user));
    const elsewhere = server.aggregation?.answer(request, user);
    if (elsewhere) return await elsewhere;
    if (!info.isResource) {
      for (const handler of server.paths) {
        const found = await handler(request, user);
        if (found) return found;
      }
      throw pathNotFound();
    }
    const served = server.registry.find(info.group, info.version, info.resource);
    if (!served) throw pathNotFound();
    const handler = server.special(info) ?? genericHandler(verbs, info, served);
    const scope: Scope = { request, info, served, user, server, signal: request.signal, warnings: [...(served.custom?.warnings ?? [])] };
    const found = await handler(scope);
    return scope.warnings.length > 0 ? { ...found, warnings: [...new Set(scope.warnings)] } : found;
  }

  return async (request) => {
    const startMs = server.clock.uptimeMs();
    const info = requestInfo(request.method, request.path, request.query);
    let code = 200;
    let done: (() => void) | undefined;
    try {
      const within = timed(request, info, server.clock);
      done = within.done;
      const found = await answer(within.request, info);
      code = "status" in found ? found.status : found.type === "upgrade" ? 101 : 200;
      return found;
    } catch (error) {
      const status = statusOf(error);
      code = status.code ?? 500;
      if (code >= 500 && !(error instanceof StatusError) && !request.signal.aborted) server.log.error("request failed", { method: request.method, path: request.path, error });
      return { type: "object", status: code, object: error instanceof StatusError || code !== 500 ? { ...status } : { ...internalError(error).status } };
    } finally {
      done?.();
      count(info, code, server.clock.uptimeMs() - startMs);
    }
  };
}

async function authenticate(server: ServerDeps, request: ServerRequest): Promise<UserInfo> {
  try {
    return (await server.authenticator.authenticate(request, request.signal))?.user ?? ANONYMOUS;
  } catch (error) {
    if (error instanceof StatusError) throw error;
    server.log.warn("a request could not be authenticated", { path: request.path, error });
    throw unauthorized();
  }
}

/** Throws 403. */
export async function authorize(authorizer: Authorizer, attributes: Attributes): Promise<void> {
  const { decision, reason } = await authorizer.authorize(attributes);
  if (decision === "allow") return;
  const { user, ...attempt } = attributes;
  throw notAllowed(attributes.isResource ? { ...attempt, user: user.name, path: undefined } : { ...attempt, user: user.name }, reason);
}

export function attributesOf(info: RequestInfo, request: ServerRequest, user: UserInfo): Attributes {
  if (!info.isResource) return { ...info, user };
  const { verb, group, version, resource, subresource, namespace, name, path } = info;
  return {
    isResource: true, verb, group, version, resource, subresource, namespace, name, path, user,
    labelSelector: request.query.get("labelSelector") ?? undefined,
    fieldSelector: request.query.get("fieldSelector") ?? undefined,
  };
}

/** The verb of the resource itself, or of a subresource that is a part or a view of it. Throws 404 and 405. */
function genericHandler(verbs: Readonly<Record<string, ResourceHandler>>, info: ResourceRequestInfo, { row, store, custom }: ServedResource): ResourceHandler {
  if (custom && row.namespaced && info.namespace === "" && info.verb !== "list" && info.verb !== "watch") throw pathNotFound();
  const allowed: readonly string[] | undefined = info.subresource === "" ? row.verbs : row.subresources.find(({ name }) => name === info.subresource)?.verbs;
  if (!allowed && custom) throw notFound({ group: info.group, resource: info.resource }, info.name);
  if (!allowed || (info.namespace !== "" && !row.namespaced && info.resource !== "namespaces")) throw pathNotFound();
  if (row.namespaced && info.namespace === "" && NAMED.has(info.verb)) throw pathNotFound();
  const handler = Object.hasOwn(verbs, info.verb) ? verbs[info.verb] : undefined;
  if (!handler || !store || !allowed.includes(info.verb) || !fitsPath(info, row.namespaced))
    throw custom ? methodNotSupported({ group: info.group, resource: info.resource }, info.verb) : methodNotAllowed();
  return (scope) => {
    checkAcceptable(scope, true);
    const deprecated = deprecation(row);
    if (deprecated !== undefined) scope.warnings.push(deprecated);
    return handler(scope);
  };
}

/** Verbs that are about one object. */
const NAMED: ReadonlySet<string> = new Set(["get", "update", "patch", "delete"]);

/** One object is named, a collection is not; objects are made where they will be. */
function fitsPath({ verb, name, subresource, namespace }: ResourceRequestInfo, namespaced: boolean): boolean {
  if (NAMED.has(verb)) return name !== "";
  return verb !== "create" || ((name === "") === (subresource === "") && (!namespaced || namespace !== ""));
}

function methodNotAllowed(): StatusError {
  return statusError({ code: 405, reason: "MethodNotAllowed", message: "the server does not allow this method on the requested resource", details: {} });
}

export function pathNotFound(): StatusError {
  return statusError({ code: 404, reason: "NotFound", message: "the server could not find the requested resource", details: {} });
}

/** Source: apiserver pkg/endpoints/metrics: the names and buckets dashboards rely on. */
const DURATION_BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];
const LONG_RUNNING = new Set(["watch", "proxy", "connect"]);

function requestMetrics(metrics: Metrics): (info: RequestInfo, code: number, durationMs: number) => void {
  const total: Counter = metrics.counter("apiserver_request_total", "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.");
  const duration: Histogram = metrics.histogram("apiserver_request_duration_seconds", "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.", DURATION_BUCKETS);
  return (info, code, durationMs) => {
    const labels = info.isResource
      ? {
          verb: metricVerb(info), group: info.group, version: info.version, resource: info.resource, subresource: info.subresource,
          scope: info.name ? "resource" : info.namespace ? "namespace" : "cluster", component: "apiserver", dry_run: "",
        }
      : { verb: info.verb.toUpperCase(), group: "", version: "", resource: "", subresource: info.path.split("/")[1] ?? "", scope: "", component: "apiserver", dry_run: "" };
    total.inc({ ...labels, code: String(code) });
    if (!LONG_RUNNING.has(info.verb)) duration.observe(durationMs / 1000, labels);
  };
}

function metricVerb({ verb }: RequestInfo): string {
  switch (verb) {
    case "create": return "POST";
    case "update": return "PUT";
    case "deletecollection": return "DELETECOLLECTION";
    default: return verb.toUpperCase();
  }
}

