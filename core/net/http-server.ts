/**
 * The HTTPS server: HTTP/1.1 and HTTP/2 on one port, with client certificates, upgrades, live certificate reload and an orderly end.
 *
 *   const server = httpsServer({ host, port, portFlag: "--https-listen-port", tls: () => material, handler, upgrade, log, clock });
 *   await server.run(signal, ready);          a Runnable
 *   server.reloadCertificates();              new connections get what tls() gives now
 *   httpServer({ … })                         the same without TLS: HTTP/1.1
 *   seatedServer({ … }).take(socket)          the same for connections that somebody else has accepted, and whose TLS has ended there
 *
 * A node:tls server hands its sockets, by ALPN, to an http or an http2 server: in Bun the only arrangement that shows the peer's
 * certificate on both. What Bun leaves to us is here and in connections.ts: deadlines (one sweep over all connections), a missing Host, sockets of
 * failed handshakes, peers that stop reading, requests that come before the one before them is answered (request-turns.ts), streams that are opened only to be reset.
 *
 * The end: no new connections; GOAWAY, or `Connection: close` after the request under way; `stopping` aborts, so that handlers end
 * their watches; what is left after `drainMs` is cut off.
 */
import * as http from "node:http";
import * as http2 from "node:http2";
import * as net from "node:net";
import type { Duplex } from "node:stream";
import * as tls from "node:tls";
import { aborted } from "../lifecycle/aborted.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import { acceptInTurns } from "./accept-in-turns.ts";
import { type Connection, type ConnectionLimits, Connections, type Tracked } from "./connections.ts";
import { headsAsBytes } from "./head-bytes.ts";
import { notTls } from "./not-tls.ts";
import { lastResponse, oddRequest } from "./odd-requests.ts";
import { requestTurns } from "./request-turns.ts";
import { peerCertificateOf, plainAddress, tlsOptions, type TlsMaterial, WRONG_KEY_USAGE } from "./tls.ts";
import "./waiting-frames.ts";
import { clientMayWiden } from "./widened-windows.ts";

export interface ServerLimits extends ConnectionLimits {
  /** Of a request's head over HTTP/1.1. Over HTTP/2 it is HTTP2_HEADER_BYTES_MAX, or this if that is less. */
  readonly headerBytesMax: number;
  /** Requests under way at once on one connection of HTTP/2. */
  readonly streamsMax: number;
}

/** Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/server/secure_serving.go, where it names a number. */
const SERVER_LIMITS: ServerLimits = {
  connectionsMax: 10_000, firstRequestMs: 32_000, idleMs: 90_000, stalledMs: 60_000, mayPause: true, headerBytesMax: 64 * 1024, streamsMax: 250, resetsMax: 1_000, drainMs: 5_000,
};

/** MiB that may wait for one HTTP/2 peer before its next request is refused, whose default of 10 a few lists are: they are in memory anyway, and whoever takes nothing is cut off. */
const SESSION_MIB_MAX = 1024;
/** What may be under way to here on one stream, and on all of them until the engine has heard of it. Source: kubernetes v1.36 apiserver/pkg/server/secure_serving.go MaxUploadBufferPerStream */
const WINDOW_BYTES = 256 * 1024;
/** The engine ends connections whose heads are larger, whatever it is told: so clients are told. */
const HTTP2_HEADER_BYTES_MAX = 64 * 1024;
/** As many fields as there is room for, 32 bytes counting for each beside its own (RFC 9113 section 6.5.2): the engine's own 128 are soon used up by who acts in the name of a user of many groups, each a field. */
const HTTP2_FIELDS_MAX = HTTP2_HEADER_BYTES_MAX / 32;
/** A field whose value begins or ends with a blank is as good as any, as Go has it: the engine would leave it out without a word, and whoever acts in another's name would act in their own. */
const AS_SENT = { strictFieldWhitespaceValidation: false };
const SWEEP_MS = 5_000;
/** Probes find peers that vanished without a word: a watch has nothing else to notice it by. */
const KEEP_ALIVE_MS = 30_000;
const UPGRADES: ReadonlySet<string> = new Set(["websocket", "spdy/3.1"]);

