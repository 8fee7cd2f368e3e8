/**
 * One request of a client that speaks HTTP/2, or that node's server of HTTP/1 has: an endpoint is chosen, the request sent there and the answer back, both streaming, no faster
 * than the slower side. What clients of HTTP/1.1 usually ask for goes another way: splice.ts.
 *
 *   no endpoint answers 502 · none in time 504 · and what router.ts says
 *
 * Another endpoint is tried when one cannot be connected to; when one fails after it was sent the request, only if that changes nothing (GET, HEAD, OPTIONS
 * without a body). Copies for mirrors go out when the request does.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import { type Duplex, PassThrough, type Readable } from "node:stream";
import type { Endpoint } from "../../core/ingress/endpoints.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { cutOff } from "../../core/net/cut-off.ts";
import { http1Request, type Http1Response } from "../../core/net/http1-client.ts";
import { proxyBytes } from "../../core/net/proxy-bytes.ts";
import type { HeaderPairs } from "../../core/net/response-head.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Counter, Histogram } from "../../core/observe/metrics.ts";
import { type Asked, askedOf, type Caller, requestHeaders, responseHeaders } from "./headers.ts";
import type { H2Upstreams, Http2Response } from "./h2-upstreams.ts";
import { type Forwarding, methodLabel, type Router, SAFE, TEXTS, TRIES_MAX } from "./router.ts";
import type { Upstreams } from "./upstreams.ts";

export interface ForwarderDeps {
  readonly router: Router;
  readonly upstreams: Upstreams;
  readonly h2Upstreams: H2Upstreams;
  readonly requests: Counter;
  readonly seconds: Histogram;
  readonly clock: Clock;
  readonly log: Log;
}

interface Call { readonly asked: Asked; readonly plan: Forwarding; readonly caller: Caller; readonly upgrade: boolean; readonly signal: AbortSignal }

interface Try {
  readonly plan: Forwarding;
  readonly method: string;
  readonly headers: HeaderPairs;
  readonly body: Readable | undefined;
  readonly upgrade: boolean;
  /** On a connection that surely is open. */
  readonly fresh: boolean;
  /** Called just before the request goes out. */
  readonly going?: () => void;
}

