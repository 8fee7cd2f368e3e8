/**
 * One GET as a probe or a lifecycle hook makes it: on a connection of its own, with HTTP/2 where a probe's server would rather have that, certificates not verified, the first 10 kB of the body,
 * redirects followed only on the same host. Written on sockets because it must not go through a proxy of the environment, keeps no connection,
 * and sends the Host header it is told to.
 *
 * It is written as Go writes it: a server may be a shell script that looks for one line. Errors read as Go prints them: they end up in events.
 *
 * Source: kubernetes v1.36 pkg/probe/http/{http,request}.go; go 1.26 src/net/http/{client,request,transport}.go
 */
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { Container, EphemeralContainer, HTTPGetAction } from "../../../core/api/gen/core.v1.ts";
import { compareText } from "../../../core/api/meta/compare-text.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { escapePath, parseUrl, UrlError } from "../../../core/api/meta/go-url.ts";
import { afterAwake, type Clock } from "../../../core/lifecycle/clock.ts";
import { hostOf } from "../../../core/net/dial-tcp.ts";
import { KEY_AGREEMENTS } from "../../../core/net/tls.ts";
import { type HttpAnswer, readAnswer } from "./http-answer.ts";
import { http2Get } from "./http2-get.ts";

/** More than any head, and a body of ours in the smallest of chunks. */
const ANSWER_BYTES_MAX = 256 * 1024;
const REDIRECTS_MAX = 10;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
/** What is written elsewhere, or tells of a body that there is none of. */
const NOT_AMONG_OTHERS: readonly string[] = ["Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer"];
/** An answer is looked at as a whole whenever some of it has come; one that comes by the byte, so often, and then no more than now and then: that is cheap to send. */
const EAGER_READS = 64;
const LAZY_MS = 100;

type Header = readonly [name: string, value: string];

