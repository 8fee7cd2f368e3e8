/**
 * Passes a request on to a backend, and its answer back: as it is for an upgrade, through the reverse proxy's rules for headers otherwise.
 *
 * What proved to us who calls (certificates aside: Authorization, tokens among WebSocket protocols, impersonation, front proxies' headers) is
 * not for the backend to see.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/proxy/upgradeaware.go; Go net/http/httputil ReverseProxy
 */
import { posix } from "node:path";
import { pipeline, type Readable, Transform } from "node:stream";
import { createGunzip } from "node:zlib";
import { errorText } from "../../api/meta/error-text.ts";
import { badRequest, internalError, serviceUnavailable, statusError, type StatusError } from "../../api/meta/status-error.ts";
import { isHandedOver } from "../../net/http-server.ts";
import { http1Request, type Http1Request, type Http1Response } from "../../net/http1-client.ts";
import { askKept } from "../../net/kept-connections.ts";
import { proxyBytes } from "../../net/proxy-bytes.ts";
import type { HeaderPairs } from "../../net/response-head.ts";
import type { RawAnswer, UpgradeAnswer } from "../answer.ts";
import type { ServerRequest } from "../request.ts";
import type { Scope } from "../scope.ts";
import type { Backend } from "./backend.ts";
import { escapeIllegal, rewriteHtml, rewriteLocation, type Rewriting } from "./rewrite.ts";

/** Source: RFC 9110 section 7.6.1, as ReverseProxy has it */
const HOP_BY_HOP: ReadonlySet<string> = new Set(["connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"]);
const CREDENTIALS: ReadonlySet<string> = new Set(["authorization", "x-remote-user", "x-remote-group", "x-remote-uid", "impersonate-user", "impersonate-group", "impersonate-uid"]);
const CREDENTIAL_PREFIXES = ["impersonate-extra-", "x-remote-extra-"];
export const BEARER_PROTOCOL = "base64url.bearer.authorization.k8s.io.";
/** Source: upgradeaware.go removeCORSHeaders */
const CORS: ReadonlySet<string> = new Set(["access-control-allow-credentials", "access-control-allow-headers", "access-control-allow-methods", "access-control-allow-origin"]);

/** Go says of these that there is no body. */
const SAID_TO_BE_EMPTY: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/** Whatever it asks for. Source: kubernetes v1.36 apimachinery/pkg/util/httpstream/httpstream.go IsUpgradeRequest */
export function asksForUpgrade(request: Pick<ServerRequest, "header">): boolean { return /upgrade/i.test(request.header("connection") ?? ""); }

/** To what everybody's connection is handed over. */
export function isUpgrade(request: Pick<ServerRequest, "header">): boolean { return asksForUpgrade(request) && isHandedOver(request.header("upgrade") ?? ""); }

const GO_CLIENT = ["User-Agent", "Go-http-client/1.1"] as const;

/** Joins the client's connection with the backend's, once that has accepted. Throws 400 if the request is no upgrade. */
export async function forwardUpgrade({ request, signal, server: { clock, isWithheld = () => false } }: Forwarded, backend: Backend, target: string, { identity = [], host = request.header("host") ?? backend.host }: Pick<Forwarding, "identity" | "host"> = {}): Promise<UpgradeAnswer> {
  if (!asksForUpgrade(request)) throw badRequest("Upgrade request required");
  const connection = await backend.connect().catch((error: unknown) => { throw failed(`error dialing backend: ${errorText(error)}`); });
  const headers: HeaderPairs = [["Host", host], ...(request.header("user-agent") === undefined ? [GO_CLIENT] : []), ...passedOn(request, ({ name }) => name !== "content-length" && !isWithheld(name) && !isIn(identity, name), true), ...identity];
  const response = await http1Request(connection, { method: request.method, target: escapeIllegal(target), headers, isUpgrade: true }, signal).catch((error: unknown) => { throw failed(errorText(error)); });
  const { upgraded } = response;
  if (!upgraded && response.status < 400) {
    response.body.destroy();
    throw failed(`invalid upgrade response: status code ${response.status}`);
  }
  return {
    type: "upgrade",
    take(socket, head) {
      socket.on("error", () => socket.destroy());
      socket.write(upgraded || response.length !== undefined || isChunked(response) ? response.head : closing(response.head));
      if (!upgraded) {
        response.body.on("error", () => socket.destroy());
        (isChunked(response) ? response.body.pipe(chunks()) : response.body).pipe(socket);
        return;
      }
      if (upgraded.early.length > 0) socket.write(upgraded.early);
      void proxyBytes(socket, upgraded.connection, { clock, early: head });
    },
  };
}