/** A mirror that is so far behind with a body is given up: the client does not wait for it. */
const COPY_BYTES_MAX = 1024 * 1024;
const COPY_MS_MAX = 60_000;
/** Source: https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md; a call's time is over: deadline exceeded */
const GRPC_STATUS: Readonly<Record<number, string>> = { 400: "13", 404: "12", 421: "14", 502: "14", 503: "14", 504: "4" };
const GRPC_UNKNOWN = "2";

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
      this.#refuse(request, response, status);
    } finally {
      requests.inc({ code: String(response.statusCode), method: methodLabel(request.method) });
      seconds.observe((clock.uptimeMs() - beganMs) / 1000);
    }
  }

  /** Never throws: nobody handles what a client that has just gone makes of it. */
  #refuse(request: IncomingMessage, response: ServerResponse, status: number): void {
    try {
      if (response.headersSent) cutOff(response);
      else respond(request, response, status);
    } catch (error) {
      this.#deps.log.debug("a client could not be told that its request failed", { status, error });
      cutOff(response);
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
      const asked = askedOf(request);
      const plan = this.#deps.router.plan(asked, caller);
      if (!asked || plan.type === "fail") throw new Refusal(plan.type === "fail" ? plan.status : 400);
      if (plan.type === "answer") {
        status = plan.status;
        return void socket.end(lastHead(status, STATUS_CODES[status] ?? "", responseHeaders([...plan.headers.map(({ name, value }) => [name, value] as const), ["content-length", "0"]], plan.edits)), "latin1");
      }
      const answer = await this.#send(request, { asked, plan, caller, upgrade: true, signal: gone.signal }) as Http1Response;
      status = answer.status;
      const { upgraded } = answer;
      if (upgraded) {
        socket.write(answer.head);
        if (upgraded.early.length > 0) socket.write(upgraded.early);
        await proxyBytes(socket, upgraded.connection, { clock, early: head });
      } else {
        socket.write(lastHead(status, answer.statusText, responseHeaders(answer.headers, plan.edits)), "latin1");
        answer.body.on("error", () => socket.destroy());
        answer.body.pipe(socket);
      }
    } catch (error) {
      status = error instanceof Refusal ? error.status : 502;
      const text = TEXTS[status] ?? "";
      if (socket.writable) socket.end(`${lastHead(status, STATUS_CODES[status] ?? "", { "content-type": "text/plain; charset=utf-8", "content-length": String(text.length) })}${text}`);
    } finally {
      requests.inc({ code: String(status), method: methodLabel(request.method) });
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, caller: Caller, signal: AbortSignal): Promise<void> {
    const asked = askedOf(request);
    const plan = this.#deps.router.plan(asked, caller);
    if (!asked || plan.type === "fail") throw new Refusal(plan.type === "fail" ? plan.status : 400);
    if (plan.type === "answer") {
      response.writeHead(plan.status, responseHeaders([...plan.headers.map(({ name, value }) => [name, value] as const), ["content-length", "0"]], plan.edits));
      return void response.end();
    }
    const answer = await this.#send(request, { asked, plan, caller, upgrade: false, signal });
    const h2 = request.httpVersionMajor >= 2;
    if ("headersOnly" in answer && answer.headersOnly && h2) {
      answer.body.resume();
      response.statusCode = answer.status;
      return void (response as unknown as Http2ServerResponse).stream.respond({ ":status": answer.status, ...responseHeaders(answer.headers, plan.edits) }, { endStream: true });
    }
    response.writeHead(answer.status, responseHeaders(answer.headers, plan.edits));
    if ("trailers" in answer) response.flushHeaders(); // a stream's client waits for them
    await stream(answer, response, h2);
  }

  async #send(request: IncomingMessage, { asked, plan, caller, upgrade, signal: gone }: Call): Promise<Http1Response | Http2Response> {
    const { router } = this.#deps;
    const { endpoints } = plan;
    const deadline = plan.timeoutMs ? AbortSignal.timeout(plan.timeoutMs) : undefined;
    const signal = deadline ? AbortSignal.any([gone, deadline]) : gone;
    const headers = requestHeaders(request.headers, caller, { authority: asked.authority, host: plan.host, upgrade, edits: plan.edits });
    const body = upgrade || !hasBody(request) ? undefined : request;
    const safe = SAFE.has(asked.method) && body === undefined;
    const untried = new Set(endpoints);
    let failure: unknown, mirrored = upgrade;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const endpoint = router.pick(untried.size > 0 ? [...untried] : endpoints);
      untried.delete(endpoint);
      let sent = false;
      const going = (): void => {
        sent = true;
        if (!mirrored) this.#mirror(request, { asked, plan, caller, body });
        mirrored = true;
      };
      try {
        return await this.#try(endpoint, { plan, method: asked.method, headers, body, upgrade, fresh: !safe || tries > 0, going }, signal);
      } catch (error) {
        failure = error;
        if (gone.aborted || (sent && !safe)) break;
        if (deadline?.aborted) break;
      }
    }
    throw new Refusal(deadline?.aborted ? 504 : 502, { cause: failure });
  }

  async #try(endpoint: Endpoint, { plan: { protocol, target, tls }, method, headers, body, upgrade, fresh, going }: Try, signal: AbortSignal): Promise<Http1Response | Http2Response> {
    const { upstreams, h2Upstreams } = this.#deps;
    upstreams.begin(endpoint);
    let ended = false;
    const end = (): void => {
      if (!ended) upstreams.end(endpoint);
      ended = true;
    };
    try {
      if (protocol === "h2c" && !upgrade) {
        const ask = await h2Upstreams.connect(endpoint, tls);
        going?.();
        const response = await ask({ method, target, headers, body }, signal);
        response.body.once("close", end);
        return response;
      }
      const { connection, release } = await upstreams.acquire(endpoint, { tls, fresh, signal });
      going?.();
      const response = await http1Request(connection, { method, target, headers, body, release: upgrade ? undefined : release }, signal);
      response.body.once("close", end);
      if (response.upgraded) response.upgraded.connection.once("close", end);
      return response;
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Copies to those whose turn it is. What becomes of them is nobody's business. */
  #mirror(request: IncomingMessage, { asked, plan, caller, body }: Pick<Call, "asked" | "plan" | "caller"> & { readonly body: Readable | undefined }): void {
    const { router, log } = this.#deps;
    for (const mirror of plan.mirrors) {
      const to = router.planCopy(mirror, plan);
      if (!to) continue;
      const headers = requestHeaders(request.headers, caller, { authority: asked.authority, host: to.host, upgrade: false, edits: to.edits });
      const copy = body && copyOf(body);
      this.#try(router.pick(to.endpoints), { plan: to, method: asked.method, headers, body: copy, upgrade: false, fresh: true }, AbortSignal.timeout(COPY_MS_MAX))
        .then((answer) => void answer.body.on("error", () => undefined).resume())
        .catch((error: unknown) => log.debug("a copy of a request could not be sent", { service: mirror.backend.service, error }))
        .finally(() => void copy?.destroy());
    }
  }
}

