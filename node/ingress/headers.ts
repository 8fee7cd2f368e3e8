/** What becomes of a request's and an answer's headers on their way. Pure. */
import type { IncomingHttpHeaders } from "node:http";
import type { HeaderEdit, RoutedRequest } from "../../core/ingress/route-table.ts";
import type { Field, Framing, RequestHead, ResponseHead } from "../../core/net/http1-head.ts";
import type { HeaderPairs } from "../../core/net/response-head.ts";

/** Source: RFC 9110 section 7.6.1 */
const HOP_BY_HOP: ReadonlySet<string> = new Set(["connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings"]);
/** What a client says of itself and we know better. Trusting it would let everyone choose the address they come from. */
const OURS: ReadonlySet<string> = new Set(["host", "expect", "forwarded", "x-real-ip"]);
const OURS_PREFIX = "x-forwarded-";

export function isHopByHop(name: string): boolean { return HOP_BY_HOP.has(name); }

/** To those who are told of headers as variables of an environment (CGI, WSGI) a line is a dash: X_Real_IP would be what we say, too. */
function isOurs(name: string): boolean {
  const read = name.includes("_") ? name.replaceAll("_", "-") : name;
  return OURS.has(read) || read.startsWith(OURS_PREFIX);
}

/** `door`: the port of this node that it came to; `port`: the one that leads there from outside; `serverName`: asked for with TLS. */
export interface Caller { readonly remoteAddress: string; readonly secure: boolean; readonly door: number; readonly port: number; readonly serverName?: string | undefined }

export interface Asked extends RoutedRequest {
  /** As the client wrote it, with its port. */
  readonly authority: string;
  /** Path and query as they came. */
  readonly target: string;
}

/** Undefined: such a request makes no sense. */
export function askedOf({ method = "GET", url = "/", headers }: { readonly method?: string | undefined; readonly url?: string | undefined; readonly headers: IncomingHttpHeaders }): Asked | undefined {
  return makeAsked({ method, target: url, authority: (headers[":authority"] as string | undefined) ?? headers.host ?? "" }, (name) => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(",") : value;
  });
}

