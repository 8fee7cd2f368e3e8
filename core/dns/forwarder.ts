/**
 * Questions about names that are not the cluster's, asked of the host's servers or those of the settings. Answers are kept for up to 30 seconds, bounded in number and size; the same question
 * from many clients is asked once.
 *
 *   a server that does not answer within 2 s twice in a row, or cannot be reached, is left alone for a moment (doubling to 10 s): the next one is asked
 *   it answers a question about the root all the same ─▶ it is not left alone: nobody takes it from the others by names that nobody answers
 *   all of them are being left alone ─▶ at once "server failure", but for one question now and then that tries: without a network nobody waits
 *
 * Every question has a socket, and so a port, of its own: an answer cannot be guessed. An answer that is cut off is asked for again over TCP if the client has a
 * larger limit; so is one of which too many wrong ones come, whoever the client is.
 */
import { createSocket } from "node:dgram";
import { connect, isIPv6 } from "node:net";
import { backoffMs } from "../lifecycle/backoff.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { FairPlaces } from "../lifecycle/fair-places.ts";
import type { Random } from "../lifecycle/random.ts";
import { splitServer } from "./dns-settings.ts";
import { CLASS_IN, FormatError, nameBytes, type Query, RCODE, readName, TYPE, walk, writeQuery } from "./wire.ts";

export interface ForwarderOptions {
  /** Who is to be asked for a name: addresses, with a port if it is not the usual one. */
  readonly upstreams: (name: string) => readonly string[];
  readonly clock: Clock;
  readonly random: Random;
  /** Theirs; 53 everywhere but in tests. */
  readonly port?: number;
  readonly pendingMax?: number;
  /** Told how each question to a server ended; "" for an answer. */
  readonly onAsked?: (server: string, seconds: number, failure: string) => void;
  /** Told of each question whether its answer was kept, and as what. */
  readonly onCache?: (kept: "success" | "denial" | undefined) => void;
}

export interface Asker { readonly from: string; readonly signal: AbortSignal }

export interface Forwarder {
  /** The answer with the asker's id, at most `bytesMax` long (cut off, and marked as such, if need be). Undefined: nobody answered, or `from` asks too much. */
  ask(query: Query, bytesMax: number, asker: Asker): Promise<Uint8Array | undefined>;
  /** How many answers are kept. */
  entries(): { readonly success: number; readonly denial: number };
}

const TRY_MS = 2000;
const SILENCES_MIN = 2;
const DOWN = { minMs: 500, maxMs: 10_000 };
/** Questions under way at the same time, of which one asker has half at most. Source: kubeadm's Corefile, max_concurrent */
const PENDING_MAX = 1000;
/** What may come to a question's socket that does not answer it: somebody guesses, or floods. Then it is asked over TCP. */
const WRONG_MAX = 100;
const KEEP_SECONDS_MAX = 30;
const ENTRIES_MAX = 4096;
const ENTRY_BYTES_MAX = 4096;

const ROOT: Query = { id: 0, opcode: 0, recursionDesired: true, checkingDisabled: false, edns: undefined, question: { name: "", nameBytes: nameBytes(""), type: TYPE.NS, class: CLASS_IN } };

interface Entry { readonly message: Uint8Array; readonly ttlOffsets: readonly number[]; readonly storedMs: number; readonly untilMs: number }
interface Health { failures: number; downUntilMs: number; answeredMs: number }

/** Nobody answered in time: the server may be gone, or slow with this one name. */
class NoAnswer extends Error {}