/** The head of an answer after which the connection ends. */
function lastHead(status: number, statusText: string, headers: ReturnType<typeof responseHeaders>): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}\r\n`));
  return `HTTP/1.1 ${status} ${statusText}\r\n${lines.join("")}connection: close\r\n\r\n`;
}

/** As it is read by somebody else. */
function copyOf(source: Readable): Readable {
  const copy = new PassThrough({ highWaterMark: COPY_BYTES_MAX });
  copy.on("error", () => undefined); // whoever sends it hears of it
  source.on("data", (chunk: Buffer) => { if (!copy.destroyed && !copy.write(chunk)) copy.destroy(new Error("the mirror is too slow")); });
  source.once("end", () => void copy.end()).once("close", () => { if (!copy.writableEnded) copy.destroy(new Error("the request was cut off")); });
  return copy;
}

/** Resolves when the answer has been written, or its client is gone. */
function stream(answer: Http1Response | Http2Response, response: ServerResponse, takesTrailers: boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { body } = answer;
  body.on("data", (chunk: Buffer) => { if (!response.write(chunk)) body.pause(); });
  response.on("drain", () => void body.resume());
  body.once("end", () => {
    if ("isWhole" in answer && !answer.isWhole()) { // Bun ends what was reset like any other
      cutOff(response);
      return resolve();
    }
    const trailers = takesTrailers && "trailers" in answer ? answer.trailers() : undefined;
    if (trailers) response.addTrailers(trailers as Record<string, string>);
    response.end();
    resolve();
  });
  body.once("error", () => {
    cutOff(response); // half an answer must not look like a whole one
    resolve();
  });
  body.once("close", () => { // a stream that was reset has no end
    if (!body.readableEnded) cutOff(response);
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
    return h2?.endAfterHeaders !== true;
  }
  return request.headers["transfer-encoding"] !== undefined || Number(request.headers["content-length"] ?? 0) > 0;
}

function respond(request: IncomingMessage, response: ServerResponse, status: number): void {
  const text = TEXTS[status] ?? `${status}\n`;
  if (request.httpVersionMajor >= 2 && /^application\/grpc\b/i.test(request.headers["content-type"] ?? "")) {
    response.statusCode = 200;
    return void (response as unknown as Http2ServerResponse).stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": GRPC_STATUS[status] ?? GRPC_UNKNOWN, "grpc-message": text.trim() }, { endStream: true });
  }
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "content-length": String(text.length) });
  response.end(request.method === "HEAD" ? undefined : text);
}
