/**
 * One request: its route is found, an endpoint chosen, the request sent there and the answer back, both streaming, no faster than the slower side.
 *
 *   no route 404 · no endpoint 503 · no endpoint answers 502 · none in time 504
 *
 * Another endpoint is tried when one cannot be connected to; when one fails after it was sent the request, only if that changes nothing (GET, HEAD, OPTIONS
 * without a body). The endpoint with fewer requests under way is taken, of two that are drawn.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Duplex } from "node:stream";
import type { Endpoint, Resolved } from "../../core/ingress/endpoints.ts";
import { type Action, type Backend, type Redirect, rewritePath, type Route, type RouteTable } from "../../core/ingress/route-table.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import { http1Request, type Http1Response } from "../../core/net/http1-client.ts";
import { proxyBytes } from "../../core/net/proxy-bytes.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Counter, Histogram } from "../../core/observe/metrics.ts";
import { type Asked, askedOf, type Caller, requestHeaders, responseHeaders } from "./headers.ts";
import type { H2Upstreams, Http2Response } from "./h2-upstreams.ts";
import type { Upstreams } from "./upstreams.ts";

export interface ForwarderDeps {
  readonly table: (secure: boolean) => RouteTable;
  /** Undefined: there is no such Service, or it has no such port. */
  readonly resolve: (backend: Backend) => Resolved | undefined;
  readonly upstreams: Upstreams;
  readonly h2Upstreams: H2Upstreams;
  readonly requests: Counter;
  readonly seconds: Histogram;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

type Forward = Extract<Action, { type: "forward" }>;
interface Call { readonly asked: Asked; readonly route: Route; readonly action: Forward; readonly caller: Caller; readonly upgrade: boolean; readonly signal: AbortSignal }
interface Sent<R> { readonly response: R; readonly edits: Backend["edits"] }

const TRIES_MAX = 3;
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const TEXTS: Readonly<Record<number, string>> = { 400: "400 bad request\n", 404: "404 page not found\n", 500: "500 internal server error\n", 502: "502 bad gateway\n", 503: "503 no available server\n", 504: "504 gateway timeout\n" };

/** An answer of our own. */
class Refusal extends Error {
  readonly status: number;
  constructor(status: number, options?: ErrorOptions) {
    super(TEXTS[status] ?? `${status}\n`, options);
    this.status = status;
  }
}

