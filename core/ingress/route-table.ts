/**
 * Which request goes where: hosts, and for each host its routes, the most specific first. Pure.
 *
 *   host     the very name, then wildcards from the longest to the shortest, then routes for any host; the first of these that has the host at all decides
 *   path     exact before prefix, longer before shorter; a prefix counts whole elements: /foo is /foo and /foo/bar, not /foobar; a method is that of any gRPC service, and comes after those of a service
 *   then     a method, more headers, more query parameters; the older object; the order within it
 *
 * A `fallback` comes after all others of its host, and a host without a match of its own takes those for any host.
 *
 * API: https://kubernetes.io/docs/concepts/services-networking/ingress/#path-types  https://gateway-api.sigs.k8s.io/reference/spec/#httprouterule
 */
import type { BackendTls } from "./backend-tls.ts";
import type { CorsFilter } from "./gateway-types.ts";
import { type FindRoute, hostRoutes, type NamedValue, type RoutedRequest, type RouteMatch } from "./host-routes.ts";

export interface Backend {
  readonly namespace: string;
  readonly service: string;
  /** A port of the Service, by name or number. */
  readonly port: string | number;
  /** Its share of the requests; 0: none. */
  readonly weight: number;
  readonly edits?: readonly HeaderEdit[] | undefined;
  /** A Service of type ExternalName is followed: not by the Gateway API. */
  readonly mayBeAlias?: true | undefined;
  /** How the endpoints are spoken to, if their port does not say. */
  readonly protocol?: "h2c" | undefined;
  /** The reference leads nowhere: its share of the requests answers 500. */
  readonly invalid?: true | undefined;
  /** What becomes of its share only, before what the rule says. */
  readonly redirect?: Redirect | undefined;
  readonly rewrite?: Rewrite | undefined;
  readonly mirrors?: readonly Mirror[] | undefined;
  /** For its ports. */
  readonly tls?: readonly BackendTls[] | undefined;
}

/** Who is sent a copy, and is not listened to. `share`: of the requests, up to 1. */
export interface Mirror { readonly backend: Backend; readonly share: number }

export interface Rewrite { readonly hostname?: string | undefined; readonly path?: PathRewrite | undefined }

/** Names in lower case; applied in the order set, add, remove. */
export interface HeaderEdit { readonly on: "request" | "response"; readonly set: readonly NamedValue[]; readonly add: readonly NamedValue[]; readonly remove: readonly string[] }

export type PathRewrite = { readonly type: "ReplaceFullPath" | "ReplacePrefixMatch"; readonly value: string };

export interface Redirect { readonly scheme?: string | undefined; readonly hostname?: string | undefined; readonly port?: number | undefined; readonly path?: PathRewrite | undefined; readonly statusCode: number }

export type Action =
  | {
    readonly type: "forward";
    readonly backends: readonly Backend[];
    readonly edits?: readonly HeaderEdit[] | undefined;
    readonly cors?: CorsFilter | undefined;
    readonly rewrite?: Rewrite | undefined;
    readonly mirrors?: readonly Mirror[] | undefined;
    readonly timeoutMs?: number | undefined;
  }
  | { readonly type: "redirect"; readonly redirect: Redirect; readonly edits?: readonly HeaderEdit[] | undefined; readonly cors?: CorsFilter | undefined }
  | { readonly type: "fail"; readonly status: number };

export interface Route {
  /** "" any, "*.example.com", or a name; in lower case. */
  readonly host: string;
  /** Of a wildcard: whether it stands for one label, as in an Ingress, or for one and more. */
  readonly labels: "one" | "many";
  readonly match: RouteMatch;
  readonly fallback: boolean;
  readonly action: Action;
  /** Kind, namespace and name of the object, for people. */
  readonly source: string;
  /** Sorts objects by age. */
  readonly age: string;
}

export interface RouteTable {
  find(request: RoutedRequest): Route | undefined;
  /** The most specific of the claimed hosts that this one is; "": none. */
  claimOf(host: string): string;
  readonly size: number;
}

interface HostTable { readonly routes: Route[]; find?: FindRoute<Route> }
interface Wildcard { readonly one: Route[]; readonly many: HostTable; /** Both. */ all?: HostTable; claimed: boolean }