interface Get {
  readonly url: URL;
  /** What is asked for there: of `url` dots are resolved, which is the server's to do. */
  readonly target: string;
  readonly headers: readonly Header[];
  /** What the server may choose from, over TLS. */
  readonly protocols: readonly string[];
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** `purpose`: kube-<purpose>/1.36 is who asks. */
export async function httpGetAction(
  action: HTTPGetAction, container: Container | EphemeralContainer, { podIp, purpose, version, ...rest }: { readonly podIp: string; readonly purpose: "probe" | "lifecycle"; readonly version: string } & Pick<Get, "timeoutMs" | "clock" | "signal">,
): Promise<HttpAnswer> {
  const host = action.host || podIp;
  const port = containerPort(action.port, container);
  const { path, query } = goPath(action.path ?? "/");
  const url = new URL(`${(action.scheme ?? "HTTP").toLowerCase()}://${isIP(host) === 6 ? `[${host}]` : host}:${port}${path}${query === "" ? "" : `?${query}`}`);
  return await httpGet({ url, target: `${path}${url.search}`, headers: requestHeaders(action, purpose, version), protocols: purpose === "probe" ? ["h2", "http/1.1"] : [], ...rest });
}

/** As Go reads and writes it: a server is named elsewhere, and what is no URL is a path as a whole. */
function goPath(text: string): { readonly path: string; readonly query: string } {
  const rooted = (path: string): string => (path.startsWith("/") ? path : `/${path}`);
  try {
    const { escapedPath, rawQuery, opaque } = parseUrl(text);
    if (opaque === "") return { path: rooted(escapedPath), query: rawQuery };
  } catch (error) {
    if (!(error instanceof UrlError)) throw error;
  }
  return { path: rooted(escapePath(text)), query: "" };
}

/** The number of a port, looked up by name in the container if it is one. */
export function containerPort(port: number | string, container: Container | EphemeralContainer): number {
  const number = typeof port === "number" ? port : container.ports?.find(({ name }) => name === port)?.containerPort ?? (/^[+-]?\d+$/.test(port) ? Number(port) : Number.NaN); // "0x50" and "1e3" are names
  if (!Number.isInteger(number)) throw new Error(`strconv.Atoi: parsing ${goQuote(String(port))}: invalid syntax`);
  if (number <= 0 || number >= 65536) throw new Error(`invalid port number: ${number}`);
  return number;
}

function requestHeaders({ httpHeaders = [] }: HTTPGetAction, purpose: string, version: string): Header[] {
  const given = httpHeaders.map(({ name, value }): Header => [canonicalName(name), value]);
  const [accept] = given.filter(([name]) => name === "Accept");
  return [
    ...(given.some(([name]) => name === "User-Agent") ? [] : [["User-Agent", `kube-${purpose}/${version}`] as const]), ...(accept ? [] : [["Accept", "*/*"] as const]),
    ...given.filter(([name]) => name !== "Accept" || accept?.[1] !== ""),
  ];
}

function canonicalName(name: string): string {
  return name.toLowerCase().replace(/(^|-)[a-z]/g, (initial) => initial.toUpperCase());
}

function requestText(target: string, address: string, headers: readonly Header[]): string {
  const first = (wanted: string): string => headers.find(([name]) => name === wanted)?.[1] ?? "";
  const others = headers.filter(([name]) => !NOT_AMONG_OTHERS.includes(name)).toSorted(([a], [b]) => compareText(a, b));
  const agent: readonly Header[] = first("User-Agent") === "" ? [] : [["User-Agent", first("User-Agent")]];
  const close: readonly Header[] = others.some(([name, value]) => name === "Connection" && value.toLowerCase() === "close") ? [] : [["Connection", "close"]];
  const lines = [["Host", first("Host") || address] as const, ...agent, ...others, ...close].map(([name, value]) => `${name}: ${value.trim()}`);
  return `${[`GET ${target} HTTP/1.1`, ...lines].join("\r\n")}\r\n\r\n`;
}

async function httpGet(get: Get): Promise<HttpAnswer> {
  const broken = get.headers.find(([, value]) => /[^\P{Cc}\t\x80-\x9f]/u.test(value)); // more lines, perhaps a request of their own
  if (broken) throw new Error(`Get "${shown(get)}": net/http: invalid header field value for ${goQuote(broken[0])}`);
  const deadlineMs = get.clock.uptimeMs() + get.timeoutMs;
  let { url, target, headers } = get;
  for (let redirects = 1; ; redirects++) {
    const answer = await once({ ...get, url, target, headers, timeoutMs: Math.max(1, deadlineMs - get.clock.uptimeMs()) });
    if (!REDIRECTS.includes(answer.status) || !answer.location) return answer;
    const next = new URL(answer.location, url);
    if (next.hostname !== get.url.hostname) return answer;
    if (redirects >= REDIRECTS_MAX) throw new Error(`Get "${answer.location}": stopped after 10 redirects`);
    headers = redirected(headers, get.headers, { from: { url, target }, to: next, isAbsolute: URL.canParse(answer.location) });
    url = next;
    target = `${next.pathname}${next.search}`;
  }
}

/** The host it was told to name is that of its own address; the next one is told where it was named. */
function redirected(headers: readonly Header[], given: readonly Header[], { from, to, isAbsolute }: { readonly from: Pick<Get, "url" | "target">; readonly to: URL; readonly isAbsolute: boolean }): Header[] {
  const kept = headers.filter(([name]) => !(name === "Host" && isAbsolute) && name !== "Referer");
  const referers = given.filter(([name]) => name === "Referer");
  if (referers.length > 0) return [...kept, ...referers];
  return from.url.protocol === "https:" && to.protocol === "http:" ? kept : [...kept, ["Referer", shown(from)]];
}

function once({ url, target, headers, protocols, timeoutMs, clock, signal }: Get): Promise<HttpAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const secure = url.protocol === "https:";
  const hostname = hostOf(url);
  const port = Number(url.port || (secure ? 443 : 80));
  const address = `${url.hostname}:${port}`;
  const request = requestText(target, address, headers);