export class Forwarder {
  readonly #deps: ForwarderDeps;
  constructor(deps: ForwarderDeps) { this.#deps = deps; }

  async handle(request: IncomingMessage, response: ServerResponse, caller: Caller): Promise<void> {
    const { clock, log, seconds, requests } = this.#deps;
    const beganMs = clock.uptimeMs();
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    response.on("error", () => gone.abort());
    try {
      await this.#answer(request, response, caller, gone.signal);
    } catch (error) {
      if (gone.signal.aborted) return;
      const status = error instanceof Refusal ? error.status : 502;
      if (status >= 500) log.debug("a request could not be served", { host: request.headers.host, url: request.url, status, error: error instanceof Refusal ? error.cause : error });
      if (response.headersSent) response.destroy();
      else respond(request, response, status);
    } finally {
      requests.inc({ code: String(response.statusCode), method: methodLabel(request.method) });
      seconds.observe((clock.uptimeMs() - beganMs) / 1000);
    }
  }

  /** Joins the client's connection with an endpoint's, once that has accepted. */
  async upgrade(request: IncomingMessage, socket: Duplex, { head, caller }: { readonly head: Buffer; readonly caller: Caller }): Promise<void> {
    const { clock, requests } = this.#deps;
    const gone = new AbortController();
    socket.on("error", () => socket.destroy());
    socket.once("close", () => gone.abort());
    let status = 502;
    try {
      const { asked, route } = this.#route(request, caller);
      if (route.action.type !== "forward") throw new Refusal(route.action.type === "fail" ? route.action.status : 400);
      const answer = await this.#send(request, { asked, route, action: route.action, caller, upgrade: true, signal: gone.signal }) as Sent<Http1Response>;
      status = answer.response.status;
      const { upgraded } = answer.response;
      if (upgraded) {
        socket.write(answer.response.head);
        if (upgraded.early.length > 0) socket.write(upgraded.early);
        await proxyBytes(socket, upgraded.connection, { clock, early: head });
      } else {
        const lines = Object.entries(responseHeaders(answer.response.headers)).flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}\r\n`));
        socket.write(`HTTP/1.1 ${status} ${answer.response.statusText}\r\n${lines.join("")}connection: close\r\n\r\n`);
        answer.response.body.on("error", () => socket.destroy());
        answer.response.body.pipe(socket);
      }
    } catch (error) {
      status = error instanceof Refusal ? error.status : 502;
      const text = TEXTS[status] ?? "";
      if (socket.writable) socket.end(`HTTP/1.1 ${status} ${text.trim().slice(4)}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`);
    } finally {
      requests.inc({ code: String(status), method: methodLabel(request.method) });
    }
  }

  #route(request: IncomingMessage, { secure }: Caller): { readonly asked: Asked; readonly route: Route } {
    const asked = askedOf(request);
    if (!asked) throw new Refusal(400);
    const route = this.#deps.table(secure).find(asked);
    if (!route) throw new Refusal(404);
    return { asked, route };
  }

  async #answer(request: IncomingMessage, response: ServerResponse, caller: Caller, signal: AbortSignal): Promise<void> {
    const { asked, route } = this.#route(request, caller);
    const { action } = route;
    if (action.type === "fail") throw new Refusal(action.status);
    if (action.type === "redirect") {
      response.writeHead(action.redirect.statusCode, responseHeaders([["location", locationOf(action.redirect, asked, route, caller)], ["content-length", "0"]], action.edits));
      return void response.end();
    }
    const { response: answer, edits } = await this.#send(request, { asked, route, action, caller, upgrade: false, signal });
    const h2 = request.httpVersionMajor >= 2;
    if ("headersOnly" in answer && answer.headersOnly && h2) {
      answer.body.resume();
      response.statusCode = answer.status;
      return void (response as unknown as Http2ServerResponse).stream.respond({ ":status": answer.status, ...responseHeaders(answer.headers, edits) }, { endStream: true });
    }
    response.writeHead(answer.status, responseHeaders(answer.headers, edits));
    if ("trailers" in answer) response.flushHeaders(); // a stream's client waits for them
    await stream(answer, response, h2);
  }

  async #send(request: IncomingMessage, call: Call): Promise<Sent<Http1Response | Http2Response>> {
    const { upstreams, h2Upstreams } = this.#deps;
    const { asked, route, action, caller, upgrade } = call;
    const backend = this.#choose(action.backends);
    if (!backend || backend.invalid) throw new Refusal(500);
    const found = this.#deps.resolve(backend);
    if (!found || found.endpoints.length === 0) throw new Refusal(503);
    const edits = [...(action.edits ?? []), ...(backend.edits ?? [])];
    const secure = /^(kubernetes\.io\/)?(https|wss)$/i.test(found.appProtocol ?? "");
    const h2 = !upgrade && /^(kubernetes\.io\/h2c|h2c|grpc)$/i.test(found.appProtocol ?? "");
    const deadline = action.timeoutMs ? AbortSignal.timeout(action.timeoutMs) : undefined;
    const signal = deadline ? AbortSignal.any([call.signal, deadline]) : call.signal;
    const headers = requestHeaders(request.headers, caller, { authority: asked.authority, host: action.rewrite?.hostname ?? asked.authority, upgrade, edits });
    const target = targetOf(asked, action, route.match.path.value);
    const body = upgrade || !hasBody(request) ? undefined : request;
    const safe = SAFE.has(asked.method) && body === undefined;
    const untried = new Set(found.endpoints);
    let failure: unknown;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const endpoint = this.#pick(untried.size > 0 ? [...untried] : found.endpoints);
      untried.delete(endpoint);
      upstreams.begin(endpoint);
      let sent = false, ended = false;
      const end = (): void => {
        if (!ended) upstreams.end(endpoint);
        ended = true;
      };
      try {
        if (h2) {
          const ask = await h2Upstreams.connect(endpoint);
          sent = true;
          const response = await ask({ method: asked.method, target, headers, body }, signal);
          response.body.once("close", end);
          return { response, edits };
        }
        const { connection, release } = await upstreams.acquire(endpoint, { secure, fresh: !safe || tries > 0, signal });
        sent = true;
        const response = await http1Request(connection, { method: asked.method, target, headers, body, release: upgrade ? undefined : release }, signal);
        response.body.once("close", end);
        if (response.upgraded) response.upgraded.connection.once("close", end);
        return { response, edits };
      } catch (error) {
        end();
        failure = error;
        if (call.signal.aborted || (sent && !safe)) break;
        if (deadline?.aborted) break;
      }
    }
    throw new Refusal(deadline?.aborted ? 504 : 502, { cause: failure });
  }

  /** One of the backends, each as often as its weight says. */
  #choose(backends: readonly Backend[]): Backend | undefined {
    if (backends.length === 1) return backends[0]!.weight > 0 ? backends[0] : undefined;
    let left = this.#deps.random.next() * backends.reduce((sum, { weight }) => sum + weight, 0);
    return backends.find(({ weight }) => weight > 0 && (left -= weight) < 0);
  }

  #pick(endpoints: readonly Endpoint[]): Endpoint {
    const draw = (): Endpoint => endpoints[Math.floor(this.#deps.random.next() * endpoints.length)]!;
    if (endpoints.length === 1) return endpoints[0]!;
    const a = draw(), b = draw();
    return this.#deps.upstreams.load(b) < this.#deps.upstreams.load(a) ? b : a;
  }
}

/** Resolves when the answer has been written, or its client is gone. */
function stream(answer: Http1Response | Http2Response, response: ServerResponse, takesTrailers: boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { body } = answer;
  body.on("data", (chunk: Buffer) => { if (!response.write(chunk)) body.pause(); });
  response.on("drain", () => void body.resume());
  body.once("end", () => {
    const trailers = takesTrailers && "trailers" in answer ? answer.trailers() : undefined;
    if (trailers) response.addTrailers(trailers as Record<string, string>);
    response.end();
    resolve();
  });
  body.once("error", () => {
    response.destroy(); // half an answer must not look like a whole one
    resolve();
  });
  body.once("close", () => { // a stream that was reset has no end
    if (!body.readableEnded) response.destroy();
    resolve();
  });
  response.once("close", () => {
    body.destroy();
    resolve();
  });
  return promise;
}

function hasBody(request: IncomingMessage): boolean {
  if (request.httpVersionMajor >= 2) {
    const { stream: h2 } = request as IncomingMessage & { readonly stream?: { readonly endAfterHeaders?: boolean } };
    return h2?.endAfterHeaders !== true && !(SAFE.has(request.method ?? "GET") && request.headers["content-length"] === undefined);
  }
  return request.headers["transfer-encoding"] !== undefined || Number(request.headers["content-length"] ?? 0) > 0;
}

function targetOf({ target }: Asked, { rewrite }: Forward, prefix: string): string {
  return rewrite?.path ? withPath(target, (path) => rewritePath(path, rewrite.path!, prefix)) : target;
}

function withPath(target: string, change: (path: string) => string): string {
  const question = target.indexOf("?");
  return question < 0 ? change(target) : change(target.slice(0, question)) + target.slice(question);
}

function locationOf({ scheme, hostname, port, path }: Redirect, { authority, host, target }: Asked, { match }: Route, { secure }: Caller): string {
  const to = scheme ?? (secure ? "https" : "http");
  const given = /:(\d+)$/.exec(authority.replace(/^\[.*\]/, ""))?.[1];
  const number = port ?? (scheme === undefined && given !== undefined ? Number(given) : undefined);
  const usual = number === undefined || number === (to === "https" ? 443 : 80);
  return `${to}://${hostname ?? host}${usual ? "" : `:${number}`}${path ? withPath(target, (one) => rewritePath(one, path, match.path.value)) : target}`;
}

function respond(request: IncomingMessage, response: ServerResponse, status: number): void {
  const text = TEXTS[status] ?? `${status}\n`;
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "content-length": String(text.length) });
  response.end(request.method === "HEAD" ? undefined : text);
}

/** Anyone can make up methods; not so label values. */
function methodLabel(method = "GET"): string { return /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE)$/.test(method) ? method : "other"; }
