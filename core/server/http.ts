/**
 * HTTP on one side, the chain on the other: turns node's requests into ServerRequests and Answers into bytes on the wire.
 * Works for HTTP/1.1 and HTTP/2 alike.
 */
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import { encodeJson } from "../api/codec/json.ts";
import { lengthOf, type Piece } from "../api/codec/pieces.ts";
import { statusOf } from "../api/meta/status-error.ts";
import { type Breathe, breathers } from "../lifecycle/breather.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { cutOff } from "../net/cut-off.ts";
import type { Connection } from "../net/connections.ts";
import type { Log } from "../observe/log.ts";
import { type Answer, isSlowly, isStream, type Slowly, type WatchAnswer } from "./answer.ts";
import { BodySender } from "./body-sender.ts";
import type { ColumnTexts } from "./column-texts.ts";
import { EventBytes } from "./event-bytes.ts";
import { type RequestSignal, RequestSignals } from "./request-signals.ts";
import type { ServerRequest } from "./request.ts";
import { BrokenOff, earlyTeller, sendPassedOn } from "./passed-on.ts";
import { encodeList, encodeObject, type Presentation, watchEncoder } from "./respond.ts";
import type { Handler } from "./scope.ts";
import { warningHeaders } from "./warning-headers.ts";
import { setStatus } from "./status-line.ts";
import { canStream, streamOverWebSocket } from "./websocket-answer.ts";
import { serverRequest } from "./wire-request.ts";

interface Deps {
  readonly handler: Handler;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts when the server is stopping: watches end. */
  readonly stopping: () => AbortSignal;
  /** What describes the columns of Tables. */
  readonly columnTexts: ColumnTexts;
  /** CBOR is read and written. */
  readonly cbor?: boolean;
}

interface Front extends Deps {
  readonly events: EventBytes;
  readonly bodies: BodySender;
  /** Long answers, which a hundred clients may ask for at once, share what time there is. */
  readonly breathers: () => Breathe;
}

/** The two functions an HttpsServer calls. */
export interface HttpFront {
  request(request: IncomingMessage, response: ServerResponse, connection: Connection): void;
  upgrade(request: IncomingMessage, socket: Duplex, upgrade: { readonly head: Buffer; readonly connection: Connection }): void;
}

export function httpFront(given: Deps): HttpFront {
  const deps: Front = { ...given, events: new EventBytes(), bodies: new BodySender(breathers(given.clock)), breathers: breathers(given.clock) }; // events do not wait for lists
  const requests = new RequestSignals(given.stopping);
  return {
    request(request, response, connection) {
      const under = requests.begin();
      let isGone = false;
      response.on("close", () => {
        isGone = true;
        under.end();
      });
      void serve(deps, { request, response, connection }, under).catch((error: unknown) => {
        if (!isGone) deps.log.error("a response failed", { path: request.url, error });
        cutOff(response);
      });
    },
    upgrade(request, socket, { head, connection }) {
      const gone = new AbortController();
      socket.on("close", () => gone.abort());
      socket.on("error", () => gone.abort());
      void serveUpgrade(deps, { request, socket, head, connection }, gone.signal).catch((error: unknown) => {
        deps.log.warn("an upgrade failed", { path: request.url, error });
        socket.destroy();
      });
    },
  };
}

interface Exchange { readonly request: IncomingMessage; readonly response: ServerResponse; readonly connection: Connection }

async function serve(deps: Front, { request, response, connection }: Exchange, { signal, lasts }: RequestSignal): Promise<void> {
  const asked = serverRequest(request, connection, signal, { setHeader: headerSetter(response), tellEarly: earlyTeller(response), cbor: deps.cbor });
  const answer = await deps.handler(asked);
  if (isEndless(answer)) lasts();
  try {
    if (!signal.aborted) await respond(deps, { response }, { asked, answer }, signal);
  } finally {
    answer.sending?.done();
  }
}

/** What ends only when somebody ends it. */
function isEndless(answer: Answer): boolean {
  return answer.type === "watch" || (answer.type === "raw" && (answer.passedOn !== undefined || isStream(answer.body)));
}

/** Undefined: whoever asked has gone while others had their turn, and the rest of the work was for nobody. */
function unlessGone<T>(signal: AbortSignal, work: (breathe: Breathe) => Promise<T>, breathe: Breathe): Promise<T | undefined> {
  return work(() => breathe()?.then(() => signal.throwIfAborted())).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    return undefined;
  });
}

async function taken({ pieces }: Slowly, breathe: Breathe): Promise<readonly Piece[]> {
  const all: Piece[] = [];
  for (const piece of pieces) {
    all.push(typeof piece === "string" ? Buffer.from(piece) : piece); // to count the bytes of all of them at once would be a long piece of work again
    const turn = breathe();
    if (turn) await turn;
  }
  return all;
}

function headerSetter(response: ServerResponse): NonNullable<ServerRequest["setHeader"]> {
  return (name, value) => {
    if (value === undefined) response.removeHeader(name);
    else response.setHeader(name, value);
  };
}

async function respond(deps: Front, { response }: Pick<Exchange, "response">, { asked, answer }: { readonly asked: ServerRequest; readonly answer: Answer }, signal: AbortSignal): Promise<void> {
  for (const value of warningHeaders(answer.warnings ?? [])) response.appendHeader("warning", value);
  const how: Presentation = { request: asked, nowMs: () => deps.clock.nowMs(), describe: await describeOf(deps, asked), events: deps.events };
  try {
    await send(answer, how, response, deps, signal);
  } catch (error) {
    if (response.headersSent || error instanceof BrokenOff) throw error;
    const status = statusOf(error);
    await deps.bodies.send(asked, response, encodeObject({ type: "object", status: status.code ?? 500, object: { ...status } }, how), signal);
  }
}

