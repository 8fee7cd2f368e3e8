/**
 * exec, attach and port-forward: the client's connection is joined with one to the runtime's streaming server.
 *
 *   SPDY/3.1, WebSocket v3 and older       the runtime speaks them too: bytes go through as they are, SPDY's once spdy-gate.ts has seen them
 *   WebSocket v5, v4 .channel.k8s.io       stream-translator.ts
 *   WebSocket SPDY/3.1+portforward.k8s.io  the payload of the messages is a SPDY connection
 *
 * When a pod ends a forwarded connection, containerd and CRI-O tell it a second later, unless the client has ended it too: an answer that ends with its
 * connection takes that long with kubectl port-forward, as on every cluster (containerd internal/cri/server/sandbox_portforward_linux.go).
 *
 * Source: kubernetes v1.36 pkg/kubelet/server/server.go, apiserver/pkg/util/proxy/streamtunnel.go
 */
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { errorText } from "../../../core/api/meta/error-text.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { hostOf } from "../../../core/net/dial-tcp.ts";
import { headerOf } from "../../../core/net/header-of.ts";
import { http1Request, type Http1Response } from "../../../core/net/http1-client.ts";
import { proxyBytes } from "../../../core/net/proxy-bytes.ts";
import { readFirst } from "../../../core/net/read-first.ts";
import type { HeaderPairs } from "../../../core/net/response-head.ts";
import { spdyGate } from "../../../core/net/spdy/spdy-gate.ts";
import { webSocket, webSocketAnswer, webSocketProblem } from "../../../core/net/websocket.ts";
import { CriError } from "../../cri/client.ts";
import type { KubeletApi, PodName, StreamOptions } from "../kubelet-api.ts";
import { AnswerError } from "./answer.ts";
import { translateStreams, V4, V5 } from "./stream-translator.ts";

interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  /** Decoded parts of the path. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const TUNNEL_PREFIX = "SPDY/3.1+";
const TUNNEL_SUFFIX = "k8s.io";
/** How long the runtime may take to answer a handshake. */
const HANDSHAKE_MS = 30_000;
/** What the client has sent is still for the runtime, if that takes it by then. */
const LINGER_MS = 10_000;
/** What of the client's headers concerns the runtime. */
const PASSED_ON: ReadonlySet<string> = new Set(["connection", "upgrade", "x-stream-protocol-version", "user-agent"]);

/** Resolves once the connections are joined, or were; throws what the client is to be told as an HTTP answer before that. */
export async function upgrade(api: KubeletApi, upgrade: Upgrade): Promise<void> {
  const [kind] = upgrade.parts;
  if (kind === "portForward") return await portForward(api, upgrade);
  await execOrAttach(api, upgrade);
}

/** What is told of a request that wants to stay HTTP, once it is one that could be served otherwise. Throws what is wrong with it before that. */
export function notUpgraded(api: KubeletApi, { method, parts: [kind, namespace = "", name = "", ...rest], query }: { readonly method: string; readonly parts: readonly string[]; readonly query: URLSearchParams }): AnswerError {
  if (method !== "GET" && method !== "POST") return new AnswerError(405, "405: Method Not Allowed");
  if (kind !== "portForward") streamOptions(query);
  podOf(api, { namespace, name, uid: kind === "portForward" ? rest[0] : undefined });
  return new AnswerError(500, "Upgrade request required\n");
}

/** The runtime keeps a stream that nobody has opened for so long, and only so many of them. Source: kubernetes v1.36 cri-streaming pkg/streaming/request_cache.go */
const UNUSED_SECONDS = 60;

/** What is asked for may be gone meanwhile, or the runtime have more such streams than it keeps. */
export function asAnswer(error: unknown): unknown {
  if (!(error instanceof CriError)) return error;
  if (error.code === "ResourceExhausted") return new AnswerError(429, error.message, { "Retry-After": String(UNUSED_SECONDS) });
  return error.code === "NotFound" ? new AnswerError(404, error.message) : error;
}

