/**
 * What becomes of a request, before anything is sent: its route, one of the route's backends as often as its weight says, and that backend's endpoints.
 *
 *   no route 404 · a host of another listener than the one TLS was agreed on with 421 · a reference that leads nowhere 500 · no endpoint 503
 */
import type { BackendTls } from "../../core/ingress/backend-tls.ts";
import { corsHeaders, isPreflight } from "../../core/ingress/cors.ts";
import type { Endpoint, Resolved } from "../../core/ingress/endpoints.ts";
import type { NamedValue } from "../../core/ingress/host-routes.ts";
import { type Action, type Backend, type HeaderEdit, type Mirror, type Redirect, rewritePath, type Route, type RouteTable } from "../../core/ingress/route-table.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Asked, Caller } from "./headers.ts";
import type { UpstreamTls } from "./upstreams.ts";

export interface RouterDeps {
  readonly table: (caller: Caller) => RouteTable;
  /** Of connections nobody reads. */
  readonly names: (caller: Caller) => RouteTable;
  /** Undefined: there is no such Service, or it has no such port. */
  readonly resolve: (backend: Backend) => Resolved | undefined;
  /** Undefined: there is nobody whom it may trust. */
  readonly trust: (tls: BackendTls) => UpstreamTls | undefined;
  /** Requests under way. */
  readonly load: (endpoint: Endpoint) => number;
  readonly random: Random;
}

export interface Forwarding {
  readonly type: "forward";
  readonly endpoints: readonly Endpoint[];
  /** How the endpoints are spoken to. */
  readonly protocol: "http" | "h2c";
  readonly tls: UpstreamTls | undefined;
  /** Path and query, and the host, as the endpoint is asked. */
  readonly target: string;
  readonly host: string;
  readonly edits: readonly HeaderEdit[];
  readonly timeoutMs: number | undefined;
  /** Who may be sent a copy of it. */
  readonly mirrors: readonly Mirror[];
}

/** `answer`: one without a body, by ourselves. */
export type Planned = Forwarding | { readonly type: "answer"; readonly status: number; readonly headers: readonly NamedValue[]; readonly edits: readonly HeaderEdit[] } | { readonly type: "fail"; readonly status: number };

export const TRIES_MAX = 3;
/** Asking twice changes nothing. */
export const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
export const TEXTS: Readonly<Record<number, string>> = {
  400: "400 bad request\n", 404: "404 page not found\n", 417: "417 expectation failed\n", 421: "421 misdirected request\n", 431: "431 request header fields too large\n", 500: "500 internal server error\n", 501: "501 not implemented\n",
  502: "502 bad gateway\n", 503: "503 no available server\n", 504: "504 gateway timeout\n", 505: "505 http version not supported\n",
};

/** Source: https://kubernetes.io/docs/reference/networking/service-protocols/ */
const HTTPS = /^(kubernetes\.io\/)?(https|wss)$/i, H2C = /^(kubernetes\.io\/h2c|h2c|grpc)$/i;
const ANYBODY: UpstreamTls = { key: "", ca: undefined, serverName: undefined, names: [] };
const NONE: readonly HeaderEdit[] = [];
const NOBODY: readonly Mirror[] = [];

