/**
 * The routes of one host, found by their paths once somebody asks for it. An Ingress may have ten thousand, and who asks is anybody: one after the other they would be milliseconds of
 * each request.
 */
export interface RouteMatch {
  readonly path: { readonly type: "Exact" | "Prefix" | "Method"; readonly value: string };
  /** Calls of gRPC only. */
  readonly grpc?: true | undefined;
  readonly method?: string | undefined;
  /** Names in lower case. */
  readonly headers?: readonly NamedValue[] | undefined;
  readonly query?: readonly NamedValue[] | undefined;
}

export interface NamedValue { readonly name: string; readonly value: string }

export interface RoutedRequest {
  readonly host: string;
  /** Starts with a slash, without the query, dot segments resolved. */
  readonly path: string;
  readonly method: string;
  readonly header: (name: string) => string | undefined;
  readonly query: (name: string) => string | undefined;
}

export type FindRoute<R> = (request: RoutedRequest) => R | undefined;

/** Those of one path. */
interface Place<R> { readonly routes: R[]; sorted?: readonly R[] }

/** The first in `order` that a request is for, of equal ones that which comes first in `routes`. */
export function hostRoutes<R extends { readonly match: RouteMatch }>(routes: readonly R[], order: (a: R, b: R) => number): FindRoute<R> {
  const exact = new Map<string, Place<R>>(), prefix = new Map<string, Place<R>>(), methods = new Map<string, Place<R>>();
  for (const route of routes) {
    const { type, value } = route.match.path;
    const [places, key] = type === "Exact" ? [exact, value] : type === "Method" ? [methods, value] : [prefix, value.endsWith("/") ? value.slice(0, -1) : value];
    const place = places.get(key);
    if (place) place.routes.push(route);
    else places.set(key, { routes: [route] });
  }
  const prefixLengths = new Set([...prefix.keys()].map(({ length }) => length)), prefixMax = prefixLengths.values().reduce((most, length) => Math.max(most, length), 0);
  return (request) => {
    const { path } = request;
    let best: R | undefined;
    const look = (place: Place<R> | undefined): void => {
      const found = place && (place.sorted ??= place.routes.toSorted(order)).find(({ match }) => isFor(match, request));
      if (found && (!best || order(found, best) < 0)) best = found;
    };
    look(exact.get(path));
    look(methods.get(path.slice(path.indexOf("/", 1) + 1)));
    const lookUnder = (end: number): void => { if (prefixLengths.has(end)) look(prefix.get(path.slice(0, end))); }; // a path may be nothing but slashes: each piece of it takes as long as it is
    if (path.length <= prefixMax) lookUnder(path.length);
    for (let end = path.lastIndexOf("/", prefixMax); end >= 0; end = end === 0 ? -1 : path.lastIndexOf("/", end - 1)) lookUnder(end); // element by element; a slash at the end of the prefix changes nothing
    return best;
  };
}

/** But for the path. */
function isFor({ method, grpc, headers = [], query = [] }: RouteMatch, request: RoutedRequest): boolean {
  if (grpc && !/^application\/grpc\b/i.test(request.header("content-type") ?? "")) return false;
  if (method !== undefined && method !== request.method) return false;
  return headers.every(({ name, value }) => request.header(name) === value) && query.every(({ name, value }) => request.query(name) === value);
}
