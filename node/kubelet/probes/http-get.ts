/**
 * One GET as a probe or a lifecycle hook makes it: HTTP/1.1 on a connection of its own, certificates not verified, the first 10 kB of the body,
 * redirects followed only on the same host. Written on sockets because it must not go through a proxy of the environment, keeps no connection,
 * and sends the Host header it is told to.
 *
 * Errors read as Go prints them: they end up in events.
 *
 * Source: kubernetes v1.36 pkg/probe/http/{http,request}.go
 */
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Container, EphemeralContainer, HTTPGetAction } from "../../../core/api/gen/core.v1.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";

export interface HttpAnswer { readonly status: number; readonly body: string; /** Set when it points to another host: not followed. */ readonly location: string | undefined }

const BODY_BYTES_MAX = 10 * 1024;
const HEAD_BYTES_MAX = 64 * 1024;
/** More than any head, and a body of ours in the smallest of chunks. */
const ANSWER_BYTES_MAX = 256 * 1024;
const STATUS_LINE_BYTES = 16;
const REDIRECTS_MAX = 10;

interface Get { readonly url: URL; readonly headers: readonly (readonly [string, string])[]; readonly timeoutMs: number; readonly clock: Clock; readonly signal: AbortSignal }

/** `purpose`: kube-<purpose>/1.36 is who asks. */
export async function httpGetAction(
  action: HTTPGetAction, container: Container | EphemeralContainer, { podIp, purpose, version, ...rest }: { readonly podIp: string; readonly purpose: "probe" | "lifecycle"; readonly version: string } & Pick<Get, "timeoutMs" | "clock" | "signal">,
): Promise<HttpAnswer> {
  const host = action.host || podIp;
  const port = containerPort(action.port, container);
  const url = new URL(`${(action.scheme ?? "HTTP").toLowerCase()}://${isIP(host) === 6 ? `[${host}]` : host}:${port}${(action.path ?? "/").startsWith("/") ? "" : "/"}${action.path ?? "/"}`);
  return await httpGet({ url, headers: requestHeaders(action, purpose, version), ...rest });
}

/** The number of a port, looked up by name in the container if it is one. */
export function containerPort(port: number | string, container: Container | EphemeralContainer): number {
  const number = typeof port === "number" ? port : container.ports?.find(({ name }) => name === port)?.containerPort ?? Number(port);
  if (!Number.isInteger(number)) throw new Error(`couldn't find port: "${port}" in container "${container.name}"`);
  if (number <= 0 || number >= 65536) throw new Error(`invalid port number: ${number}`);
  return number;
}

function requestHeaders({ httpHeaders = [] }: HTTPGetAction, purpose: string, version: string): [string, string][] {
  const headers: [string, string][] = httpHeaders.map(({ name, value }) => [name, value]);
  const has = (name: string): boolean => headers.some(([header]) => header.toLowerCase() === name);
  if (!has("user-agent")) headers.push(["User-Agent", `kube-${purpose}/${version}`]);
  if (!has("accept")) headers.push(["Accept", "*/*"]);
  return headers.filter(([name, value]) => !(name.toLowerCase() === "accept" && value === ""));
}

async function httpGet(get: Get): Promise<HttpAnswer> {
  const deadlineMs = get.clock.uptimeMs() + get.timeoutMs;
  let url = get.url;
  for (let redirects = 0; ; redirects++) {
    if (redirects >= REDIRECTS_MAX) throw new Error(`Get "${shown(url)}": stopped after 10 redirects`);
    const answer = await once({ ...get, url, timeoutMs: Math.max(1, deadlineMs - get.clock.uptimeMs()) });
    if (answer.status < 300 || answer.status >= 400 || answer.location === undefined) return { ...answer, location: undefined };
    const next = new URL(answer.location, url);
    if (next.hostname !== get.url.hostname) return answer;
    url = next;
  }
}

function once({ url, headers, timeoutMs, clock, signal }: Get): Promise<HttpAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const secure = url.protocol === "https:";
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const port = Number(url.port || (secure ? 443 : 80));
  const address = `${url.hostname}:${port}`;
  const hostHeader = headers.find(([name]) => name.toLowerCase() === "host")?.[1] ?? address;
  const lines = headers.filter(([name]) => name.toLowerCase() !== "host").map(([name, value]) => `${name}: ${value}`);
  const request = `${[`GET ${url.pathname}${url.search} HTTP/1.1`, `Host: ${hostHeader}`, ...lines, "Connection: close"].join("\r\n")}\r\n\r\n`;

  const failure = (text: string): void => reject(new Error(`Get "${shown(url)}": ${text}`));
  const chunks: Buffer[] = [];
  let connected = false;
  let taken = 0;
  const socket: Socket = secure
    ? connectTls({ host: hostname, port, rejectUnauthorized: false, ...(isIP(hostname) ? {} : { servername: hostname }) }, () => send())
    : connect({ host: hostname, port }, () => send());
  const timer = clock.after(timeoutMs, () => failure(`${connected ? "" : `dial tcp ${address}: `}context deadline exceeded (Client.Timeout exceeded while awaiting headers)`));
  const quit = (): void => failure("context canceled");
  signal.addEventListener("abort", quit, { once: true });

  function send(): void {
    connected = true;
    socket.write(request);
  }
  function settle(ended: boolean): void {
    const bytes = finalAnswer(Buffer.concat(chunks));
    const fault = faultOf(bytes, ended);
    if (fault !== undefined) return failure(fault);
    const answer = parseAnswer(bytes, ended);
    if (answer) resolve(answer);
    else if (ended) failure("EOF");
  }
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    taken += chunk.length;
    if (taken > ANSWER_BYTES_MAX) failure(`net/http: server response exceeded ${ANSWER_BYTES_MAX} bytes; aborted`);
    else settle(false);
  });
  socket.on("end", () => settle(true));
  socket.on("close", () => settle(true));
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (connected) failure(`read tcp ${hostPort(socket.localAddress, socket.localPort)}->${hostPort(socket.remoteAddress, socket.remotePort)}: read: ${goError(error)}`);
    else if (error.message.includes("WRONG_VERSION_NUMBER")) failure("http: server gave HTTP response to HTTPS client");
    else failure(`${error.code === "ENOTFOUND" || error.code === "EAI_AGAIN" ? "dial tcp" : `dial tcp ${address}`}: ${goError(error, hostname)}`);
  });
  return promise.finally(() => {
    timer.cancel();
    signal.removeEventListener("abort", quit);
    socket.destroy();
  });
}

