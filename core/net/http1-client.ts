/**
 * One HTTP/1.1 request over a connection that somebody else made: a socket, TLS over it, or a tunnel. For proxies, which pass on what they
 * get: headers keep their names, order and repetitions, bodies stream with back-pressure, an upgrade hands the connection over.
 *
 *   const response = await http1Request(connection, { method: "GET", target: "/pods", headers: [["Host", "10.0.0.7"]] }, signal);
 *   response.body.pipe(…)              closes the connection at its end, or when it is destroyed
 *   if (response.upgraded) …           the connection is the caller's again
 */
import type { Socket } from "node:net";
import { type Duplex, Readable } from "node:stream";
import { ArrivedBytes } from "./arrived-bytes.ts";
import { BodyReader } from "./body-reader.ts";
import { hostPort } from "./dial-tcp.ts";
import { readFirst } from "./read-first.ts";
import { type Head, HeadError, type HeaderPairs, readHead, statusLine } from "./response-head.ts";

export interface Http1Request {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** With Host. Without Connection and Transfer-Encoding, unless it is an upgrade. */
  readonly headers: HeaderPairs;
  /** Sent with its Content-Length if the headers have one, else in chunks. */
  readonly body?: Readable | undefined;
  /** It asks for a connection to take over: whatever comes first is the answer, also one before others. */
  readonly isUpgrade?: boolean | undefined;
  /** Is told of answers before the answer. */
  readonly onEarly?: ((early: { readonly status: number; readonly headers: HeaderPairs }) => void) | undefined;
  /** Is given the connection once the exchange is over, if another one can follow on it. Absent: each connection is closed. */
  readonly release?: ((connection: Duplex) => void) | undefined;
}

export interface Http1Response {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderPairs;
  /** Names of headers that were to follow the body. They are not kept. */
  readonly trailerNames: readonly string[];
  /** Undefined: until its end comes. */
  readonly length: number | undefined;
  /** The status line and the headers as they came. */
  readonly head: Buffer;
  readonly body: Readable;
  /** After a 101, and a 200 to CONNECT. `early` came right behind the headers. */
  readonly upgraded?: { readonly connection: Duplex; readonly early: Buffer } | undefined;
}

/** Go's limit for response headers, which is what backends are written against: 10 MiB; ours is for a machine with less memory. */
const HEAD_BYTES_MAX = 1024 * 1024;
/** Answers before the answer. */
const EARLY_MAX = 100;

/** Throws when the connection fails before the headers are complete, and the signal's reason once it has aborted. */
export function http1Request(connection: Duplex, request: Http1Request, signal: AbortSignal): Promise<Http1Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Http1Response>();
  const arrived = new ArrivedBytes();
  let begun = false; // with a line that may begin an answer
  let earlyCount = 0;
  let body: BodyReader | undefined;
  const ends = endsOf(connection); // a connection that was reset does not tell any more

  const fail = (error: Error): void => {
    reject(error);
    if (body) body.fail(error);
    connection.destroy();
  };
  const quit = (): void => fail(signal.reason instanceof Error ? signal.reason : new Error("canceled"));
  let stopSending: (() => boolean) | undefined;
  const detach = (): void => {
    connection.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onError);
    signal.removeEventListener("abort", quit);
  };
  const finished = (reusable: boolean): void => {
    if (!reusable || !request.release || stopSending?.() !== true) return void connection.destroy();
    detach();
    request.release(connection);
    connection.resume(); // the end of a long body may have come faster than it was read
  };
  const onError = (error: NodeJS.ErrnoException): void => fail(error.code === "ECONNRESET" ? new Error(`${ends}read: connection reset by peer`, { cause: error }) : error);
  const onEnd = (): void => (body ? body.sourceEnded() : fail(endedEarly()));
  const onClose = (): void => {
    signal.removeEventListener("abort", quit);
    onEnd();
  };
  const onData = (chunk: Buffer): void => {
    if (body) return body.take(chunk);
    arrived.add(chunk);
    try {
      head();
    } catch (error) {
      fail(error instanceof HeadError ? broken(error) : (error as Error));
    }
  };

  /** There was nothing, or the beginning of a head. */
  function endedEarly(): Error {
    if (arrived.bytes.length === 0) return new Error(request.isUpgrade ? "unexpected EOF" : "EOF");
    try {
      readHead(arrived.bytes.toString("latin1"), request.method);
    } catch (error) {
      return broken(error as Error);
    }
    return broken(new Error("unexpected EOF"));
  }

  function broken(error: Error): Error {
    return request.isUpgrade ? error : new Error(`net/http: HTTP/1.x transport connection broken: ${error.message}`, { cause: error });
  }

  function head(): void {
    for (;;) {
      const end = arrived.headEnd;
      if (end < 0) {
        if (arrived.bytes.length > HEAD_BYTES_MAX) throw new Error("net/http: server response headers exceeded limit");
        const lineEnd = begun ? -1 : arrived.bytes.indexOf(10);
        if (lineEnd >= 0) statusLine(arrived.bytes.toString("latin1", 0, lineEnd).trimEnd());
        begun ||= lineEnd >= 0;
        return;
      }
      const all = arrived.take(), bytes = all.subarray(0, end), rest = all.subarray(end);
      const parsed = readHead(bytes.toString("latin1"), request.method);
      if (parsed.status >= 100 && parsed.status < 200 && parsed.status !== 101 && !request.isUpgrade) { // 100 Continue, 103 Early Hints
        if (earlyCount++ === EARLY_MAX) throw new Error("net/http: too many 1xx informational responses");
        request.onEarly?.(parsed);
        arrived.add(rest);
        begun = false;
        continue;
      }
      if (parsed.status === 101 || (request.method === "CONNECT" && parsed.status === 200)) {
        detach();
        connection.on("error", () => connection.destroy());
        if (parsed.status === 101 && !asksToTakeOver(request)) connection.destroy(); // who did not ask takes nothing over
        else connection.pause();
        return resolve({ ...parsed, length: 0, head: bytes, body: Readable.from([]), upgraded: { connection, early: rest } });
      }
      body = new BodyReader(connection, parsed.framing, (clean) => finished(clean && staysOpen(bytes, parsed)));
      resolve({ ...parsed, length: parsed.framing.type === "length" ? parsed.framing.length : undefined, head: bytes, body: body.readable });
      body.take(rest);
      return;
    }
  }

  signal.addEventListener("abort", quit, { once: true });
  connection.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onError);
  if (signal.aborted) quit();
  else stopSending = sendRequest(connection, request);
  return promise;
}