async function execOrAttach(api: KubeletApi, { request, socket, head, parts, query, clock, signal }: Upgrade): Promise<void> {
  const [kind, namespace = "", name = "", ...rest] = parts;
  const [uid, container] = rest.length === 2 ? rest : [undefined, rest[0]];
  const options = streamOptions(query);
  const pod = podOf(api, { namespace, name, uid });
  const call = kind === "exec"
    ? () => api.exec(pod, container ?? "", query.getAll("command"), options, signal)
    : () => api.attach(pod, container ?? "", options, signal);

  const protocol = translated(offers(request));
  if (protocol === undefined) return join(socket, head, await open(new URL(await call()), { method: request.method ?? "POST", headers: passedOn(request) }, clock, signal), clock);
  const problem = webSocketProblem((header) => headerOf(request, header));
  if (problem !== undefined) throw new AnswerError(400, problem);
  const url = new URL(await call());
  const { upgraded } = accepted(await open(url, { method: "POST", headers: spdyHeaders([V4]) }, clock, signal));
  socket.write(webSocketAnswer(headerOf(request, "sec-websocket-key")!, protocol));
  await translateStreams({ protocol, client: { socket, early: head }, runtime: { socket: upgraded.connection, early: upgraded.early }, options, clock });
}

/**
 * v4 for the runtime's sake: containerd and CRI-O take a WebSocket without stdin for one whose stdin has ended, and a terminal ends with that, its output
 * unread (`stream(…, tty=True, stdin=False)` of the client for Python).
 */
function translated(offered: readonly string[]): typeof V4 | typeof V5 | undefined {
  return offered.includes(V5) ? V5 : offered[0] === V4 ? V4 : undefined;
}

async function portForward(api: KubeletApi, { request, socket, head, parts, query, clock, signal }: Upgrade): Promise<void> {
  const [, namespace = "", name = "", uid] = parts;
  const tunnelled = offers(request).filter((protocol) => protocol.startsWith(TUNNEL_PREFIX) && protocol.endsWith(TUNNEL_SUFFIX));
  const isWebSocket = headerOf(request, "upgrade")?.toLowerCase() === "websocket";
  const ports = isWebSocket && tunnelled.length === 0 ? portsOf(query) : [];
  const pod = podOf(api, { namespace, name, uid });
  const url = new URL(await api.portForward(pod, ports, signal));
  if (ports.length > 0) url.search = `?port=${ports.join(",")}`;
  if (tunnelled.length === 0) return join(socket, head, await open(url, { method: request.method ?? "POST", headers: passedOn(request) }, clock, signal), clock);

  const problem = webSocketProblem((header) => headerOf(request, header));
  if (problem !== undefined) throw new AnswerError(400, problem);
  const response = accepted(await open(url, { method: "POST", headers: spdyHeaders(tunnelled.map((protocol) => protocol.slice(TUNNEL_PREFIX.length))) }, clock, signal));
  const chosen = response.headers.find(([header]) => header.toLowerCase() === "x-stream-protocol-version")?.[1] ?? tunnelled[0]!.slice(TUNNEL_PREFIX.length);
  socket.write(webSocketAnswer(headerOf(request, "sec-websocket-key")!, `${TUNNEL_PREFIX}${chosen}`));
  await tunnel({ socket, early: head }, { socket: response.upgraded.connection, early: response.upgraded.early }, clock);
}

interface End { readonly socket: Duplex; readonly early: Uint8Array }

/** Messages on one side, their bytes on the other. */
function tunnel(client: End, runtime: End, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const backend = runtime.socket, gate = spdyGate();
  const peer = webSocket(client.socket, {
    early: client.early, clock,
    message(data, type) {
      if (type !== "binary") return peer.close(1003, "expected binary data");
      try {
        const through = gate(data);
        if (through.length > 0 && backend.writable && !backend.write(through)) peer.pause();
      } catch {
        peer.close(1002, "not SPDY");
        backend.destroy();
      }
    },
    drain: () => void backend.resume(),
    closed() {
      const late = clock.after(LINGER_MS, () => backend.destroy()); // it may take nothing any more
      backend.once("close", () => late.cancel());
      backend.end(() => backend.destroy());
      resolve();
    },
  });
  backend.on("data", (chunk: Buffer) => { if (!peer.send([chunk])) backend.pause(); });
  backend.on("drain", () => peer.resume());
  backend.on("error", () => backend.destroy()); // its close follows
  backend.on("close", () => peer.close(1000));
  if (runtime.early.length > 0) peer.send([runtime.early]);
  backend.resume();
  return promise;
}