/** Said as it is: it has no reason of the API's. */
function failed(message: string): StatusError { return statusError({ code: 500, reason: "", message }); }

function isChunked({ headers }: Http1Response): boolean { return headers.some(([name, value]) => name.toLowerCase() === "transfer-encoding" && value.toLowerCase() === "chunked"); }

/** A body as its head says it goes. */
function chunks(): Transform {
  return new Transform({
    transform: (chunk: Buffer, _, done) => done(null, Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")])),
    flush: (done) => done(null, "0\r\n\r\n"),
  });
}

/** Of an answer that ends with its connection: says so. */
function closing(head: Buffer): Buffer { return Buffer.from(head.toString("latin1").replace(/(\r?\n)\r?\n$/, "$1Connection: close\r\n\r\n"), "latin1"); }

interface Forwarding {
  readonly backend: Backend;
  /** The path at the backend, escaped. */
  readonly path: string;
  /** Of the client's path, what stands before the backend's. */
  readonly prefix: string;
  /** Headers that tell the backend who calls, when it believes us. */
  readonly identity?: HeaderPairs;
  /** As the backend is to have it; absent: as the client sent it. */
  readonly query?: string;
  /** For the Host header; absent: whom the client asked. */
  readonly host?: string;
  /** What links to it in pages begin with, where that is not the client's own server. */
  readonly origin?: string;
}

/** What of a request's scope is needed here. */
export type Forwarded = Pick<Scope, "request" | "signal"> & { readonly server: Pick<Scope["server"], "clock" | "isWithheld"> };

export async function forwardHttp({ request, signal, server: { isWithheld = () => false } }: Forwarded, { backend, path: wanted, prefix, origin, identity = [], query = request.wire?.rawQuery ?? request.query.toString(), host = request.header("host") ?? request.header(":authority") ?? backend.host }: Forwarding): Promise<RawAnswer> {
  const path = escapeIllegal(wanted), hasBody = request.wire && mayHaveBody(request);
  const headers: HeaderPairs = [
    ["Host", host], ...passedOn(request, ({ name }) => !HOP_BY_HOP.has(name) && !isWithheld(name) && (hasBody || name !== "content-length") && !isIn(identity, name)),
    ...(hasBody || !SAID_TO_BE_EMPTY.has(request.method) ? [] : [["Content-Length", "0"] as const]), ...(/\btrailers\b/i.test(request.header("te") ?? "") ? [["Te", "trailers"] as const] : []),
    ["X-Forwarded-Uri", joinPath(prefix, path)], ...identity,
  ];
  const unreachable = (error: unknown): never => { throw serviceUnavailable(`error trying to reach service: ${errorText(error)}`); };
  const zips = request.method !== "HEAD" && request.header("accept-encoding") === undefined && request.header("range") === undefined;
  const asked: Http1Request = {
    method: request.method, target: `${path === "" ? "/" : path}${query === "" ? "" : `?${query}`}`,
    headers: zips ? [...headers, ["Accept-Encoding", "gzip"]] : headers, ...(hasBody ? { body: request.wire.body } : {}), onEarly: (early) => request.tellEarly?.(early.status, withoutHops(early.headers)),
  };
  const response = await exchange(backend, asked, signal).catch(unreachable);
  if (response.upgraded) {
    response.upgraded.connection.destroy();
    throw internalError(new Error(`backend tried to switch protocol ${JSON.stringify(headerOf(response, "upgrade") ?? "")} when "" was requested`));
  }
  return await answerOf(zips ? unzipped(response) : response, { prefix, origin, backendHost: backend.host, requestHost: host });
}

/** What was asked for in our own name, not the client's. */
function unzipped(response: Http1Response): Http1Response {
  if (headerOf(response, "content-encoding")?.toLowerCase() !== "gzip" || response.length === 0) return response;
  const body = createGunzip();
  pipeline(response.body, body, () => undefined); // whoever reads it hears of its end
  return { ...response, length: undefined, headers: response.headers.filter(([name]) => !["content-encoding", "content-length"].includes(name.toLowerCase())), body };
}

function headerOf({ headers }: Http1Response, wanted: string): string | undefined { return headers.find(([name]) => name.toLowerCase() === wanted)?.[1]; }

/** Of HTTP/2 a body may come without a word. */
function mayHaveBody(request: ServerRequest): boolean {
  const length = request.header("content-length");
  if (length !== undefined) return length !== "0";
  return request.header("transfer-encoding") !== undefined || (request.header(":authority") !== undefined && !["GET", "HEAD"].includes(request.method));
}

/** What can be asked twice goes over a kept connection, all else over a new one, which is kept then. */
async function exchange(backend: Backend, asked: Http1Request, signal: AbortSignal): Promise<Http1Response> {
  if (!backend.open) return await http1Request(await backend.connect(), asked, signal);
  if (!asked.body && (asked.method === "GET" || asked.method === "HEAD")) return await askKept((fresh) => backend.open!(fresh), () => asked, signal);
  const { connection, release } = await backend.open(true);
  return await http1Request(connection, { ...asked, release }, signal);
}

async function answerOf(response: Http1Response, rewriting: Rewriting): Promise<RawAnswer> {
  const { status, trailerNames } = response;
  let { body, length }: { body: Readable | Uint8Array; length: number | undefined } = response;
  let passed = withoutHops(response.headers).filter(([name]) => !CORS.has(name.toLowerCase()));
  const location = headerOf(response, "location") ?? "";
  if (location !== "") passed = passed.map(([name, value]) => [name, name.toLowerCase() === "location" ? escapeIllegal(rewriteLocation(location, rewriting)) : value] as const);
  else if ((headerOf(response, "content-type") ?? "").split(";")[0]!.trim() === "text/html") {
    body = await rewriteHtml(response.body, headerOf(response, "content-encoding") ?? "", rewriting);
    if (body instanceof Uint8Array) {
      passed = passed.filter(([name]) => name.toLowerCase() !== "content-length");
      length = body.length;
    }
  }
  if (trailerNames.length > 0) passed = [...passed, ["Trailer", trailerNames.join(", ")]];
  const headers: Record<string, string> = {};
  for (const [given, value] of passed) {
    const name = given.toLowerCase();
    headers[name] = Object.hasOwn(headers, name) ? `${headers[name]}, ${value}` : value;
  }
  return { type: "raw", status, headers, passedOn: { headers: passed, length }, body };
}

/** What is for one hop only goes no further. */
function withoutHops(headers: HeaderPairs): HeaderPairs {
  const named = connectionTokens(headers);
  return headers.filter(([name]) => !HOP_BY_HOP.has(name.toLowerCase()) && !named.has(name.toLowerCase()));
}

/** The headers a backend gets, with the client's address among X-Forwarded-For. */
function passedOn(request: ServerRequest, wanted: (header: { readonly name: string }) => boolean, keepsHops = false): HeaderPairs {
  const all = [...request.headers()];
  const named = keepsHops ? new Set<string>() : connectionTokens(all);
  const pairs: [string, string][] = [];
  let forwardedFor = request.remoteAddress;
  for (const [name, value] of all) {
    if (name === "host" || name.startsWith(":") || CREDENTIALS.has(name) || CREDENTIAL_PREFIXES.some((prefix) => name.startsWith(prefix)) || !wanted({ name })) continue;
    if (named.has(name)) continue;
    if (name === "x-forwarded-uri") continue;
    if (name === "x-forwarded-for") forwardedFor = `${value}, ${forwardedFor}`;
    else if (name === "sec-websocket-protocol") {
      const protocols = value.split(",").map((one) => one.trim()).filter((one) => !one.startsWith(BEARER_PROTOCOL));
      if (protocols.length > 0) pairs.push([spelled(name), protocols.join(", ")]);
    } else pairs.push([spelled(name), value]);
  }
  return [...pairs, ["X-Forwarded-For", forwardedFor]];
}

/** As Go sends it: small servers may know no other spelling. */
function spelled(name: string): string { return name.replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase()); }

/** What we say ourselves is not also said by the client. */
function isIn(headers: HeaderPairs, name: string): boolean { return headers.some(([own]) => own.toLowerCase() === name); }

/** Headers that `Connection` names are for one hop only. */
function connectionTokens(headers: HeaderPairs): ReadonlySet<string> {
  return new Set(headers.filter(([name]) => name.toLowerCase() === "connection").flatMap(([, value]) => value.split(",").map((token) => token.trim().toLowerCase())));
}

function joinPath(prefix: string, path: string): string {
  return posix.normalize(`${prefix.replace(/\/+$/, "")}/${path.replace(/^\/+/, "")}`);
}
