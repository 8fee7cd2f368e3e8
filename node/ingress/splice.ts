/**
 * One request of HTTP/1.1 on its way to an endpoint that speaks it too, and the answer back. Only heads are read and written anew: the bytes of bodies go from one socket
 * to the other as they came, no faster than the slower side takes them.
 *
 *   request head ─▶ endpoint chosen, connection kept or made ─▶ head and body sent ─▶ answer's head ─▶ answer's body ─▶ connection kept
 *
 * Which endpoint is tried again, and what is answered when none answers, is as in forward.ts.
 */
import type { Duplex } from "node:stream";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { ArrivedBytes } from "../../core/net/arrived-bytes.ts";
import { BodyEnd } from "../../core/net/http1-body.ts";
import { type ReadFields, readResponseHead, type RequestHead, type ResponseHead } from "../../core/net/http1-head.ts";
import { readFirst } from "../../core/net/read-first.ts";
import type { Log } from "../../core/observe/log.ts";
import { type Asked, type Caller, requestText, responseText } from "./headers.ts";
import { type Forwarding, type Router, SAFE, TRIES_MAX } from "./router.ts";
import type { Upstreams } from "./upstreams.ts";

export interface SpliceDeps {
  readonly router: Router;
  readonly upstreams: Upstreams;
  readonly readFields: ReadFields;
  /** For answers that have none. */
  readonly date: () => string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Splicing { readonly head: RequestHead; readonly asked: Asked; readonly plan: Forwarding; readonly caller: Caller }

/** The client's side of it. */
export interface SpliceClient {
  /** False: no more until `drained`. */
  write(bytes: Buffer | string): boolean;
  pause(): void;
  resume(): void;
  /** Whether the answer is the last on its connection. */
  readonly closes: boolean;
  /** The endpoint takes the request's body from now on: what has come of it is to be given to `take`. */
  ready(): void;
  /** It is over. `status`: of the answer, or what is to be answered as nobody has. `cut`: the answer is not whole. `ends`: only the end of the connection says where it ends. */
  over(result: { readonly status: number; readonly answered: boolean; readonly cut: boolean; readonly ends: boolean }): void;
}

/** Go's limit for response headers is 10 MiB; ours is for a machine with less memory. */
const HEAD_BYTES_MAX = 1024 * 1024;
/** Up to here the first bytes of a body are copied behind the head, to be one packet. */
const JOINED_BYTES_MAX = 16 * 1024;

export class Splice {
  readonly #deps: SpliceDeps;
  readonly #what: Splicing;
  readonly #client: SpliceClient;
  /** Where the request ends. */
  readonly body: BodyEnd;
  readonly #quit = new AbortController();
  #connection: Duplex | undefined;
  readonly #came = new ArrivedBytes();
  #answer: ResponseHead | undefined;
  #answerBody: BodyEnd | undefined;
  #late: { cancel(): void } | undefined;
  #isLate = false;
  #attemptFailed: (error: Error) => void = () => undefined;
  #over = false;

  constructor(what: Splicing, client: SpliceClient, deps: SpliceDeps) {
    this.#what = what;
    this.#client = client;
    this.#deps = deps;
    this.body = new BodyEnd(what.head.framing);
  }

