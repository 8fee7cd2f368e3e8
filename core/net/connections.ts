/**
 * The connections of a server, from accept to close: how many requests each has under way, which of them have to go, and the end of all.
 *
 * Deadlines are kept by looking at all of them now and then (`sweep`): what Bun does not do by itself on the path that http-server.ts takes.
 */
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";
import type { Log } from "../observe/log.ts";
import type { RequestTurns } from "./request-turns.ts";
import type { PeerCertificate } from "./tls.ts";

/** What is known of a connection, the same object for all its requests. */
export interface Connection {
  readonly protocol: "http/1.1" | "h2";
  readonly remoteAddress: string;
  readonly peerCertificate: PeerCertificate | undefined;
  /** The name a client of TLS asked for, in lower case; undefined: none. */
  readonly serverName?: string | undefined;
  /** It takes no more requests than those under way. Absent: one after the other is all there can be. */
  readonly takeNoMore?: (() => void) | undefined;
}

export interface ConnectionLimits {
  readonly connectionsMax: number;
  /** For the handshake, and then for the first request: upstream's ReadHeaderTimeout. On a machine that is too busy many handshakes at once take long. */
  readonly firstRequestMs: number;
  /** Between requests: upstream's IdleTimeout. */
  readonly idleMs: number;
  /** A peer that takes nothing of what waits for it, or has been told the end and does not end. */
  readonly stalledMs: number;
  /** While there is more to come it may take nothing for as long as it likes, as with upstream: who pages through a log, or restores a dump while it comes. The rest waits at its source. */
  readonly mayPause: boolean;
  /** Streams of one connection reset between two sweeps; and refused, as more than there may be at once: the engine would end it after a hundred, which who begins before it is told may soon have sent. */
  readonly resetsMax: number;
  readonly drainMs: number;
}

/** A connection as its server goes on to see it. */
export interface Tracked extends Connection {
  protocol: Connection["protocol"];
  takeNoMore?: (() => void) | undefined;
  readonly socket: Socket;
  /** Of HTTP/1.1: what it sends is heard of. */
  turns?: RequestTurns;
  /** Of HTTP/1.1: the request that came last, and whether all of its body has. */
  newest?: { readonly complete: boolean };
  session?: ServerHttp2Session;
  /** Its socket is somebody else's since. */
  upgraded: boolean;
  /** It has been told to go. */
  leaving: boolean;
  requests: number;
  active: number;
  /** Of those under way what is written to. */
  readonly answers: Set<{ readonly writableEnded: boolean }>;
  resets: number;
  quietSinceMs: number;
  written: number;
  stalledSinceMs: number | undefined;
  /** Since when all is said that there was to say. */
  endedSinceMs: number | undefined;
}

type Facts = Pick<Connection, "remoteAddress" | "peerCertificate" | "serverName">;

