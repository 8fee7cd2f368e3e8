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
import { type HttpAnswer, readAnswer } from "./http-answer.ts";

/** More than any head, and a body of ours in the smallest of chunks. */
const ANSWER_BYTES_MAX = 256 * 1024;
const REDIRECTS_MAX = 10;
/** An answer is looked at as a whole whenever some of it has come; one that comes by the byte, so often, and then no more than now and then: that is cheap to send. */
const EAGER_READS = 64;
const LAZY_MS = 100;

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
  if (!Number.isInteger(number)) throw new Error(`strconv.Atoi: parsing ${goQuote(String(port))}: invalid syntax`);
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
  /** What ends it early is the body's fault once the head is there. */
  const broken = (text: string, ofBody: string): void => (headed ? resolve({ ...headed, bodyFault: ofBody }) : failure(text));
  const chunks: Buffer[] = [];
  let connected = false;
  let ends = ""; // who is connected to whom: a socket that broke no longer knows
  let headed: HttpAnswer | undefined;
  let taken = 0;
  let reads = 0;
  let later: ReturnType<Clock["after"]> | undefined;
  const socket: Socket = secure
    ? connectTls({ host: hostname, port, rejectUnauthorized: false, ...(isIP(hostname) ? {} : { servername: hostname }) }, () => send())
    : connect({ host: hostname, port }, () => send());
  const timer = clock.after(timeoutMs, () => broken(`${connected ? "" : `dial tcp ${address}: `}context deadline exceeded (Client.Timeout exceeded while awaiting headers)`, "context deadline exceeded (Client.Timeout or context cancellation while reading body)"));
  const quit = (): void => failure("context canceled");
  signal.addEventListener("abort", quit, { once: true });

  function send(): void {
    connected = true;
    ends = `${hostPort(socket.localAddress, socket.localPort)}->${hostPort(socket.remoteAddress, socket.remotePort)}`;
    socket.write(request);
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
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    taken += chunk.length;
    if (++reads <= EAGER_READS) settle(false);
    else later ??= clock.after(LAZY_MS, () => { later = undefined; settle(false); });
    if (taken > ANSWER_BYTES_MAX) failure(`net/http: server response exceeded ${ANSWER_BYTES_MAX} bytes; aborted`);
  });
  socket.on("end", () => settle(true));
  socket.on("close", () => settle(true));
  socket.on("error", (error: NodeJS.ErrnoException) => {
    const read = `read tcp ${ends}: read: ${goError(error)}`;
    if (connected) broken(read, read);
    else if (error.message.includes("WRONG_VERSION_NUMBER")) failure("http: server gave HTTP response to HTTPS client");
    else failure(`${error.code === "ENOTFOUND" || error.code === "EAI_AGAIN" ? "dial tcp" : `dial tcp ${address}`}: ${goError(error, hostname)}`);
  });
  return promise.finally(() => {
    timer.cancel();
    later?.cancel();
    signal.removeEventListener("abort", quit);
    socket.destroy();
  });
}

/** With its port, also where that goes without saying. */
function shown(url: URL): string {
  return url.port === "" ? url.href.replace(url.host, `${url.hostname}:${url.protocol === "https:" ? 443 : 80}`) : url.href;
}

export function hostPort(address = "", port = 0): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

const GO_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused", EHOSTUNREACH: "connect: no route to host", ENETUNREACH: "connect: network is unreachable", ETIMEDOUT: "connect: connection timed out",
  ECONNRESET: "connection reset by peer",
};

export function goError(error: NodeJS.ErrnoException, host = ""): string {
  if (error.code === "ENOTFOUND" || error.code === "EAI_AGAIN") return `lookup ${host}: no such host`;
  return GO_ERRORS[error.code ?? ""] ?? error.message;
}