export function forwarder({ upstreams, clock, random, onAsked, onCache, port = 53, pendingMax = PENDING_MAX }: ForwarderOptions): Forwarder {
  const cache = new Map<string, Entry>(); // oldest first
  const pending = new Map<string, Promise<Uint8Array | undefined>>();
  const places = new FairPlaces(pendingMax);
  const health = new Map<string, Health>();
  const lookedAfter = new Set<string>();

  async function ask(query: Query, bytesMax: number, { from, signal }: Asker): Promise<Uint8Array | undefined> {
    const large = bytesMax > 4096; // over TCP: wants what does not fit into a datagram
    const key = [query.question.name, query.question.type, query.question.class, query.checkingDisabled, query.edns?.dnssecOk ?? "-", large].join(" ");
    const kept = fromCache(key);
    onCache?.(kept && kindOf(kept));
    if (kept) return fit(kept, query, bytesMax);
    let answer = pending.get(key);
    if (!answer) {
      if (!places.take(from)) return undefined;
      answer = askServers(query, large, signal).finally(() => {
        pending.delete(key);
        places.give(from);
      });
      pending.set(key, answer);
    }
    const message = await answer;
    if (!message) return undefined;
    keep(key, message);
    return fit(message, query, bytesMax);
  }

  async function askServers(query: Query, large: boolean, signal: AbortSignal): Promise<Uint8Array | undefined> {
    const servers = upstreams(query.question.name);
    const nowMs = clock.uptimeMs();
    const up = servers.filter((server) => (health.get(server)?.downUntilMs ?? 0) <= nowMs);
    for (const server of up) {
      const one = health.get(server);
      if (one && one.failures >= SILENCES_MIN) one.downUntilMs = clock.uptimeMs() + TRY_MS; // others do not try while this one does
      const startMs = clock.uptimeMs();
      const answer = await askServer(server, query, large, signal);
      if (signal.aborted) return undefined;
      onAsked?.(server, (clock.uptimeMs() - startMs) / 1000, answer instanceof Error ? answer.message : "");
      if (answer instanceof Error) {
        failed(server, startMs, answer instanceof NoAnswer);
        if (answer instanceof NoAnswer && (health.get(server)?.downUntilMs ?? 0) > clock.uptimeMs()) void lookAfter(server, signal);
        continue;
      }
      health.set(server, { failures: 0, downUntilMs: 0, answeredMs: clock.uptimeMs() });
      if (rcodeOf(answer) !== RCODE.SERVFAIL && rcodeOf(answer) !== RCODE.REFUSED) return answer;
      if (server === up.at(-1)) return answer; // that is what they all say
    }
    return undefined;
  }

  /** Silence counts only if the server has not answered anything else meanwhile, and from the second time on. */
  function failed(server: string, startMs: number, silent: boolean): void {
    const before = health.get(server) ?? { failures: 0, downUntilMs: 0, answeredMs: Number.NEGATIVE_INFINITY };
    if (silent && before.answeredMs > startMs) return;
    const failures = before.failures + 1;
    const downUntilMs = silent && failures < SILENCES_MIN ? 0 : clock.uptimeMs() + backoffMs(failures, DOWN);
    health.set(server, { ...before, failures, downUntilMs });
  }

  /** A server may be silent about names that one asker makes up, and is there for the others: then it answers who asks about the root. */
  async function lookAfter(server: string, signal: AbortSignal): Promise<void> {
    if (lookedAfter.has(server)) return;
    lookedAfter.add(server);
    const answer = await askServer(server, ROOT, false, signal);
    lookedAfter.delete(server);
    if (!(answer instanceof Error)) health.set(server, { failures: 0, downUntilMs: 0, answeredMs: clock.uptimeMs() });
  }

  async function askServer(server: string, query: Query, large: boolean, signal: AbortSignal): Promise<Uint8Array | Error> {
    const id = (random.bytes(2)[0]! << 8) | random.bytes(2)[0]!;
    const question = writeQuery(id, query);
    const timeout = new AbortController();
    const alarm = clock.after(TRY_MS, () => timeout.abort(new NoAnswer("no answer")));
    const quit = AbortSignal.any([signal, timeout.signal]);
    const isAnswer = (message: Uint8Array): boolean => answers(message, id, query);
    try {
      const at = splitServer(server, port);
      const first = await overUdp(at.address, at.port, question, isAnswer, quit);
      return first === undefined || (large && (first[2]! & 0x02) !== 0) ? await overTcp(at.address, at.port, question, isAnswer, quit) : first;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    } finally {
      alarm.cancel();
    }
  }

  function fromCache(key: string): Uint8Array | undefined {
    const entry = cache.get(key);
    if (!entry) return undefined;
    const nowMs = clock.uptimeMs();
    if (entry.untilMs <= nowMs) {
      cache.delete(key);
      return undefined;
    }
    const message = entry.message.slice();
    const view = new DataView(message.buffer);
    const agedSeconds = Math.floor((nowMs - entry.storedMs) / 1000);
    for (const offset of entry.ttlOffsets) view.setUint32(offset, Math.max(0, view.getUint32(offset) - agedSeconds));
    return message;
  }

  function keep(key: string, message: Uint8Array): void {
    const rcode = rcodeOf(message);
    if (message.length > ENTRY_BYTES_MAX || (message[2]! & 0x02) !== 0 || (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN)) return;
    const records = walk(message).filter(({ type }) => type !== TYPE.OPT);
    if (records.length === 0) return; // nothing says how long it holds
    const seconds = Math.min(KEEP_SECONDS_MAX, ...records.map(({ ttl }) => ttl));
    if (seconds <= 0) return;
    cache.delete(key);
    const [oldest] = cache.keys();
    if (cache.size >= ENTRIES_MAX && oldest !== undefined) cache.delete(oldest);
    const nowMs = clock.uptimeMs();
    cache.set(key, { message, ttlOffsets: records.map(({ ttlOffset }) => ttlOffset), storedMs: nowMs, untilMs: nowMs + seconds * 1000 });
  }

  return {
    ask,
    entries() {
      let denial = 0;
      for (const { message } of cache.values()) if (kindOf(message) === "denial") denial++;
      return { success: cache.size - denial, denial };
    },
  };
}

