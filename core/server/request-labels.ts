/**
 * What a request is counted under: the labels of apiserver_request_total and its kin.
 *
 * What is no resource is counted where upstream counts it: the health endpoints, OpenAPI v3 and the pages for people.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/{metrics/metrics.go,installer.go}, pkg/server/healthz/healthz.go, kube-aggregator/pkg/controllers/openapiv3/aggregator/aggregator.go
 */
import type { Labels } from "../observe/metrics.ts";
import type { RequestInfo } from "./request-info.ts";
import type { ServerRequest } from "./request.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]);
const CONNECTS: ReadonlySet<string> = new Set(["attach", "exec", "log", "portforward", "proxy"]);
const HEALTH: ReadonlySet<string> = new Set(["/healthz", "/livez", "/readyz"]);
const PAGES: ReadonlySet<string> = new Set(["/flagz", "/statusz"]);
const OPEN_API = "/openapi/v3";

/** Equal for requests whose labels are. Undefined: it is not counted. */
export function requestKey(request: ServerRequest, info: RequestInfo): string | undefined {
  const dryRun = dryRunOf(request.query);
  if (info.isResource) return `${verbOf(request, info)}|${dryRun}|${info.group}|${info.version}|${info.resource}|${info.subresource}|${routeScope(info)}`;
  const { path } = info;
  if (HEALTH.has(path) || PAGES.has(path) || path === OPEN_API) return `${verbOf(request, info)}|${dryRun}|${path}`;
  return path.startsWith(`${OPEN_API}/`) ? `${verbOf(request, info)}|${dryRun}|${OPEN_API}/` : undefined;
}

export function requestLabels(request: ServerRequest, info: RequestInfo): Labels {
  const verb = verbOf(request, info), dry_run = dryRunOf(request.query);
  if (info.isResource) return { component: "apiserver", dry_run, group: info.group, resource: info.resource, scope: routeScope(info), subresource: info.subresource, verb, version: info.version };
  const { path } = info;
  if (PAGES.has(path)) return { component: "apiserver", dry_run, group: "", resource: path.slice(1), scope: "", subresource: "", verb, version: "" };
  const subresource = HEALTH.has(path) ? path : path === OPEN_API ? OPEN_API.slice(1) : `${OPEN_API.slice(1)}/`;
  return { component: "", dry_run, group: "", resource: "", scope: "", subresource, verb, version: "" };
}

/** Of what is refused before anybody answers it, and of what lasts. */
export function earlyLabels(request: ServerRequest, info: RequestInfo): Labels {
  const { group = "", version = "", resource = "", subresource = "" } = info.isResource ? info : {};
  return { component: "apiserver", group, resource, scope: scopeOf(info), subresource, verb: verbOf(request, info), version };
}

/** Of the path: a selector by name does not make one object of a list. */
function routeScope(info: RequestInfo & { isResource: true }): string {
  const isCollection = info.verb === "list" || info.verb === "watch" || info.verb === "deletecollection";
  return isCollection ? (info.namespace === "" ? "cluster" : "namespace") : scopeOf(info);
}

export function scopeOf(info: RequestInfo): string {
  if (!info.isResource) return "";
  return info.name !== "" || info.verb === "create" ? "resource" : info.namespace !== "" ? "namespace" : "cluster";
}

/** Which of them are the same, whatever it is that is not to be done. */
export function dryRunOf(query: URLSearchParams): string {
  if (!query.has("dryRun")) return "";
  return query.getAll("dryRun").every((one) => one === "All") ? "All" : "invalid";
}

const SYSTEM_CLIENTS: ReadonlySet<string> = new Set(["kube-apiserver", "kube-controller-manager", "kube-scheduler", "cluster-policy-controller"]);

/** Which part of the system says that it asks: "" for all others. Callers in this process have no version. */
export function systemClientOf(request: Pick<ServerRequest, "header" | "user">): string {
  const agent = request.header("user-agent") ?? "";
  const end = agent.indexOf("/");
  const name = end >= 0 ? agent.slice(0, end) : request.user ? agent : "";
  return SYSTEM_CLIENTS.has(name) ? name : "";
}

/** As metrics and traces tell it. */
export function verbOf(request: ServerRequest, info: RequestInfo): string {
  const method = METHODS.has(request.method) ? (request.method === "HEAD" ? "GET" : request.method) : "other";
  if (!info.isResource) return method;
  if (CONNECTS.has(info.subresource)) return "CONNECT";
  if (info.verb === "watch") return "WATCH";
  if (info.verb === "list") return "LIST";
  return method === "PATCH" && request.header("content-type")?.startsWith("application/apply-patch") ? "APPLY" : method;
}