  const failure = (text: string): void => reject(new Error(`Get "${shown({ url, target })}": ${text}`));
  /** What ends it early is the body's fault once the head is there. */
  const broken = (text: string, ofBody: string): void => (headed ? resolve({ ...headed, bodyFault: ofBody }) : failure(text));
  const chunks: Buffer[] = [];
  let connected = false;
  let ends = ""; // who is connected to whom: a socket that broke no longer knows
  let headed: HttpAnswer | undefined;
  let taken = 0;
  let reads = 0;
  let later: ReturnType<Clock["after"]> | undefined;
  let endSession: (() => void) | undefined;
  const socket: Socket = secure
    ? connectTls({ host: hostname, port, ...KEY_AGREEMENTS, rejectUnauthorized: false, ...(protocols.length > 0 ? { ALPNProtocols: [...protocols] } : {}), ...(isIP(hostname) ? {} : { servername: hostname }) }, () => send())
    : connect({ host: hostname, port }, () => send());
  const timer = afterAwake(clock, timeoutMs, () => broken("context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "context deadline exceeded (Client.Timeout or context cancellation while reading body)"));
  const quit = (): void => failure("context canceled");
  signal.addEventListener("abort", quit, { once: true });

  function send(): void {
    connected = true;
    ends = `${hostPort(socket.localAddress, socket.localPort)}->${hostPort(socket.remoteAddress, socket.remotePort)}`;
    if (secure && (socket as TLSSocket).alpnProtocol === "h2")
      return void (endSession = http2Get(socket as TLSSocket, { url, target, authority: address, headers }, { head: (answer) => { headed = answer; }, whole: resolve, broken: (fault) => broken(fault, fault) }));
    socket.on("data", take).on("end", () => settle(true)).on("close", () => settle(true));
    socket.write(request);
  }
  function take(chunk: Buffer): void {
    chunks.push(chunk);
    taken += chunk.length;
    if (++reads <= EAGER_READS) settle(false);
    else later ??= clock.after(LAZY_MS, () => { later = undefined; settle(false); });
    if (taken > ANSWER_BYTES_MAX) failure(`net/http: server response exceeded ${ANSWER_BYTES_MAX} bytes; aborted`);
  }
  function settle(ended: boolean): void {
    try {
      const { answer, whole } = readAnswer(Buffer.concat(chunks), ended);
      headed = answer;
      if (answer && whole) resolve(answer);
      else if (ended) failure("EOF");
    } catch (error) {
      failure((error as Error).message);
    }
  }
  socket.on("close", () => { if (!connected) settle(true); });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    const read = `read tcp ${ends}: read: ${goError(error)}`;
    if (connected) broken(read, read);
    else if (error.message.includes("WRONG_VERSION_NUMBER")) failure("http: server gave HTTP response to HTTPS client");
    else failure(dialFault(error, hostname, port));
  });
  return promise.finally(() => {
    timer.cancel();
    later?.cancel();
    signal.removeEventListener("abort", quit);
    endSession?.();
    socket.destroy();
  });
}

/** With its port, also where that goes without saying. */
function shown({ url: { protocol, hostname, port }, target }: Pick<Get, "url" | "target">): string {
  return `${protocol}//${hostname}:${port || (protocol === "https:" ? 443 : 80)}${target}`;
}

export function hostPort(address = "", port = 0): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

const GO_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused", EHOSTUNREACH: "connect: no route to host", ENETUNREACH: "connect: network is unreachable", ETIMEDOUT: "connect: connection timed out",
  ECONNRESET: "connection reset by peer",
};

function goError(error: NodeJS.ErrnoException): string { return GO_ERRORS[error.code ?? ""] ?? error.message; }

/** Why there is no connection. */
export function dialFault(error: NodeJS.ErrnoException, host: string, port: number): string {
  return error.code === "ENOTFOUND" || error.code === "EAI_AGAIN" ? `dial tcp: lookup ${host}: no such host` : `dial tcp ${hostPort(host, port)}: ${goError(error)}`;
}