/** Whether a connection is handed over to who speaks this after HTTP. What else it might become is not asked: such a request is one like any. */
export function isHandedOver(upgrade: string): boolean { return UPGRADES.has(upgrade.toLowerCase()); }


export interface HttpServerOptions {
  readonly host: string;
  /** 0: any free one; see `address`. */
  readonly port: number;
  /** The flag that sets the port, for the message when it is taken. */
  readonly portFlag: string;
  /** HTTP/2 requests come in node's compatibility form. Must not throw. */
  readonly handler: (request: http.IncomingMessage, response: http.ServerResponse, connection: Connection) => void;
  /** For `Upgrade: websocket` and `Upgrade: SPDY/3.1`, and where `handsOver` says so. The socket is the callee's from here on. */
  readonly upgrade: (request: http.IncomingMessage, socket: Duplex, upgrade: { readonly head: Buffer; readonly connection: Connection }) => void;
  /** Of a path: whether a connection is handed over to whatever protocol is asked for there. */
  readonly handsOver?: ((path: string) => boolean) | undefined;
  /** Serves connections over HTTP/1.1 instead of node's server: for whoever does no more than pass them on. */
  readonly http1?: ((socket: net.Socket, seat: Http1Seat) => void) | undefined;
  /** Clients of gRPC are among those of HTTP/2, which widen their windows under way. */
  readonly widened?: boolean | undefined;
  readonly log: Log;
  readonly clock: Clock;
  readonly limits?: Partial<ServerLimits>;
}

/** A connection that somebody else serves, as this server goes on to see it: it is closed when it is idle, when the end comes, and when its peer takes nothing. */
export interface Http1Seat {
  readonly connection: Connection;
  readonly headerBytesMax: number;
  /** Aborts when the end begins: the answer under way is the last. */
  readonly stopping: AbortSignal;
  began(): void;
  ended(): void;
  /** Node's own server has it from here on, beginning with what has come. Not while a request is under way. */
  handOver(to: "http/1.1" | "h2", came: Buffer): void;
}

export interface HttpsServerOptions extends HttpServerOptions {
  readonly tls: () => TlsMaterial;
  /** What a client is shown that asks for this name; undefined: what `tls` gives. */
  readonly certificateFor?: ((serverName: string) => tls.SecureContext | undefined) | undefined;
  readonly handshakeFailed?: (() => void) | undefined;
}

export interface HttpsServer extends Runnable {
  /** Undefined until it listens. */
  address(): net.AddressInfo | undefined;
  reloadCertificates(): void;
  /** Aborts when the end begins. */
  readonly stopping: AbortSignal;
  readonly connectionCount: number;
}

export interface SeatedServer extends Pick<Runnable, "run"> {
  /** After the handshake. */
  take(socket: tls.TLSSocket): void;
}

export function httpsServer(options: HttpsServerOptions): HttpsServer { return makeServer(options, options); }

/** Without TLS: HTTP/1.1 only. */
export function httpServer(options: HttpServerOptions): HttpsServer { return makeServer(options, undefined); }

/** Listens nowhere. */
export function seatedServer(options: Omit<HttpServerOptions, "host" | "port" | "portFlag">): SeatedServer { return makeServer({ ...options, host: "", port: 0, portFlag: "" }, "elsewhere"); }