/** An answer without an answer is a denial. */
function kindOf(message: Uint8Array): "success" | "denial" { return rcodeOf(message) === RCODE.NXDOMAIN || (message[6] === 0 && message[7] === 0) ? "denial" : "success"; }

/** Ours by id and by question: what else arrives is not from the server we asked, or late. */
function answers(message: Uint8Array, id: number, { question }: Query): boolean {
  if (message.length < 12 || ((message[0]! << 8) | message[1]!) !== id || (message[2]! & 0x80) === 0) return false;
  try {
    walk(message);
    if (message[4] !== 0 || message[5] !== 1) return false;
    const { text, end, points } = readName(message, 12);
    const word = (at: number): number => (message[at]! << 8) | message[at + 1]!;
    return !points && text === question.name && word(end) === question.type && word(end + 2) === question.class; // each asker's own spelling is put in its place
  } catch (error) {
    if (error instanceof FormatError) return false;
    throw error;
  }
}

/** The id and the spelling are the asker's. */
function fit(message: Uint8Array, { id, question }: Query, bytesMax: number): Uint8Array {
  const end = 12 + question.nameBytes.length + 4;
  const out = message.length <= bytesMax ? message.slice() : message.slice(0, end);
  out[0] = id >> 8;
  out[1] = id & 0xff;
  out.set(question.nameBytes, 12);
  if (message.length > bytesMax) {
    out[2]! |= 0x02;
    out.fill(0, 6, 12);
  }
  return out;
}

function rcodeOf(message: Uint8Array): number { return message[3]! & 0xf; }

/** Undefined: too much came that was no answer. */
function overUdp(server: string, port: number, question: Uint8Array, isAnswer: (message: Uint8Array) => boolean, signal: AbortSignal): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(server.split("%")[0]!) ? "udp6" : "udp4");
    let wrong = 0;
    let over = false; // a socket can be closed but once, and more than one thing may go wrong
    const end = (): void => {
      signal.removeEventListener("abort", abort);
      if (!over) socket.close();
      over = true;
    };
    const fail = (error: unknown): void => { end(); reject(error instanceof Error ? error : new Error(String(error))); };
    const abort = (): void => fail(signal.reason);
    socket.on("error", fail);
    socket.on("message", (message) => {
      if (over) return;
      const bytes = Uint8Array.from(message);
      const isOurs = isAnswer(bytes);
      if (!isOurs && ++wrong < WRONG_MAX) return;
      end();
      resolve(isOurs ? bytes : undefined);
    });
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) return abort();
    socket.connect(port, server, (error?: Error) => {
      if (over) return;
      if (error) return fail(error);
      socket.send(question, (problem) => { if (problem) fail(problem); });
    });
  });
}

function overTcp(server: string, port: number, question: Uint8Array, isAnswer: (message: Uint8Array) => boolean, signal: AbortSignal): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server, port });
    let received = new Uint8Array(0);
    const end = (): void => {
      signal.removeEventListener("abort", abort);
      socket.destroy();
    };
    const fail = (error: unknown): void => { end(); reject(error instanceof Error ? error : new Error(String(error))); };
    const abort = (): void => fail(signal.reason);
    socket.on("connect", () => socket.write(Buffer.concat([Uint8Array.of(question.length >> 8, question.length & 0xff), question])));
    socket.on("data", (chunk) => {
      received = Uint8Array.from(Buffer.concat([received, chunk as Buffer]));
      const length = received.length < 2 ? Number.POSITIVE_INFINITY : (received[0]! << 8) | received[1]!;
      if (received.length < length + 2) return;
      const message = received.slice(2, length + 2);
      if (!isAnswer(message)) return fail(new Error("not the answer to the question"));
      end();
      resolve(message);
    });
    socket.on("error", fail);
    socket.on("close", () => fail(new Error("the connection was closed")));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  });
}