/** `claimed`: hosts whose requests go to no other's routes, even if there is none of their own. */
export function routeTable(routes: readonly Route[], claimed: readonly string[] = []): RouteTable {
  const names = new Map<string, HostTable>();
  const wildcards = new Map<string, Wildcard>();
  const any: HostTable = { routes: [] };
  const newWildcard = (): Wildcard => ({ one: [], many: { routes: [] }, claimed: false });
  for (const route of routes) {
    if (route.host === "") any.routes.push(route);
    else if (route.host.startsWith("*.")) {
      const wildcard = group(wildcards, route.host.slice(1), newWildcard);
      (route.labels === "one" ? wildcard.one : wildcard.many.routes).push(route);
    } else group(names, route.host, () => ({ routes: [] })).routes.push(route);
  }
  for (const host of claimed) {
    if (host.startsWith("*.")) group(wildcards, host.slice(1), newWildcard).claimed = true;
    else if (host !== "") group(names, host, () => ({ routes: [] }));
  }
  const fallbacks = any.routes.filter(({ fallback }) => fallback).toSorted(compare), claims = new Set(claimed);
  const find = (table: HostTable, request: RoutedRequest): Route | undefined => (table.find ??= hostRoutes(table.routes, compare))(request);

  /** The routes of the most specific host that this is. */
  function ofHost(host: string): HostTable | undefined {
    const exact = names.get(host);
    if (exact) return exact;
    if (wildcards.size === 0) return undefined;
    for (let dot = host.indexOf("."), first = true; dot > 0; dot = host.indexOf(".", dot + 1), first = false) {
      const wildcard = wildcards.get(host.slice(dot));
      if (wildcard && first && wildcard.one.length > 0) return (wildcard.all ??= { routes: [...wildcard.one, ...wildcard.many.routes] });
      if (wildcard && (wildcard.many.routes.length > 0 || wildcard.claimed)) return wildcard.many;
    }
    return undefined;
  }

  return {
    size: routes.length,
    claimOf(host) {
      if (claims.has(host)) return host;
      for (let dot = host.indexOf("."); dot > 0; dot = host.indexOf(".", dot + 1)) if (claims.has(`*${host.slice(dot)}`)) return `*${host.slice(dot)}`;
      return "";
    },
    find(request) {
      const own = ofHost(request.host);
      return own === undefined ? find(any, request) : (find(own, request) ?? fallbacks[0]);
    },
  };
}

/** The path after a rewrite; `prefix` is what the route matched. */
export function rewritePath(path: string, rewrite: PathRewrite, prefix: string): string {
  if (rewrite.type === "ReplaceFullPath") return rewrite.value || "/";
  const rest = path.slice(prefix.endsWith("/") ? prefix.length - 1 : prefix.length);
  const base = rewrite.value.endsWith("/") ? rewrite.value.slice(0, -1) : rewrite.value;
  return `${base}${rest}` || "/";
}

function compare(a: Route, b: Route): number {
  return Number(a.fallback) - Number(b.fallback)
    || Number(a.match.path.type !== "Exact") - Number(b.match.path.type !== "Exact")
    || weightOf(b.match.path) - weightOf(a.match.path)
    || Number(a.match.path.type !== "Method") - Number(b.match.path.type !== "Method")
    || Number(a.match.method === undefined) - Number(b.match.method === undefined)
    || (b.match.headers?.length ?? 0) - (a.match.headers?.length ?? 0)
    || (b.match.query?.length ?? 0) - (a.match.query?.length ?? 0)
    || (a.age < b.age ? -1 : a.age > b.age ? 1 : 0);
}

/** /foo and /foo/ are equally long prefixes. A method of any service is more than everything, and less than any service. */
function weightOf({ type, value }: RouteMatch["path"]): number { return type === "Method" ? 1 : value.length > 1 && value.endsWith("/") ? value.length - 1 : value.length; }

function group<V>(map: Map<string, V>, key: string, make: () => V): V {
  let found = map.get(key);
  if (found === undefined) map.set(key, (found = make()));
  return found;
}