/** The same of a head as it came over HTTP/1. A target with a host, as proxies are asked, means that host. */
export function askedByHead({ method, target, host = "", fields }: Pick<RequestHead, "method" | "target" | "host" | "fields">): Asked | undefined {
  const absolute = target.startsWith("/") ? undefined : /^https?:\/\/([^/?#]*)(.*)$/i.exec(target);
  const path = absolute?.[2] ?? target;
  return makeAsked({ method, target: absolute && !path.startsWith("/") ? `/${path}` : path, authority: absolute?.[1] ?? host }, (name) => {
    const values = fields.filter((one) => one.name === name);
    return values.length === 0 ? undefined : values.map(({ value }) => value).join(",");
  });
}

const AUTHORITY = /^(\[[0-9a-f:.]+\]|[^:/?#@\s]*)(?::\d*)?$/i;

function makeAsked({ method, target, authority }: Pick<Asked, "method" | "target" | "authority">, header: Asked["header"]): Asked | undefined {
  const host = AUTHORITY.exec(authority)?.[1]?.toLowerCase().replace(/\.$/, "");
  if (host === undefined || !target.startsWith("/")) return undefined;
  const question = target.indexOf("?");
  const rawPath = question < 0 ? target : target.slice(0, question);
  let parameters: URLSearchParams | undefined;
  return {
    host, authority, target, method, path: /\/\.|%/.test(rawPath) ? withoutDots(rawPath.replace(UNRESERVED, decodeURIComponent)) : rawPath, header,
    query: (name) => (parameters ??= new URLSearchParams(question < 0 ? "" : target.slice(question + 1))).get(name) ?? undefined,
  };
}

/** Letters, digits and -._~, escaped: to whoever answers it is the same as if they stood there, and a route could be gone around. Source: RFC 3986 section 6.2.2.2 */
const UNRESERVED = /%(?:4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|3\d|2[de]|5f|7e)/gi;

/** /a/../b is /b to whoever answers: so it is to us, or a route could be gone around. */
function withoutDots(path: string): string {
  const kept: string[] = [];
  const elements = path.split("/").slice(1);
  for (const [i, element] of elements.entries()) {
    const last = i === elements.length - 1;
    if (element === "..") kept.pop();
    if (element !== "." && element !== "..") kept.push(element);
    else if (last) kept.push("");
  }
  return `/${kept.join("/")}`;
}

interface Sent {
  readonly authority: string;
  /** To the endpoint. */
  readonly host: string;
  readonly upgrade: boolean;
  readonly edits?: readonly HeaderEdit[] | undefined;
}

export function requestHeaders(headers: IncomingHttpHeaders, { remoteAddress, secure, port }: Caller, { authority, host, upgrade, edits = [] }: Sent): HeaderPairs {
  const named = connectionTokens(headers.connection);
  const pairs: [string, string][] = [["host", host]];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || name.startsWith(":") || HOP_BY_HOP.has(name) || isOurs(name) || named?.has(name)) continue;
    if (!Array.isArray(value)) pairs.push([name, value]);
    else if (name === "cookie") pairs.push([name, value.join("; ")]);
    else for (const one of value) pairs.push([name, one]);
  }
  if (/\btrailers\b/i.test(String(headers["te"] ?? ""))) pairs.push(["te", "trailers"]);
  if (upgrade) pairs.push(["connection", "Upgrade"], ["upgrade", headers.upgrade ?? ""]);
  const edited = edit(pairs, edits, "request");
  edited.push(["x-forwarded-for", remoteAddress], ["x-forwarded-host", authority], ["x-forwarded-port", portOf(authority, port)], ["x-forwarded-proto", secure ? "https" : "http"], ["x-real-ip", remoteAddress]);
  return edited;
}

/** The head that an endpoint is sent, as bytes of Latin-1. */
export function requestText({ method, fields, named, framing, length }: RequestHead, { remoteAddress, secure, port }: Caller, { authority, host, target, edits }: {
  readonly authority: string;
  readonly host: string;
  readonly target: string;
  readonly edits: readonly HeaderEdit[];
}): string {
  let trailers = "";
  const lines = passedOn(fields, edits, "request", ({ name, value }) => {
    if (name === "te" && /\btrailers\b/i.test(value)) trailers = "te: trailers\r\n";
    return !isOurs(name) && !named?.has(name);
  });
  return `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\n${lines}${trailers}${framingLine(framing, length)}x-forwarded-for: ${remoteAddress}\r\nx-forwarded-host: ${authority}\r\nx-forwarded-port: ${portOf(authority, port)}\r\nx-forwarded-proto: ${secure ? "https" : "http"}\r\nx-real-ip: ${remoteAddress}\r\n\r\n`;
}

/** The head that the client is sent. `date`: for an answer that has none. */
export function responseText({ status, statusText, fields, named, framing, length }: Omit<ResponseHead, "closes">, { edits, date, close }: { readonly edits: readonly HeaderEdit[]; readonly date: string; readonly close: boolean }): string {
  let dated = false;
  const lines = passedOn(fields, edits, "response", ({ name }) => {
    if (name === "date") dated = true;
    return !named?.has(name);
  });
  return `HTTP/1.1 ${status} ${statusText}\r\n${lines}${framingLine(framing, length)}${dated ? "" : `date: ${date}\r\n`}${close ? "connection: close\r\n" : ""}\r\n`;
}

/** What neither `Connection` nor an edit may take away or change: the other side would see another end of the body than we do. */
function framingLine(framing: Framing, length: string | undefined): string {
  return framing === "chunked" ? "transfer-encoding: chunked\r\n" : length === undefined ? "" : `content-length: ${length}\r\n`;
}

function passedOn(fields: readonly Field[], edits: readonly HeaderEdit[], on: HeaderEdit["on"], passes: (field: Field) => boolean): string {
  const own = (field: Field): boolean => passes(field) && !HOP_BY_HOP.has(field.name) && field.name !== "content-length";
  let text = "";
  if (edits.length === 0) for (const one of fields) text += own(one) ? `${one.line}\r\n` : "";
  else for (const [name, value] of edit(fields.filter(own).map((one) => [one.name, one.value]), edits, on)) if (!HOP_BY_HOP.has(name) && name !== "content-length") text += `${name}: ${value}\r\n`;
  return text;
}

function portOf(authority: string, port: number): string { return /:(\d+)$/.exec(authority)?.[1] ?? String(port); }

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