export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #bySocket = new Map<Duplex, Tracked>();
  /** They are shaking hands. */
  readonly #arriving = new Set<Duplex>();
  readonly #stopping = new AbortController();
  #toldFull = false; // since the last sweep: a flood of connections is none of the log
  readonly #emptied = Promise.withResolvers<void>(); // the last one closed after stopping began

  constructor(limits: ConnectionLimits, { clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#limits = limits;
    this.#clock = clock;
    this.#log = log;
  }

  /** Aborts when the end begins. */
  get stopping(): AbortSignal { return this.#stopping.signal; }
  get size(): number { return this.#bySocket.size; }
  of(socket: Duplex): Tracked | undefined { return this.#bySocket.get(socket); }

  /** Whether there is room for another one: when there are too many, one that does nothing makes room, so that nobody keeps others out by holding connections. */
  hasRoom(): boolean {
    if (this.size < this.#limits.connectionsMax) return true;
    const least = leastMissed(this.#bySocket.values());
    if (!this.#toldFull) this.#log.warn("too many connections", { connections: this.size, closed: least?.remoteAddress });
    this.#toldFull = true;
    if (!least) return false;
    this.#bySocket.delete(least.socket);
    least.socket.destroy();
    return true;
  }

  /** It is to be added once it has shaken hands. */
  arrives(socket: Duplex): void {
    this.#arriving.add(socket);
    socket.on("close", () => this.#arriving.delete(socket));
  }

  /** Until it closes. */
  add(socket: Socket, facts: Facts): Tracked {
    this.#arriving.delete(socket);
    const connection: Tracked = { ...facts, socket, protocol: "http/1.1", requests: 0, active: 0, answers: new Set(), upgraded: false, leaving: false, quietSinceMs: this.#clock.uptimeMs(), resets: 0, written: 0, stalledSinceMs: undefined, endedSinceMs: undefined };
    this.#bySocket.set(socket, connection);
    socket.on("close", () => {
      this.#bySocket.delete(socket);
      if (this.stopping.aborted && this.size === 0) this.#emptied.resolve();
    });
    return connection;
  }

  /** A request of it. */
  began(connection: Tracked): void {
    connection.requests++;
    connection.active++;
  }

  ended(connection: Tracked): void {
    connection.active--;
    connection.quietSinceMs = this.#clock.uptimeMs();
    if (this.isLast(connection) && connection.active === 0) connection.socket.end();
  }

  /** Whether the answer under way is its last: the end has begun, and this protocol has no other way to say so. */
  isLast({ protocol }: Tracked): boolean { return this.stopping.aborted && protocol === "http/1.1"; }

  /** Closes those that are overdue. */
  sweep(): void {
    const nowMs = this.#clock.uptimeMs();
    this.#toldFull = false;
    for (const connection of this.#bySocket.values()) {
      const why = overdue(connection, this.#limits, nowMs);
      if (why === undefined) continue;
      this.#log.debug("connection closed", { remoteAddress: connection.remoteAddress, why });
      if (why === "idle" && connection.session && !connection.leaving) {
        connection.leaving = true;
        connection.session.close();
      } else connection.socket.destroy(); // also of a peer that was told to go and has not: it could hold as many as there may be
    }
  }

  /** Resolves when all are closed, after the requests under way or after `drainMs`, and their listener is: whose handshake ends until then comes in still, and who has not ended it then is cut off as well. */
  async drain(listenerClosed: Promise<void>): Promise<void> {
    this.#stopping.abort();
    for (const { session, protocol, active, socket } of this.#bySocket.values()) {
      if (session) session.close();
      else if (protocol === "http/1.1" && active === 0) socket.end();
    }
    const cutOff = this.#clock.after(this.#limits.drainMs, () => { for (const socket of [...this.#bySocket.keys(), ...this.#arriving]) socket.destroy(); });
    if (this.size > 0) await this.#emptied.promise;
    await listenerClosed;
    cutOff.cancel();
  }
}

/** Who has never asked for anything; of those that have nothing under way who came first; and then of those who have not taken all that there was to say: over HTTP/2 a stranger may leave a word untaken for ever. */
function leastMissed(connections: Iterable<Tracked>): Tracked | undefined {
  let idle: Tracked | undefined, untaken: Tracked | undefined;
  for (const connection of connections) {
    if (isServed(connection)) continue;
    if (connection.requests === 0 && !connection.upgraded) return connection;
    if (connection.active > 0 || connection.upgraded) untaken ??= connection;
    else idle ??= connection;
  }
  return idle ?? untaken;
}

/** Whether there is more to say to it than has been said. */
function isServed({ active, answers, upgraded, socket }: Tracked): boolean {
  if (upgraded) return !socket.writableEnded;
  return active > answers.size || [...answers].some(({ writableEnded }) => !writableEnded);
}

/** Why a connection should go, if it should. */
function overdue(connection: Tracked, limits: ConnectionLimits, nowMs: number): "idle" | "stalled" | "resets" | "ended" | undefined {
  const { socket, active, upgraded, requests, resets } = connection;
  connection.resets = 0;
  if (resets > limits.resetsMax) return "resets";
  const pending = socket.writableLength > 0 && !(limits.mayPause && isServed(connection));
  if (!pending || socket.bytesWritten !== connection.written) connection.stalledSinceMs = undefined;
  else connection.stalledSinceMs ??= nowMs;
  connection.written = socket.bytesWritten;
  if (connection.stalledSinceMs !== undefined && nowMs - connection.stalledSinceMs >= limits.stalledMs) return "stalled";
  connection.endedSinceMs = socket.writableFinished ? connection.endedSinceMs ?? nowMs : undefined;
  if (connection.endedSinceMs !== undefined && nowMs - connection.endedSinceMs >= limits.stalledMs) return "ended"; // also of one that asked to be handed over, and was refused
  if (upgraded || active > 0) return undefined;
  return nowMs - connection.quietSinceMs >= (requests === 0 ? limits.firstRequestMs : limits.idleMs) ? "idle" : undefined;
}