function makeServer({ host, port, portFlag, handler, upgrade, handsOver, log, clock, http1, widened, limits: given = {} }: HttpServerOptions, security: Pick<HttpsServerOptions, "tls" | "certificateFor" | "handshakeFailed"> | "elsewhere" | undefined): HttpsServer & SeatedServer {
  const limits = { ...SERVER_LIMITS, ...given };
  const connections = new Connections(limits, { clock, log });
  const h1 = http1Server(), h2 = http2Server();
  const secure = security && security !== "elsewhere" ? secureListener(security) : undefined;
  const listener: net.Server = acceptInTurns(secure ?? net.createServer(accept), { clock });
  let opening: Tracked | undefined; // whose "session" event comes while its socket is handed over: the session itself does not tell

  function secureListener({ tls: material, certificateFor, handshakeFailed }: Pick<HttpsServerOptions, "tls" | "certificateFor" | "handshakeFailed">): tls.Server {
    const chosen = certificateFor && { SNICallback: (name: string, done: (error: Error | null, context?: tls.SecureContext) => void) => done(null, certificateFor(name)) };
    const made = tls.createServer({ ...tlsOptions(material()), ...chosen, ALPNProtocols: ["h2", "http/1.1"], handshakeTimeout: limits.firstRequestMs }, accept);
    const tellNotTls = notTls(made);
    made.on("connection", (socket) => connections.arrives(socket));
    let toldWrongUsage = false;
    const tellWrongUsage = (remoteAddress: string): void => { // strangers may have it said once
      if (!toldWrongUsage) log.warn("a client's certificate cannot be shown here: its key usage is without digital signature; have it issued anew", { remoteAddress });
      toldWrongUsage = true;
    };
    made.on("tlsClientError", (error, socket) => {
      tellNotTls(error, socket);
      handshakeFailed?.();
      if ((error as NodeJS.ErrnoException).code === WRONG_KEY_USAGE) tellWrongUsage(plainAddress(socket.remoteAddress));
      log.debug("TLS handshake failed", { remoteAddress: plainAddress(socket.remoteAddress), error: error.message });
      socket.destroy();
    });
    return made;
  }

  function accept(socket: net.Socket | tls.TLSSocket): void {
    socket.on("error", (error) => log.debug("connection failed", { error: error.message }));
    if (!connections.hasRoom()) return void socket.destroy();
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    const encrypted = security ? (socket as tls.TLSSocket) : undefined;
    const connection = connections.add(socket, { remoteAddress: plainAddress(socket.remoteAddress), peerCertificate: encrypted && peerCertificateOf(encrypted), serverName: encrypted && serverNameOf(encrypted) });
    if (encrypted?.alpnProtocol === "h2") serve(connection, "h2");
    else if (http1) http1(socket, seatOf(connection));
    else serve(connection, "http/1.1");
  }

  function serve(connection: Tracked, protocol: Connection["protocol"]): void {
    connection.protocol = protocol;
    if (protocol === "h2") connection.takeNoMore = () => connection.session?.close();
    opening = connection;
    if (protocol === "h2" && widened) clientMayWiden(connection.socket, () => beginHttp2(connection));
    else if (protocol === "h2") beginHttp2(connection);
    else h1.emit("connection", headsAsBytes(connection.socket));
    opening = undefined;
    if (protocol === "http/1.1") connection.turns = requestTurns(connection.socket, () => connection.active);
  }

  function beginHttp2(connection: Tracked): http2.ServerHttp2Session | undefined {
    h2.emit("connection", connection.socket);
    return connection.session;
  }

  function seatOf(connection: Tracked): Http1Seat {
    return {
      connection, headerBytesMax: limits.headerBytesMax, stopping: connections.stopping, began: () => connections.began(connection), ended: () => connections.ended(connection),
      handOver(to, came) {
        serve(connection, to);
        connection.socket.emit("data", came); // what is pushed back (unshift) does not reach them in Bun
      },
    };
  }

  function begin(connection: Tracked, response: http.ServerResponse | http2.Http2ServerResponse): void {
    connections.began(connection);
    const answer = "stream" in response ? response.stream : response;
    connection.answers.add(answer);
    if (connections.isLast(connection)) response.setHeader("Connection", "close");
    else if ("shouldKeepAlive" in response && response.shouldKeepAlive && !/\bclose\b/i.test(response.req.headers.connection ?? "")) response.removeHeader("Connection"); // that it is kept goes without saying
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      connection.answers.delete(answer);
      connections.ended(connection);
      connection.turns?.next();
    };
    response.once("close", over);
    if ("stream" in response) response.stream.once("finish", over); // it is answered, though its client may never end what it sends
  }

  function http1Server(): http.Server {
    const made = http.createServer({
      maxHeaderSize: limits.headerBytesMax, keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0,
      shouldUpgradeCallback: ({ headers, url = "/" }) => isHandedOver(headers.upgrade ?? "") || (handsOver?.(originForm(url).replace(/\?.*/, "")) ?? false), // others are requests like any
    });
    made.maxHeadersCount = 0; // how long they are altogether is limited, and how many that can be
    made.on("request", (request, response) => {
      const connection = connections.of(request.socket);
      if (!connection) return void request.socket.destroy();
      begin(connection, response);
      connection.newest = request;
      connection.turns?.inTurn(() => {
        const problem = headProblem(request);
        if (problem !== undefined) return refuse(request.socket, problem);
        request.url = originForm(request.url ?? "/");
        if (request.url === "*" && request.method === "OPTIONS") return void response.writeHead(200, { "Content-Length": 0 }).end();
        handler(request, response, connection);
      });
    });
    made.on("upgrade", (request, socket, head) => {
      const connection = connections.of(socket);
      if (!connection) return void socket.destroy();
      const rest = connection.turns ? [connection.turns.leave()] : [];
      connection.upgraded = true;
      connection.turns?.inTurn(() => {
        const problem = headProblem(request);
        if (problem !== undefined) return refuse(socket, problem);
        request.url = originForm(request.url ?? "/");
        upgrade(request, socket, { head: Buffer.concat([head, ...rest]), connection });
      });
    });
    made.on("checkExpectation", (request, response) => {
      if (request.headers.expect === "") return void made.emit("request", request, response); // who sends the field empty, so as not to send it, expects nothing
      response.shouldKeepAlive = false;
      response.writeHead(417, { "Content-Length": 0 }).end();
    });
    made.on("connect", (request, socket) => serveLast(request, socket as net.Socket));
    made.on("clientError", (error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }, socket) => {
      const connection = connections.of(socket), rest = connection?.turns?.leave();
      const odd = error.code === "HPE_INVALID_METHOD" && error.rawPacket && connection?.active === 0 && oddRequest(socket as net.Socket, Buffer.concat([error.rawPacket, ...(rest ? [rest] : [])]));
      if (odd) return serveLast(odd, socket as net.Socket);
      const say = (): void => refuse(socket, REFUSALS[error.code ?? ""] ?? "400 Bad Request");
      if (connection?.turns && connection.newest?.complete !== false) connection.turns.inTurn(say); // behind the answers to what was right
      else say(); // who waits for the rest of a body would wait for ever
    });
    return made;

    function serveLast(request: http.IncomingMessage, socket: net.Socket): void {
      const connection = connections.of(socket);
      if (!connection || connection.active > 0) return void socket.destroy(); // another answer has the socket yet
      connection.turns?.leave();
      const problem = headProblem(request);
      if (problem !== undefined) return refuse(socket, problem);
      const response = lastResponse(request, socket);
      begin(connection, response);
      const url = originForm(request.url ?? "/");
      request.url = url.startsWith("/") || request.method !== "CONNECT" ? url : ""; // a server that somebody wants to reach is no path
      handler(request, response, connection);
    }
  }

  function http2Server(): http2.Http2Server {
    const made = http2.createServer({ settings: { initialWindowSize: WINDOW_BYTES, maxConcurrentStreams: limits.streamsMax, maxHeaderListSize: Math.min(limits.headerBytesMax, HTTP2_HEADER_BYTES_MAX) }, maxHeaderListPairs: HTTP2_FIELDS_MAX, maxSessionRejectedStreams: limits.resetsMax, maxSessionMemory: SESSION_MIB_MAX, ...AS_SENT });
    const ofSession = new WeakMap<http2.Http2Session, Tracked>();
    made.on("session", (session) => {
      session.on("error", (error) => log.debug("HTTP/2 connection failed", { error: error.message }));
      if (!opening) return void session.destroy();
      opening.session = session;
      ofSession.set(session, opening);
      session.setLocalWindowSize(WINDOW_BYTES);
    });
    made.on("sessionError", (error) => log.debug("HTTP/2 connection failed", { error: error.message }));
    made.on("request", (request, response) => {
      const connection = request.stream.session && ofSession.get(request.stream.session);
      if (!connection) return void request.stream.close(http2.constants.NGHTTP2_CANCEL);
      if (BROKEN_ESCAPE.test(request.url)) return void request.stream.close(http2.constants.NGHTTP2_PROTOCOL_ERROR);
      request.stream.once("close", () => { if (request.stream.rstCode !== http2.constants.NGHTTP2_NO_ERROR) connection.resets++; });
      begin(connection, response);
      handler(request as unknown as http.IncomingMessage, response as unknown as http.ServerResponse, connection);
    });
    return made;
  }

  async function listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      listener.once("error", (cause: NodeJS.ErrnoException) => reject(listenError(cause, { host, port, portFlag })));
      listener.listen({ host, port }, resolve);
    });
    listener.on("error", (error) => log.error("listener failed", { error }));
  }

  return {
    name: secure ? "https server" : "http server",
    stopping: connections.stopping,
    get connectionCount() { return connections.size; },
    address: () => (listener.address() ?? undefined) as net.AddressInfo | undefined,
    take: accept,
    reloadCertificates: () => { if (security && security !== "elsewhere") secure?.setSecureContext(tlsOptions(security.tls())); },
    async run(signal, ready) {
      if (security !== "elsewhere") await listen();
      ready();
      const sweeping = (async () => { for await (const _ of clock.every(SWEEP_MS, signal)) connections.sweep(); })();
      await aborted(signal);
      await connections.drain(security === "elsewhere" ? Promise.resolve() : new Promise((resolve) => listener.close(() => resolve())));
      await sweeping;
    },
  };
}

