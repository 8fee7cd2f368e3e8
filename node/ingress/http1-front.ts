/**
 * A client's connection over HTTP/1.1, as the ingress serves it: one request after the other, each spliced to an endpoint (splice.ts). What is seldom asked for is left to node's
 * own servers, which take the connection as it is, between two requests: HTTP/1.0, upgrades, endpoints that speak HTTP/2, requests that others are sent copies of; and HTTP/2 itself, whether a client begins with it
 * (prior knowledge) or asks for it (`Upgrade: h2c`, where there is no TLS).
 *
 * Source: RFC 9112; RFC 9113 section 3.3
 */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { BodyEnd } from "../../core/net/http1-body.ts";
import { readRequestHead, type RequestHead } from "../../core/net/http1-head.ts";
import type { Http1Seat } from "../../core/net/http-server.ts";
import type { Counter, Histogram } from "../../core/observe/metrics.ts";
import { askedByHead, type Caller, responseText } from "./headers.ts";
import { type H2cBegin, h2cUpgrade } from "./h2c-upgrade.ts";
import { methodLabel, TEXTS } from "./router.ts";
import { Splice, type SpliceClient, type SpliceDeps } from "./splice.ts";

export interface Http1FrontDeps extends SpliceDeps {
  readonly requests: Counter;
  readonly seconds: Histogram;
}

/** What a client sends ahead of its turn waits with it from here on. */
const AHEAD_BYTES_MAX = 64 * 1024;
/** Of a body that nobody wants: more, and the connection is not worth it. */
const UNWANTED_BYTES_MAX = 1024 * 1024;
const NOTHING = Buffer.alloc(0);
const CR = 13, LF = 10;
/** How HTTP/2 begins: no method is called that. */
const PREFACE = Buffer.from("PRI ");

export class Http1Front implements SpliceClient {
  readonly #socket: Socket;
  readonly #seat: Http1Seat;
  readonly #caller: Caller;
  readonly #deps: Http1FrontDeps;
  #ahead: Buffer = NOTHING;
  #splice: Splice | undefined;
  #head: RequestHead | undefined;
  #beganMs = 0;
  /** The rest of a request's body, of which nothing is wanted any more. */
  #unwanted: BodyEnd | undefined;
  #unwantedBytes = 0;
  #first = true;
  #going = false;
  /** The endpoint takes no more of the body now. */
  #held = false;
  /** The client has not taken what was answered: it is served no further, and not read from, until it has. */
  #unread = false;
  /** Nothing is read. */
  #stopped = false;
  /** The connection is somebody else's, or at its end. */
  #left = false;