/** With its port, also where that goes without saying. */
function shown(url: URL): string {
  return url.port === "" ? url.href.replace(url.host, `${url.hostname}:${url.protocol === "https:" ? 443 : 80}`) : url.href;
}

function hostPort(address = "", port = 0): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Why these bytes are no beginning of an answer. */
function faultOf(bytes: Buffer, ended: boolean): string | undefined {
  const line = bytes.indexOf("\n");
  if (line < 0 && bytes.length > HEAD_BYTES_MAX) return `net/http: server response headers exceeded ${HEAD_BYTES_MAX} bytes; aborted`;
  if (line < 0 && !(ended && bytes.length > 0)) return undefined;
  const first = bytes.toString("latin1", 0, line < 0 ? bytes.length : line).replace(/\r$/, "");
  if (!/^HTTP\/1\.[01] \d{3}/.test(first)) return `net/http: HTTP/1.x transport connection broken: malformed HTTP response ${goQuote(first)}`;
  if (bytes.length > HEAD_BYTES_MAX && bodyAt(bytes) < 0) return `net/http: server response headers exceeded ${HEAD_BYTES_MAX} bytes; aborted`;
  return undefined;
}

/** Behind the empty line; -1: not there yet. Lines without a carriage return are lines too: small servers send them. */
function bodyAt(bytes: Buffer): number {
  const [plain, full] = [bytes.indexOf("\n\n"), bytes.indexOf("\n\r\n")];
  if (plain < 0 || (full >= 0 && full < plain)) return full < 0 ? -1 : full + 3;
  return plain + 2;
}

/** Without "100 Continue" and its like in front, which say nothing. */
function finalAnswer(bytes: Buffer): Buffer {
  let rest = bytes;
  while (/^HTTP\/1\.[01] 1\d\d/.test(rest.toString("latin1", 0, STATUS_LINE_BYTES))) {
    const at = bodyAt(rest);
    if (at < 0) break;
    rest = rest.subarray(at);
  }
  return rest;
}

/** The answer once enough of it is there: all of the head, and the body or as much of it as we want. */
function parseAnswer(bytes: Buffer, ended: boolean): HttpAnswer | undefined {
  const at = bodyAt(bytes);
  if (at < 0) return undefined;
  const [first = "", ...lines] = bytes.toString("latin1", 0, at).split(/\r?\n/);
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1] ?? 0);
  const header = (name: string): string | undefined => lines.find((line) => line.toLowerCase().startsWith(`${name}:`))?.slice(name.length + 1).trim();
  const raw = bytes.subarray(at);
  const chunked = header("transfer-encoding")?.toLowerCase().includes("chunked") ?? false;
  const length = header("content-length");
  const body = chunked ? unchunk(raw) : { data: raw, whole: (length !== undefined && raw.length >= Number(length)) || status === 204 || status === 304 };
  if (!ended && !body.whole && body.data.length < BODY_BYTES_MAX) return undefined;
  return { status, body: body.data.toString("utf8", 0, Math.min(body.data.length, BODY_BYTES_MAX)), location: header("location") };
}

function unchunk(bytes: Buffer): { readonly data: Buffer; readonly whole: boolean } {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = bytes.indexOf("\r\n", at);
    const digits = line < 0 ? undefined : /^[0-9a-f]+/i.exec(bytes.toString("latin1", at, line))?.[0]; // no sign: backwards there is no end
    const size = digits === undefined ? Number.NaN : Number.parseInt(digits, 16);
    if (size === 0 || Number.isNaN(size)) return { data: Buffer.concat(parts), whole: size === 0 };
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}

const GO_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused", EHOSTUNREACH: "connect: no route to host", ENETUNREACH: "connect: network is unreachable", ETIMEDOUT: "connect: connection timed out",
  ECONNRESET: "connection reset by peer",
};

export function goError(error: NodeJS.ErrnoException, host = ""): string {
  if (error.code === "ENOTFOUND" || error.code === "EAI_AGAIN") return `lookup ${host}: no such host`;
  return GO_ERRORS[error.code ?? ""] ?? error.message;
}
