/**
 * What a page of another origin may do: the headers that its browser is told by, for a request that asks beforehand and for the one itself. Pure.
 *
 * API: https://gateway-api.sigs.k8s.io/reference/spec/#httpcorsfilter  https://fetch.spec.whatwg.org/#http-cors-protocol
 */
import type { CorsFilter } from "./gateway-types.ts";
import type { NamedValue, RoutedRequest } from "./host-routes.ts";

const MAX_AGE_SECONDS = 5;
const ORIGIN = /^(https?):\/\/(\[[0-9a-f:.]+\]|[^:/?#]+)(?::(\d+))?$/i;

/** Whether the browser asks before it sends the request. */
export function isPreflight({ method, header }: Pick<RoutedRequest, "method" | "header">): boolean { return method === "OPTIONS" && header("origin") !== undefined && header("access-control-request-method") !== undefined; }

/** None for an origin that may not, and for requests that come from no page. */
export function corsHeaders({ allowOrigins = [], allowCredentials = false, allowMethods = [], allowHeaders = [], exposeHeaders = [], maxAge = MAX_AGE_SECONDS }: CorsFilter, request: Pick<RoutedRequest, "method" | "header">): NamedValue[] {
  const origin = request.header("origin");
  if (origin === undefined || !allowOrigins.some((allowed) => isAllowed(origin, allowed))) return [];
  const headers: NamedValue[] = [{ name: "access-control-allow-origin", value: allowOrigins.includes("*") && !allowCredentials ? "*" : origin }];
  const list = (name: string, allowed: readonly string[], asked: string | undefined): void => {
    const value = !allowed.includes("*") ? allowed.join(", ") : allowCredentials ? asked : "*"; // with credentials a star is no star to browsers
    if (value) headers.push({ name, value });
  };
  if (allowCredentials) headers.push({ name: "access-control-allow-credentials", value: "true" });
  list("access-control-expose-headers", exposeHeaders, undefined);
  if (!isPreflight(request)) return headers;
  list("access-control-allow-methods", allowMethods, request.header("access-control-request-method"));
  list("access-control-allow-headers", allowHeaders, request.header("access-control-request-headers"));
  return [...headers, { name: "access-control-max-age", value: String(maxAge) }];
}

/** A star stands for anything in a host's place, dots too. */
function isAllowed(origin: string, allowed: string): boolean {
  if (allowed === "*") return true;
  const [given, wanted] = [origin, allowed].map((text) => ORIGIN.exec(text));
  if (!given || !wanted || given[1]!.toLowerCase() !== wanted[1]!.toLowerCase()) return false;
  const portOf = ([, scheme, , port]: RegExpExecArray): number => Number(port ?? (scheme!.toLowerCase() === "https" ? 443 : 80));
  const host = given[2]!.toLowerCase(), [before = "", after] = wanted[2]!.toLowerCase().split("*", 2);
  return portOf(given) === portOf(wanted) && (after === undefined ? host === before : host.length > before.length + after.length && host.startsWith(before) && host.endsWith(after));
}