/** Both ends speak the same: what the runtime answered goes to the client, and from there on all bytes. */
function join(socket: Duplex, head: Buffer, response: Http1Response, clock: Clock): Promise<void> {
  socket.write(response.head);
  if (!response.upgraded) {
    response.body.on("data", (chunk: Buffer) => void socket.write(chunk)); // a few words: why it was refused
    const { promise, resolve } = Promise.withResolvers<void>();
    response.body.on("close", () => {
      socket.end();
      resolve();
    });
    return promise;
  }
  const { connection, early } = response.upgraded;
  if (early.length > 0) socket.write(early);
  const speaks = response.headers.find(([name]) => name.toLowerCase() === "upgrade")?.[1] ?? "";
  return proxyBytes(socket, connection, { clock, early: head, ...(/^websocket$/i.test(speaks) ? {} : { gate: spdyGate() }) });
}

async function open(url: URL, { method, headers }: { readonly method: string; readonly headers: HeaderPairs }, clock: Clock, signal: AbortSignal): Promise<Http1Response> {
  const late = new AbortController();
  const alarm = clock.after(HANDSHAKE_MS, () => late.abort(new Error("the container runtime did not answer")));
  const socket = readFirst(connect({ host: hostOf(url), port: Number(url.port || 80), noDelay: true })); // a command may end before its stdin
  try {
    return await http1Request(socket, { method, target: `${url.pathname}${url.search}`, headers: [["Host", url.host], ...headers] }, AbortSignal.any([signal, late.signal]));
  } catch (cause) {
    socket.destroy();
    throw new AnswerError(500, `error dialing backend: ${errorText(cause)}`);
  } finally {
    alarm.cancel();
  }
}

function accepted(response: Http1Response): Http1Response & { readonly upgraded: NonNullable<Http1Response["upgraded"]> } {
  const { upgraded } = response;
  if (upgraded) return { ...response, upgraded };
  response.body.destroy();
  throw new AnswerError(500, `unable to upgrade connection: the container runtime answered ${response.status} ${response.statusText}`);
}

function spdyHeaders(protocols: readonly string[]): HeaderPairs {
  return [["Connection", "Upgrade"], ["Upgrade", "SPDY/3.1"], ...protocols.map((protocol): [string, string] => ["X-Stream-Protocol-Version", protocol])];
}

function passedOn({ rawHeaders }: IncomingMessage): HeaderPairs {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (PASSED_ON.has(name) || name.startsWith("sec-websocket-")) pairs.push([rawHeaders[i]!, rawHeaders[i + 1]!]);
  }
  return pairs;
}
function offers(request: IncomingMessage): string[] {
  return (headerOf(request, "sec-websocket-protocol") ?? "").split(",").map((protocol) => protocol.trim()).filter((protocol) => protocol !== "");
}

function podOf(api: KubeletApi, name: PodName): PodName {
  const pod = api.pod({ namespace: name.namespace, name: name.name });
  if (!pod) throw new AnswerError(404, "pod does not exist");
  if (name.uid !== undefined && name.uid !== pod.metadata.uid) throw new AnswerError(404, "pod not found");
  return { ...name, uid: pod.metadata.uid };
}

function streamOptions(query: URLSearchParams): StreamOptions {
  const [tty, stdin, stdout, stderr] = ["tty", "input", "output", "error"].map((name) => query.get(name) === "1");
  if (!stdin && !stdout && !stderr) throw new AnswerError(400, "you must specify at least 1 of stdin, stdout, stderr");
  return { tty: tty!, stdin: stdin!, stdout: stdout!, stderr: stderr! && !tty };
}

/** For WebSockets each of them has two channels: data, and errors. */
function portsOf(query: URLSearchParams): number[] {
  const values = query.getAll("port");
  if (values.length === 0) throw new AnswerError(400, 'query parameter "port" is required');
  return values.flatMap((value) => {
    if (value === "") throw new AnswerError(400, 'query parameter "port" cannot be empty');
    return value.split(",").map((text) => {
      const why = !/^\d+$/.test(text) ? "invalid syntax" : Number(text) > PORT_MAX ? "value out of range" : undefined;
      if (why !== undefined) throw new AnswerError(400, `unable to parse ${goQuote(value)} as a port: strconv.ParseUint: parsing ${goQuote(text)}: ${why}`);
      if (Number(text) < 1) throw new AnswerError(400, `port ${goQuote(value)} must be > 0`);
      return Number(text);
    });
  });
}

const PORT_MAX = 65_535;
