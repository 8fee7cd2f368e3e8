/**
 * The routes of one host, found by their paths once somebody asks for it. An Ingress may have ten thousand, and who asks is anybody: one after the other they would be milliseconds of
 * each request.
 */
import type { Route, RoutedRequest, RouteMatch } from "./route-table.ts";

export type FindRoute = (request: RoutedRequest) => Route | undefined;
export type Order = (a: Route, b: Route) => number;

/** Those of one path. */
interface Place { readonly routes: Route[]; sorted?: readonly Route[] }

/** The first in `order` that a request is for, of equal ones that which comes first in `routes`. */
export function hostRoutes(routes: readonly Route[], order: Order): FindRoute {
  const exact = new Map<string, Place>(), prefix = new Map<string, Place>(), methods = new Map<string, Place>();
  for (const route of routes) {
    const { type, value } = route.match.path;
    const [places, key] = type === "Exact" ? [exact, value] : type === "Method" ? [methods, value] : [prefix, value.endsWith("/") ? value.slice(0, -1) : value];
    const place = places.get(key);
    if (place) place.routes.push(route);
    else places.set(key, { routes: [route] });
  }
  return (request) => {
    const { path } = request;
    let best: Route | undefined;
    const look = (place: Place | undefined): void => {
      const found = place && (place.sorted ??= place.routes.toSorted(order)).find(({ match }) => isFor(match, request));
      if (found && (!best || order(found, best) < 0)) best = found;
    };
    look(exact.get(path));
    look(methods.get(path.slice(path.indexOf("/", 1) + 1)));
    look(prefix.get(path));
    for (let end = path.lastIndexOf("/"); end >= 0; end = end === 0 ? -1 : path.lastIndexOf("/", end - 1)) look(prefix.get(path.slice(0, end))); // element by element; a slash at the end of the prefix changes nothing
    return best;
  };
}

/** But for the path. */
function isFor({ method, grpc, headers = [], query = [] }: RouteMatch, request: RoutedRequest): boolean {
  if (grpc && !/^application\/grpc\b/i.test(request.header("content-type") ?? "")) return false;
  if (method !== undefined && method !== request.method) return false;
  return headers.every(({ name, value }) => request.header(name) === value) && query.every(({ name, value }) => request.query(name) === value);
}