function asksToTakeOver({ isUpgrade = false, headers }: Http1Request): boolean { return isUpgrade || headers.some(([name]) => name.toLowerCase() === "upgrade"); }

/** As Go names a connection in its errors; "" where there is no socket to be seen. */
function endsOf(connection: Duplex): string {
  const { localAddress, localPort = 0, remoteAddress, remotePort = 0 } = connection as Partial<Socket>;
  return localAddress === undefined || remoteAddress === undefined ? "" : `read tcp ${hostPort(localAddress, localPort)}->${hostPort(remoteAddress, remotePort)}: `;
}

/** What is more than a byte is written as UTF-8: cut to its lowest byte it might end a line. */
function oneByteEach(text: string): string { return /[^\0-\xff]/.test(text) ? Buffer.from(text).toString("latin1") : text; }

/** Returns what ends it, and tells whether all has been sent. */
function sendRequest(connection: Duplex, { method, target, headers, body }: Http1Request): () => boolean {
  const length = headers.find(([name]) => name.toLowerCase() === "content-length")?.[1], sized = length !== undefined;
  const lines = headers.map(([name, value]) => `${name}: ${oneByteEach(value).replace(/[\r\n]+/g, " ")}`);
  if (body && !sized) lines.push("Transfer-Encoding: chunked");
  connection.write(Buffer.from(`${method} ${oneByteEach(target)} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`, "latin1"));
  if (!body) return () => true;
  readFirst(connection); // who refuses a body may not read it
  let sent = false, left = Number(length);
  const resume = (): void => void body.resume();
  body.on("data", (chunk: Buffer) => {
    if (!connection.writable) return;
    left -= chunk.length;
    if (left < 0) return void connection.destroy(); // it would be read as another request
    const more = connection.write(sized ? chunk : Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]));
    if (!more) body.pause();
  });
  connection.on("drain", resume);
  body.on("end", () => {
    if (left > 0) return void connection.destroy(); // and so would the next one be read as the rest of this
    sent = true;
    if (!sized && connection.writable) connection.write("0\r\n\r\n");
  });
  body.on("error", () => { if (!sent) connection.destroy(); }); // the client is gone: half a request is worth nothing
  return () => {
    connection.off("drain", resume);
    return sent;
  };
}

/** Whether the server will take another request on this connection. */
function staysOpen(head: Buffer, { headers }: Head): boolean {
  return head.toString("latin1", 0, 8) === "HTTP/1.1" && !headers.some(([name, value]) => name.toLowerCase() === "connection" && /\bclose\b/i.test(value));
}