  /** Whether the endpoint takes what comes of the body. */
  get isTaking(): boolean { return this.#connection !== undefined && !this.body.done && !this.#over; }

  /** More of the request's body. Returns how many bytes were its. Throws when it is malformed. */
  take(bytes: Buffer): number {
    const count = this.body.take(bytes);
    if (!this.#connection!.write(count === bytes.length ? bytes : bytes.subarray(0, count)) && !this.body.done) this.#client.pause();
    return count;
  }

  /** The client takes more. */
  drained(): void { this.#connection?.resume(); }

  /** The client is gone. */
  abort(): void {
    if (this.#over) return;
    this.#quit.abort();
    this.#connection?.destroy();
    this.#end({ status: this.#answer?.status ?? 499, answered: this.#answer !== undefined, cut: true, ends: false });
  }

  async run(): Promise<void> {
    const { router, upstreams, clock, log } = this.#deps;
    const { head, plan } = this.#what;
    const safe = this.body.done && SAFE.has(head.method);
    const untried = new Set(plan.endpoints);
    if (plan.timeoutMs) this.#late = clock.after(plan.timeoutMs, () => this.#giveUp());
    let failure: unknown;
    for (let tries = 0; tries < TRIES_MAX && !this.#over && !this.#isLate; tries++) {
      const endpoint = router.pick(untried.size > 0 && untried.size < plan.endpoints.length ? [...untried] : plan.endpoints);
      untried.delete(endpoint);
      upstreams.begin(endpoint);
      let sent = false;
      try {
        const { connection, release } = await upstreams.acquire(endpoint, { tls: plan.tls, fresh: !safe || tries > 0, signal: this.#quit.signal });
        if (this.#over || this.#isLate) {
          release(connection);
          break;
        }
        sent = true;
        await this.#exchange(connection, release);
        return;
      } catch (error) {
        failure = error;
        if (sent && !safe) break;
      } finally {
        upstreams.end(endpoint);
      }
    }
    if (this.#over) return;
    const status = this.#isLate ? 504 : 502;
    log.debug("a request could not be served", { host: head.host, url: head.target, status, error: failure });
    this.#end({ status, answered: false, cut: false, ends: false });
  }

  /** Resolves when the exchange is over, however it ended; rejects when it failed before there was an answer. */
  #exchange(connection: Duplex, release: (connection: Duplex) => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const detach = (): void => {
      connection.off("data", onData).off("drain", onDrain).off("end", onEnd).off("close", onEnd).off("error", onError);
      this.#connection = undefined;
    };
    const fail = (error: Error): void => {
      if (this.#connection !== connection) return;
      detach();
      connection.on("error", () => undefined).destroy(); // it is given up
      if (this.#answer === undefined && !this.#over) return reject(error);
      this.#end({ status: this.#answer?.status ?? 502, answered: true, cut: true, ends: true });
      resolve();
    };
    const finish = (reusable: boolean): void => {
      const { answered, ends, status } = { answered: true, ends: this.#answer!.framing === "close", status: this.#answer!.status };
      detach();
      if (reusable && this.body.done && !this.#answer!.closes) release(connection);
      else connection.on("error", () => undefined).destroy();
      this.#end({ status, answered, cut: false, ends });
      resolve();
    };
    const onData = (bytes: Buffer): void => {
      try {
        const rest = this.#answer === undefined ? this.#readHead(bytes) : bytes;
        if (rest === undefined) return;
        const first = this.#answerBody === undefined;
        const count = this.#passOn(rest, first);
        if (this.#answerBody!.done) finish(count === rest.length);
      } catch (error) {
        fail(error as Error);
      }
    };
    const onDrain = (): void => this.#client.resume();
    const onError = (error: Error): void => fail(error);
    const onEnd = (): void => {
      if (this.#connection !== connection) return;
      if (this.#answer?.framing === "close") return finish(false);
      fail(new Error(this.#answer === undefined ? "EOF" : "unexpected EOF"));
    };
    this.#connection = connection;
    this.#attemptFailed = fail;
    this.#came.take();
    connection.on("data", onData).on("drain", onDrain).on("end", onEnd).on("close", onEnd).on("error", onError);
    const { head, caller, asked, plan } = this.#what;
    connection.write(requestText(head, caller, { authority: asked.authority, host: plan.host, target: plan.target, edits: plan.edits }), "latin1");
    if (this.body.done) return promise;
    readFirst(connection); // who refuses a body may not read it
    this.#client.ready();
    return promise;
  }

  /** What follows the head, once it is whole. */
  #readHead(bytes: Buffer): Buffer | undefined {
    this.#came.add(bytes);
    for (;;) {
      const end = this.#came.headEnd;
      if (end < 0) {
        if (this.#came.bytes.length > HEAD_BYTES_MAX) throw new Error("net/http: server response headers exceeded limit");
        return undefined;
      }
      const all = this.#came.take(), rest = all.subarray(end);
      const answer = readResponseHead(all.toString("latin1", 0, end).trimEnd(), this.#what.head.method, this.#deps.readFields);
      if (answer.status === 101) throw new Error("the endpoint switches protocols that nobody asked it to");
      if (answer.status < 200) { // 100 Continue, 103 Early Hints
        this.#came.add(rest);
        continue;
      }
      this.#answer = answer;
      return rest;
    }
  }

  #passOn(bytes: Buffer, first: boolean): number {
    const answer = this.#answer!, body = (this.#answerBody ??= new BodyEnd(answer.framing));
    const count = body.take(bytes);
    const part = count === bytes.length ? bytes : bytes.subarray(0, count);
    let more = true;
    if (first) {
      const text = responseText(answer, { edits: this.#what.plan.edits, date: this.#deps.date(), close: this.#client.closes || answer.framing === "close" });
      if (count > 0 && count <= JOINED_BYTES_MAX) more = this.#client.write(joined(text, part));
      else {
        more = this.#client.write(text);
        if (count > 0) more = this.#client.write(part);
      }
    } else if (count > 0) more = this.#client.write(part);
    if (!more && !body.done) this.#connection!.pause();
    return count;
  }

  #giveUp(): void {
    this.#isLate = true;
    this.#quit.abort();
    this.#attemptFailed(new Error("timeout"));
  }

  #end(result: Parameters<SpliceClient["over"]>[0]): void {
    if (this.#over) return;
    this.#over = true;
    this.#late?.cancel();
    this.#client.over(result);
  }
}

function joined(head: string, body: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(head.length + body.length);
  bytes.write(head, "latin1");
  body.copy(bytes, head.length);
  return bytes;
}
