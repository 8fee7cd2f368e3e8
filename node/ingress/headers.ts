/** What becomes of a request's and an answer's headers on their way. Pure. */
import type { IncomingHttpHeaders } from "node:http";
import { requestPath } from "../../core/ingress/route-path.ts";
import type { RoutedRequest } from "../../core/ingress/host-routes.ts";
import type { HeaderEdit } from "../../core/ingress/route-table.ts";
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
  if (host === undefined || !target.startsWith("/") || target.includes("#")) return undefined; // what is behind a # is no part of a request: who answers may leave it out
  const question = target.indexOf("?");
  const rawPath = question < 0 ? target : target.slice(0, question);
  let parameters: URLSearchParams | undefined;
  return {
    host, authority, target, method, path: requestPath(rawPath), header,
    query: (name) => (parameters ??= new URLSearchParams(question < 0 ? "" : target.slice(question + 1))).get(name) ?? undefined,
  };
}

interface Sent {
  readonly authority: string;
  /** To the endpoint. */
  readonly host: string;
  readonly upgrade: boolean;
  readonly edits?: readonly HeaderEdit[] | undefined;
}

export function requestHeaders(headers: IncomingHttpHeaders, caller: Caller, { authority, host, upgrade, edits = [] }: Sent): HeaderPairs {
  const named = connectionTokens(headers.connection), length = headers["content-length"];
  const pairs: [string, string][] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || name.startsWith(":") || isFraming(name) || isOurs(name) || named?.has(name)) continue;
    if (!Array.isArray(value)) pairs.push([name, value]);
    else if (name === "cookie") pairs.push([name, value.join("; ")]);
    else for (const one of value) pairs.push([name, one]);
  }
  const sent: [string, string][] = [["host", host], ...(length === undefined ? [] : [["content-length", length] as [string, string]]), ...edited([...pairs, ...said(caller, authority)], edits, "request")];
  if (/\btrailers\b/i.test(String(headers["te"] ?? ""))) sent.push(["te", "trailers"]);
  if (upgrade) sent.push(["connection", "Upgrade"], ["upgrade", headers.upgrade ?? ""]);
  return sent;
}

/** The head that an endpoint is sent, as bytes of Latin-1. */
export function requestText({ method, fields, named, framing, length }: RequestHead, caller: Caller, { authority, host, target, edits }: {
  readonly authority: string;
  readonly host: string;
  readonly target: string;
  readonly edits: readonly HeaderEdit[];
}): string {
  let trailers = "";
  const lines = passedOn(fields, { edits, on: "request", own: said(caller, authority) }, ({ name, value }) => {
    if (name === "te" && /\btrailers\b/i.test(value)) trailers = "te: trailers\r\n";
    return !isOurs(name) && !named?.has(name);
  });
  return `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\n${framingLine(framing, length)}${trailers}${lines}\r\n`;
}

/** What we say of who asks: headers like others to a route that says what they are to be. */
function said({ remoteAddress, secure, port }: Caller, authority: string): [string, string][] {
  return [["x-forwarded-for", remoteAddress], ["x-forwarded-host", authority], ["x-forwarded-port", portOf(authority, port)], ["x-forwarded-proto", secure ? "https" : "http"], ["x-real-ip", remoteAddress]];
}

/** The head that the client is sent. `date`: for an answer that has none. */
export function responseText({ status, statusText, fields, named, framing, length }: Omit<ResponseHead, "closes">, { edits, date, close }: { readonly edits: readonly HeaderEdit[]; readonly date: string; readonly close: boolean }): string {
  let dated = false;
  const lines = passedOn(fields, { edits, on: "response" }, ({ name }) => {
    if (name === "date") dated = true;
    return !named?.has(name);
  });
  return `HTTP/1.1 ${status} ${statusText}\r\n${lines}${framingLine(framing, length)}${dated ? "" : `date: ${date}\r\n`}${close ? "connection: close\r\n" : ""}\r\n`;
}

/** What neither `Connection` nor an edit may take away or change: the other side would see another end of the body than we do. */
function framingLine(framing: Framing, length: string | undefined): string {
  return framing === "chunked" ? "transfer-encoding: chunked\r\n" : length === undefined ? "" : `content-length: ${length}\r\n`;
}

/** Of one hop, or where a body ends: no header for an edit. */
function isFraming(name: string): boolean { return HOP_BY_HOP.has(name) || name === "content-length"; }

function passedOn(fields: readonly Field[], { edits, on, own = [] }: { readonly edits: readonly HeaderEdit[]; readonly on: HeaderEdit["on"]; readonly own?: readonly [string, string][] | undefined }, passes: (field: Field) => boolean): string {
  const stays = (field: Field): boolean => passes(field) && !isFraming(field.name);
  let text = "";
  if (edits.length === 0) for (const one of fields) text += stays(one) ? `${one.line}\r\n` : "";
  for (const [name, value] of edits.length === 0 ? own : edited([...fields.filter(stays).map(({ name, value }): [string, string] => [name, value]), ...own], edits, on)) text += `${name}: ${value}\r\n`;
  return text;
}

function portOf(authority: string, port: number): string { return /:(\d+)$/.exec(authority)?.[1] ?? String(port); }

/** As node's servers take them: a list where a name comes more than once. */
export function responseHeaders(headers: HeaderPairs, edits: readonly HeaderEdit[] = []): Record<string, string | string[]> {
  const named = connectionTokens(headers.find(([name]) => name.toLowerCase() === "connection")?.[1]);
  const pairs = headers.map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  const result = Object.create(null) as Record<string, string | string[]>; // "constructor" is a name like any
  for (const [name, value] of [...pairs.filter(([name]) => name === "content-length"), ...edited(pairs.filter(([name]) => !isFraming(name) && !named?.has(name)), edits, "response")]) {
    const before = result[name];
    result[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value];
  }
  return result;
}

function edited(pairs: readonly [string, string][], edits: readonly HeaderEdit[], on: HeaderEdit["on"]): readonly [string, string][] {
  let result = pairs;
  for (const one of edits) {
    if (one.on !== on) continue;
    const gone = new Set([...one.set.map(({ name }) => name), ...one.remove]), news = [...one.set, ...one.add].filter(({ name }) => !isFraming(name) && (on === "response" || name !== "host")); // which has a line of its own
    result = [...result.filter(([name]) => !gone.has(name)), ...news.map(({ name, value }): [string, string] => [name, value])];
  }
  return result;
}

/** Headers that `Connection` names are for one hop only. */
function connectionTokens(value: string | undefined): ReadonlySet<string> | undefined {
  return value === undefined ? undefined : new Set(value.split(",").map((token) => token.trim().toLowerCase()));
}