export class Router {
  readonly #deps: RouterDeps;
  constructor(deps: RouterDeps) { this.#deps = deps; }

  plan(asked: Asked | undefined, caller: Caller, table = this.#deps.table(caller)): Planned {
    if (!asked) return { type: "fail", status: 400 };
    if (caller.serverName !== undefined && caller.serverName !== asked.host && table.claimOf(caller.serverName) !== table.claimOf(asked.host)) return { type: "fail", status: 421 }; // RFC 9110 section 15.5.20
    const route = table.find(asked);
    if (!route) return { type: "fail", status: 404 };
    const { action } = route;
    if (action.type === "fail") return action;
    const edits = action.edits ?? NONE, allowed = action.cors && corsHeaders(action.cors, asked);
    if (allowed && isPreflight(asked)) return { type: "answer", status: 200, headers: allowed, edits: NONE };
    const all: readonly HeaderEdit[] = allowed?.length ? [...edits, { on: "response", set: allowed, add: [{ name: "vary", value: "origin" }], remove: [] }] : edits;
    if (action.type === "redirect") return redirected(action.redirect, { asked, route, caller, edits: all });
    const backend = this.#choose(action.backends);
    if (!backend || backend.invalid) return { type: "fail", status: 500 };
    if (backend.redirect) return redirected(backend.redirect, { asked, route, caller, edits: all });
    return this.#forwarding(asked, route, { ...action, edits: all, backend });
  }

  /** What is sent to the mirror, if this request's turn has come and there is anybody: what the endpoint is sent. */
  planCopy({ backend, share }: Mirror, original: Forwarding): Forwarding | undefined {
    const found = share >= 1 || this.#deps.random.next() < share ? this.#deps.resolve(backend) : undefined;
    const spoken = found && this.#spoken(found, backend);
    return spoken && found.endpoints.length > 0 ? { ...original, ...spoken, endpoints: found.endpoints, edits: backend.edits?.length ? [...original.edits, ...backend.edits] : original.edits, mirrors: NOBODY } : undefined;
  }

  /** Where bytes go that nobody here reads, by the name that was asked for, and how. */
  planName(host: string, caller: Caller): Pick<Forwarding, "endpoints" | "tls"> | undefined {
    const plan = this.plan({ host, authority: host, target: "/", path: "/", method: "", header: () => undefined, query: () => undefined }, caller, this.#deps.names(caller));
    return plan.type === "forward" ? plan : undefined;
  }

  /** The most specific listener's host that this name is; "" any. */
  listenerOf(name: string, caller: Caller): string { return this.#deps.names(caller).claimOf(name); }

  /** The one with fewer requests under way, of two that are drawn. */
  pick(endpoints: readonly Endpoint[]): Endpoint {
    const draw = (): Endpoint => endpoints[Math.floor(this.#deps.random.next() * endpoints.length)]!;
    if (endpoints.length === 1) return endpoints[0]!;
    const a = draw(), b = draw();
    return this.#deps.load(b) < this.#deps.load(a) ? b : a;
  }

  #forwarding(asked: Asked, route: Route, { backend, edits = NONE, timeoutMs, mirrors = NOBODY, ...rule }: Extract<Action, { type: "forward" }> & { readonly backend: Backend }): Planned {
    const rewrite = backend.rewrite ?? rule.rewrite, all = backend.edits?.length ? [...edits, ...backend.edits] : edits;
    const found = this.#deps.resolve(backend);
    if (!found || found.endpoints.length === 0) return { type: "fail", status: 503 };
    const spoken = this.#spoken(found, backend);
    if (!spoken) return { type: "fail", status: 500 };
    return {
      type: "forward", endpoints: found.endpoints, ...spoken, timeoutMs,
      target: rewrite?.path ? withPath(asked.target, rewritePath(asked.path, rewrite.path, route.match.path.value)) : asked.target,
      host: rewrite?.hostname ?? hostIn(all) ?? asked.authority, edits: all, mirrors: backend.mirrors ? [...mirrors, ...backend.mirrors] : mirrors,
    };
  }

  /** Undefined: nobody whom it could be said to. */
  #spoken({ appProtocol = "", portName }: Resolved, backend: Backend): Pick<Forwarding, "protocol" | "tls"> | undefined {
    const protocol = H2C.test(appProtocol) ? "h2c" : (backend.protocol ?? "http");
    const policy = backend.tls?.find(({ section }) => section !== undefined && section === portName) ?? backend.tls?.find(({ section }) => section === undefined);
    if (!policy) return HTTPS.test(appProtocol) ? { protocol: "http", tls: ANYBODY } : { protocol, tls: undefined };
    const tls = this.#deps.trust(policy);
    return tls && { protocol, tls };
  }

  #choose(backends: readonly Backend[]): Backend | undefined {
    if (backends.length === 1) return backends[0]!.weight > 0 ? backends[0] : undefined;
    let left = this.#deps.random.next() * backends.reduce((sum, { weight }) => sum + weight, 0);
    return backends.find(({ weight }) => weight > 0 && (left -= weight) < 0);
  }
}

/** Anyone can make up methods; not so label values. */
export function methodLabel(method = "GET"): string { return /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE)$/.test(method) ? method : "other"; }

/** The host that a filter for headers says, if one does. */
function hostIn(edits: readonly HeaderEdit[]): string | undefined { return edits.findLast(({ on, set }) => on === "request" && set.some(({ name }) => name === "host"))?.set.findLast(({ name }) => name === "host")?.value; }

function withPath(target: string, path: string): string {
  const question = target.indexOf("?");
  return question < 0 ? path : path + target.slice(question);
}

function redirected(to: Redirect, { asked, route, caller, edits }: { readonly asked: Asked; readonly route: Route; readonly caller: Caller; readonly edits: readonly HeaderEdit[] }): Planned {
  return { type: "answer", status: to.statusCode, headers: [{ name: "location", value: locationOf(to, asked, route, caller) }], edits };
}

function locationOf({ scheme, hostname, port, path }: Redirect, { authority, host, target, path: asked }: Asked, { match }: Route, { secure, port: own }: Caller): string {
  const to = scheme ?? (secure ? "https" : "http");
  const given = /:(\d+)$/.exec(authority.replace(/^\[.*\]/, ""))?.[1];
  const number = port ?? (scheme === undefined ? Number(given ?? own) : undefined);
  const usual = number === undefined || number === (to === "https" ? 443 : 80);
  return `${to}://${hostname ?? host}${usual ? "" : `:${number}`}${path ? withPath(target, rewritePath(asked, path, match.path.value)) : target}`;
}