function serverNameOf(socket: tls.TLSSocket): string | undefined {
  const { servername } = socket as tls.TLSSocket & { readonly servername?: string | false | null };
  return servername ? servername.toLowerCase() : undefined;
}

const UNKNOWN_CODING = "501 Not Implemented";
/** By what the parser says. */
const REFUSALS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large", HPE_INVALID_VERSION: "505 HTTP Version Not Supported: unsupported protocol version",
};

/** A percent sign in a path with something else behind it than two digits. */
const BROKEN_ESCAPE = /^[^?]*%(?![0-9a-f]{2})/i;
const HOST = /^[A-Za-z0-9!$%&'()*+,\-.:;=[\]_~]*$/;

/** Why nobody is asked to answer, as a status line has it. Source: go net/http/server.go readRequest, net/url parse */
function headProblem({ url = "", headers: { host, "transfer-encoding": coding = "chunked" }, rawHeaders, httpVersion }: http.IncomingMessage): string | undefined {
  if (BROKEN_ESCAPE.test(url)) return "400 Bad Request";
  if (coding.toLowerCase() !== "chunked") return UNKNOWN_CODING;
  if (host === undefined) return httpVersion === "1.1" ? "400 Bad Request: missing required Host header" : undefined;
  if (rawHeaders.filter((name, i) => i % 2 === 0 && name.length === 4 && name.toLowerCase() === "host").length > 1) return "400 Bad Request";
  return HOST.test(host) ? undefined : "400 Bad Request: malformed Host header";
}

/** "GET https://host/path" is allowed by HTTP, and means "/path". */
function originForm(url: string): string {
  const found = /^https?:\/\/[^/?#]*(.*)$/i.exec(url);
  if (!found) return url;
  return found[1]!.startsWith("/") ? found[1]! : `/${found[1]}`;
}

function refuse(socket: Duplex, status: string): void {
  if (socket.writableEnded) return; // the parser and we may both have found something
  if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${status === UNKNOWN_CODING ? "Unsupported transfer encoding" : status}`, () => socket.destroy());
  else socket.destroy();
}

function listenError(cause: NodeJS.ErrnoException, { host, port, portFlag }: Pick<HttpServerOptions, "host" | "port" | "portFlag">): Error {
  if (cause.code === "EADDRINUSE") return new Error(`port ${port} on ${host} is in use by another program: stop that, or choose another port with ${portFlag}`, { cause });
  if (cause.code === "EACCES") return new Error(`port ${port} on ${host} needs more privileges: run as root, or choose a port above 1023 with ${portFlag}`, { cause });
  return new Error(`cannot listen on ${host} port ${port} (${portFlag})`, { cause });
}
