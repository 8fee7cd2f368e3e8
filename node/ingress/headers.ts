/** What becomes of a request's and an answer's headers on their way. Pure. */
import type { IncomingHttpHeaders } from "node:http";
import type { HeaderEdit, RoutedRequest } from "../../core/ingress/route-table.ts";
import type { HeaderPairs } from "../../core/net/http1-client.ts";

/** Source: RFC 9110 section 7.6.1 */
const HOP_BY_HOP: ReadonlySet<string> = new Set(["connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings"]);
/** What a client says of itself and we know better. Trusting it would let everyone choose the address they come from. */
const OURS: ReadonlySet<string> = new Set(["host", "expect", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-forwarded-server", "x-real-ip"]);

export interface Caller { readonly remoteAddress: string; readonly secure: boolean }

export interface Asked extends RoutedRequest {
  /** As the client wrote it, with its port. */
  readonly authority: string;
  /** Path and query as they came. */
  readonly target: string;
}

/** Undefined: such a request makes no sense. */
export function askedOf({ method = "GET", url = "/", headers }: { readonly method?: string | undefined; readonly url?: string | undefined; readonly headers: IncomingHttpHeaders }): Asked | undefined {
  const authority = (headers[":authority"] as string | undefined) ?? headers.host ?? "";
  const host = /^(\[[0-9a-f:.]+\]|[^:/?#@\s]*)(?::\d*)?$/i.exec(authority)?.[1]?.toLowerCase().replace(/\.$/, "");
  if (host === undefined || !url.startsWith("/")) return undefined;
  const question = url.indexOf("?");
  const rawPath = question < 0 ? url : url.slice(0, question);
  let parameters: URLSearchParams | undefined;
  return {
    host, authority, target: url, method, path: /\/\.|%2e/i.test(rawPath) ? withoutDots(rawPath) : rawPath,
    header(name) {
      const value = headers[name];
      return Array.isArray(value) ? value.join(",") : value;
    },
    query: (name) => (parameters ??= new URLSearchParams(question < 0 ? "" : url.slice(question + 1))).get(name) ?? undefined,
  };
}

/** /a/../b is /b to whoever answers: so it is to us, or a route could be gone around. */
function withoutDots(path: string): string {
  const kept: string[] = [];
  const elements = path.replace(/%2e/gi, ".").split("/").slice(1);
  for (const [i, element] of elements.entries()) {
    const last = i === elements.length - 1;
    if (element === "..") kept.pop();
    if (element !== "." && element !== "..") kept.push(element);
    else if (last) kept.push("");
  }
  return `/${kept.join("/")}`;
}

export function requestHeaders(headers: IncomingHttpHeaders, { remoteAddress, secure }: Caller, { authority, host, upgrade, edits = [] }: { readonly authority: string; /** To the endpoint. */ readonly host: string; readonly upgrade: boolean; readonly edits?: readonly HeaderEdit[] | undefined }): HeaderPairs {
  const named = connectionTokens(headers.connection);
  const pairs: [string, string][] = [["host", host]];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || name.startsWith(":") || HOP_BY_HOP.has(name) || OURS.has(name) || named?.has(name)) continue;
    if (!Array.isArray(value)) pairs.push([name, value]);
    else if (name === "cookie") pairs.push([name, value.join("; ")]);
    else for (const one of value) pairs.push([name, one]);
  }
  if (/\btrailers\b/i.test(String(headers["te"] ?? ""))) pairs.push(["te", "trailers"]);
  if (upgrade) pairs.push(["connection", "Upgrade"], ["upgrade", headers.upgrade ?? ""]);
  const edited = edit(pairs, edits, "request");
  const port = /:(\d+)$/.exec(authority.replace(/^\[.*\]/, ""))?.[1] ?? (secure ? "443" : "80");
  edited.push(["x-forwarded-for", remoteAddress], ["x-forwarded-host", authority], ["x-forwarded-port", port], ["x-forwarded-proto", secure ? "https" : "http"], ["x-real-ip", remoteAddress]);
  return edited;
}

/** As node's servers take them: a list where a name comes more than once. */
export function responseHeaders(headers: HeaderPairs, edits: readonly HeaderEdit[] = []): Record<string, string | string[]> {
  const named = connectionTokens(headers.find(([name]) => name.toLowerCase() === "connection")?.[1]);
  const pairs = headers.flatMap(([given, value]): [string, string][] => {
    const name = given.toLowerCase();
    return HOP_BY_HOP.has(name) || named?.has(name) ? [] : [[name, value]];
  });
  const result = Object.create(null) as Record<string, string | string[]>; // "constructor" is a name like any
  for (const [name, value] of edit(pairs, edits, "response")) {
    const before = result[name];
    result[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value];
  }
  return result;
}

function edit(pairs: readonly (readonly [string, string])[], edits: readonly HeaderEdit[], on: HeaderEdit["on"]): [string, string][] {
  let result = pairs.map(([name, value]): [string, string] => [name, value]);
  for (const one of edits) {
    if (one.on !== on) continue;
    const gone = new Set([...one.set.map(({ name }) => name), ...one.remove]);
    result = result.filter(([name]) => !gone.has(name));
    for (const { name, value } of [...one.set, ...one.add]) result.push([name, value]);
  }
  return result;
}

/** Headers that `Connection` names are for one hop only. */
function connectionTokens(value: string | undefined): ReadonlySet<string> | undefined {
  return value === undefined ? undefined : new Set(value.split(",").map((token) => token.trim().toLowerCase()));
}