/** For who asks for a Table. One without descriptions is better than none. */
function describeOf({ columnTexts, log }: Front, asked: ServerRequest): Promise<Presentation["describe"]> | undefined {
  if (!/\bas=Table\b/.test(asked.header("accept") ?? "")) return undefined;
  return columnTexts().catch((error: unknown) => void log.warn("what describes the columns of Tables cannot be read", { error }));
}

async function send(answer: Answer, how: Presentation, response: ServerResponse, { bodies, clock, breathers: begun }: Pick<Front, "bodies" | "clock" | "breathers">, signal: AbortSignal): Promise<void> {
  switch (answer.type) {
    case "object":
    case "list": {
      const beganMs = answer.sending ? clock.uptimeMs() : 0;
      const encoded = answer.type === "list" ? await unlessGone(signal, (going) => encodeList(answer, how, going), begun()) : encodeObject(answer, how);
      if (!encoded) return answer.brokenOff?.();
      const { status, contentType, body } = encoded;
      const retry = answer.type === "object" ? retryAfter(answer.object) : undefined;
      if (retry) response.setHeader("retry-after", String(retry));
      const length = lengthOf(body);
      answer.sized?.(length);
      const part = answer.sending?.serializing(contentType, beganMs);
      part?.event("About to start writing response", { size: length });
      let isSent = false;
      try {
        await bodies.send(how.request, response, { status, contentType, body, length }, signal);
        isSent = !signal.aborted;
      } finally {
        part?.event(isSent ? "Write call succeeded" : "Write call failed", { size: length });
        part?.end();
      }
      if (signal.aborted) answer.brokenOff?.();
      return;
    }
    case "raw": {
      const { body, passedOn } = answer;
      if (passedOn) return sendPassedOn(answer, { ...passedOn, isHead: how.request.method === "HEAD" }, { response, clock, signal });
      for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value);
      if (isSlowly(body)) {
        const pieces = await unlessGone(signal, (going) => taken(body, going), begun());
        return pieces && bodies.send(how.request, response, { status: answer.status, contentType: answer.headers["content-type"] ?? "", body: pieces }, signal);
      }
      if (typeof body === "string" || body instanceof Uint8Array)
        return bodies.send(how.request, response, { status: answer.status, contentType: answer.headers["content-type"] ?? (body.length === 0 ? "" : "text/plain"), body: [typeof body === "string" ? Buffer.from(body) : body] }, signal);
      setStatus(response, answer.status);
      if (!response.hasHeader("cache-control")) response.setHeader("cache-control", "no-cache, private");
      response.flushHeaders(); // the first line of a log may be long in coming
      return pipe(body, response, signal);
    }
    case "watch": {
      const { contentType, encode } = watchEncoder(answer, how);
      response.statusCode = 200;
      response.setHeader("content-type", contentType);
      response.setHeader("cache-control", "no-cache, private");
      response.flushHeaders();
      const watching = answer.sending?.watching(contentType);
      return bodies.sendEvents(response, { batches: watching ? untilListed(answer.batches, () => answer.sending!.listed(watching)) : answer.batches, encode }, signal);
    }
    case "upgrade": {
      const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "Upgrade request required", reason: "BadRequest", code: 400 };
      return bodies.send(how.request, response, { status: 400, contentType: "application/json", body: [encodeJson(status)] }, signal);
    }
  }
}

/** `listed` once what the watch begins with has been written: then the next is asked for. */
async function* untilListed(batches: WatchAnswer["batches"], listed: () => void): WatchAnswer["batches"] {
  let isListed = false;
  for await (const batch of batches) {
    yield batch;
    if (isListed || !batch.some((item) => item.type === "BOOKMARK" && item.initialEventsEnd)) continue;
    isListed = true;
    listed();
  }
}

function pipe(body: Readable, response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => void body.destroy();
    signal.addEventListener("abort", stop, { once: true });
    body.on("error", reject);
    body.on("close", () => resolve());
    body.pipe(response);
  });
}

function retryAfter(object: unknown): number | undefined {
  return (object as { details?: { retryAfterSeconds?: number } }).details?.retryAfterSeconds;
}

interface Upgrade { readonly request: IncomingMessage; readonly socket: Duplex; readonly head: Buffer; readonly connection: Connection }

/** Who asked for a connection to take over and is answered otherwise has that answer as everybody would, and the connection's end. */
async function serveUpgrade(deps: Front, { request, socket, head, connection }: Upgrade, signal: AbortSignal): Promise<void> {
  const response = new ServerResponse(request);
  const asked = serverRequest(request, connection, signal, { setHeader: headerSetter(response), cbor: deps.cbor });
  const answer = await deps.handler(asked);
  if (answer.type === "upgrade") {
    answer.take(socket, head);
    answer.sending?.done();
    return;
  }
  const how: Presentation = { request: asked, nowMs: () => deps.clock.nowMs(), describe: await describeOf(deps, asked), events: deps.events };
  try {
    if (canStream(answer, how)) return await streamOverWebSocket(answer, how, { socket, head, clock: deps.clock, signal });
    response.shouldKeepAlive = false;
    response.assignSocket(socket as Socket);
    response.on("finish", () => socket.end());
    await respond(deps, { response }, { asked, answer }, signal);
  } finally {
    answer.sending?.done();
  }
}