  constructor(socket: Socket, seat: Http1Seat, caller: Caller, deps: Http1FrontDeps) {
    this.#socket = socket;
    this.#seat = seat;
    this.#caller = caller;
    this.#deps = deps;
    socket.on("data", this.#onData).on("drain", this.#onDrain).on("end", this.#onEnd).on("close", this.#onEnd);
  }

  get closes(): boolean { return this.#head!.closes || this.#seat.stopping.aborted; }

  write(bytes: Buffer | string): boolean {
    const more = typeof bytes === "string" ? this.#socket.write(bytes, "latin1") : this.#socket.write(bytes);
    if (!more) this.#unread = true;
    return more;
  }

  pause(): void {
    this.#held = true;
    this.#flow();
  }

  resume(): void {
    this.#held = false;
    this.#flow();
  }

  /** A request more is answered: what has come ahead is enough for many, and of more there would be no end. */
  #flow(): void {
    const stops = this.#held || this.#ahead.length > AHEAD_BYTES_MAX || (this.#unread && !this.#splice);
    if (this.#left || stops === this.#stopped) return;
    this.#stopped = stops;
    if (stops) this.#socket.pause();
    else this.#socket.resume();
  }

  ready(): void {
    if (this.#head!.expectsContinue && this.#ahead.length === 0) this.write("HTTP/1.1 100 Continue\r\n\r\n");
    this.resume();
    this.#go();
  }

  over({ status, answered, cut, ends }: Parameters<SpliceClient["over"]>[0]): void {
    const { body } = this.#splice!;
    this.#splice = undefined;
    this.#count(status);
    if (cut) return void this.#socket.destroy(); // half an answer must not look like a whole one
    if (answered) this.#next(body, ends || this.closes);
    else this.#refuse(status, body);
    this.#go();
  }

  readonly #onDrain = (): void => {
    this.#unread = false;
    this.#splice?.drained();
    this.#go();
  };

  readonly #onEnd = (): void => {
    if (this.#splice) this.#splice.abort();
    else if (!this.#socket.destroyed) this.#socket.end();
  };

  readonly #onData = (bytes: Buffer): void => {
    this.#ahead = this.#ahead.length === 0 ? bytes : Buffer.concat([this.#ahead, bytes]);
    this.#go();
  };

  /** As far as what has come allows: each step takes something of it. */
  #go(): void {
    if (this.#going) return;
    this.#going = true;
    while (this.#ahead.length > 0 && !this.#left && this.#step());
    this.#going = false;
    this.#flow();
  }

  #step(): boolean {
    try {
      if (this.#splice?.isTaking) this.#ahead = this.#ahead.subarray(this.#splice.take(this.#ahead));
      else if (this.#splice || this.#unread) return false;
      else if (this.#unwanted) return this.#drop(this.#unwanted) || this.#close(); // who still sends has not heard the answer yet
      else return this.#readHead();
      return true;
    } catch {
      this.#splice?.abort(); // what came is no body
      this.#socket.destroy();
      return false;
    }
  }

  /** False: it has been too much. */
  #drop(unwanted: BodyEnd): boolean {
    const count = unwanted.take(this.#ahead);
    this.#ahead = this.#ahead.subarray(count);
    this.#unwantedBytes += count;
    if (unwanted.done) this.#unwanted = undefined;
    return this.#unwantedBytes <= UNWANTED_BYTES_MAX;
  }

  /** Whether a head was there, whole. */
  #readHead(): boolean {
    let at = 0;
    while (this.#ahead[at] === CR && this.#ahead[at + 1] === LF) at += 2; // RFC 9112 section 2.2
    if (at > 0) this.#ahead = this.#ahead.subarray(at);
    if (this.#first && PREFACE.subarray(0, this.#ahead.length).equals(this.#ahead.subarray(0, PREFACE.length))) {
      if (this.#ahead.length >= PREFACE.length) this.#handOver("h2");
      return false;
    }
    const end = this.#ahead.indexOf("\r\n\r\n");
    if (end > this.#seat.headerBytesMax || (end < 0 && this.#ahead.length > this.#seat.headerBytesMax)) return this.#refuse(431);
    if (end < 0) return /(?<!\r)\n/.test(this.#ahead.toString("latin1")) && this.#refuse(400); // its end would never come
    const head = readRequestHead(this.#ahead.toString("latin1", 0, end + 2), this.#deps.readFields);
    if (typeof head === "number") return this.#refuse(head);
    return this.#serve(head, this.#ahead.subarray(end + 4));
  }

  #serve(head: RequestHead, rest: Buffer): boolean {
    const upgrade = head.upgrade?.toLowerCase();
    if (head.minor === 0 || ((upgrade === "websocket" || upgrade === "spdy/3.1") && head.framing === 0)) return this.#handOver("http/1.1"); // with a body it is a request like any: RFC 9110 section 7.8
    const asked = askedByHead(head);
    if (upgrade === "h2c" && asked && this.#first && !this.#caller.secure) {
      const begin = h2cUpgrade(head, asked.authority);
      if (begin) return this.#switch(begin, rest);
    }
    const plan = this.#deps.router.plan(asked, this.#caller);
    if (plan.type === "forward" && (plan.protocol === "h2c" || plan.mirrors.length > 0)) return this.#handOver("http/1.1");
    this.#first = false;
    this.#head = head;
    this.#ahead = rest;
    this.#seat.began();
    this.#beganMs = this.#deps.clock.uptimeMs();
    if (plan.type === "forward") {
      this.#splice = new Splice({ head, asked: asked!, plan, caller: this.#caller }, this, this.#deps);
      void this.#splice.run();
      return true;
    }
    const body = new BodyEnd(head.framing);
    if (plan.type === "fail") {
      this.#count(plan.status);
      return this.#refuse(plan.status, body);
    }
    const fields = plan.headers.map(({ name, value }) => ({ name, value, line: `${name}: ${value}` }));
    this.#count(plan.status);
    this.write(responseText({ status: plan.status, statusText: STATUS_CODES[plan.status] ?? "", fields, framing: 0, length: "0", named: undefined }, { edits: plan.edits, date: this.#deps.date(), close: this.closes }));
    return this.#next(body, this.closes);
  }

  /** An answer of our own; without a `body` of a request to go by, the last one. */
  #refuse(status: number, body?: BodyEnd): boolean {
    const text = TEXTS[status] ?? `${status}\n`, close = body === undefined || this.closes || (this.#head!.expectsContinue && !body.done);
    const fields = [{ name: "content-type", value: "", line: "content-type: text/plain; charset=utf-8" }];
    this.write(`${responseText({
      status, statusText: STATUS_CODES[status] ?? "", fields, framing: text.length, length: String(text.length), named: undefined,
    }, { edits: [], date: this.#deps.date(), close })}${body && this.#head!.method === "HEAD" ? "" : text}`);
    return body ? this.#next(body, close) : this.#close();
  }

  /** The answer has been given: what of the request's `body` has not been taken is thrown away, and the next one may come. */
  #next(body: BodyEnd, close: boolean): boolean {
    this.#seat.ended();
    if (close) return this.#close();
    this.#unwantedBytes = 0;
    this.#unwanted = body.done ? undefined : body;
    this.resume();
    return true;
  }

  #close(): boolean {
    this.#leave();
    this.#socket.on("data", () => undefined).resume(); // so that the end of the other side is seen
    this.#socket.end();
    return false;
  }

  #switch(begin: H2cBegin, rest: Buffer): boolean {
    this.#leave();
    this.write("HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n");
    let came = rest;
    const socket = this.#socket;
    const more = (bytes: Buffer): void => {
      came = Buffer.concat([came, bytes]);
      const whole = begin(came);
      if (whole === undefined) return;
      socket.off("data", more);
      if (whole) this.#seat.handOver("h2", whole);
      else socket.destroy();
    };
    socket.on("data", more);
    more(NOTHING);
    return false;
  }

  #handOver(to: "http/1.1" | "h2"): boolean {
    this.#leave();
    this.#seat.handOver(to, this.#ahead);
    return false;
  }

  /** Nothing that comes is for us any more. */
  #leave(): void {
    this.#left = true;
    this.#socket.off("data", this.#onData).off("drain", this.#onDrain).off("end", this.#onEnd).off("close", this.#onEnd);
  }

  #count(status: number): void {
    const { requests, seconds, clock } = this.#deps;
    requests.inc({ code: String(status), method: methodLabel(this.#head!.method) });
    seconds.observe((clock.uptimeMs() - this.#beganMs) / 1000);
  }
}

/** Now, as HTTP writes it: made once a second. */
export function httpDate(clock: Pick<Clock, "nowMs">): () => string {
  let second = 0, text = "";
  return () => {
    const now = Math.floor(clock.nowMs() / 1000);
    if (now !== second) [second, text] = [now, new Date(now * 1000).toUTCString()];
    return text;
  };
}
