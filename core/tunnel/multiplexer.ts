/**
 * Many connections over one stream of packets, the same at both ends.
 *
 * Sending: connections that have something to send and credit for it take turns, a piece each, while the stream takes it. So a copy of a large file does not
 * keep a shell from its keystrokes.
 *
 * Receiving, from a peer that knows credit: a connection nobody reads uses up its window and is silent; nobody else notices. From a peer that does not
 * (stock Konnectivity): such a connection can only be held back by holding back all, which is done for a while; then it is cut off.
 */
import type { Clock } from "../lifecycle/clock.ts";
import { TunnelConnection, type Line } from "./connection.ts";
import type { Packet } from "./packet.ts";
import { PacketStream } from "./packet-stream.ts";
import { ReceiveWindow, WINDOW_LIMITS, WindowBudget, type WindowLimits } from "./window.ts";
import type { Duplex } from "node:stream";

export interface MultiplexerOptions {
  readonly stream: Duplex;
  /** Which end this is: it decides how a connection is closed. */
  readonly end: "server" | "agent";
  /** What the peer grants each connection at first; undefined: it knows no credit. */
  readonly peerWindowBytes: number | undefined;
  readonly windows?: WindowLimits | undefined;
  readonly clock: Clock;
  /** DIAL_REQ, DIAL_RSP, DIAL_CLS and DRAIN. */
  readonly onControl: (packet: Packet) => void;
  /** Packets about a connection there is none of. */
  readonly onStray: (packet: Packet & { readonly connectId: number }) => void;
  /** The stream is gone, and all connections with it. */
  readonly onClose: (error: Error | undefined) => void;
}

/** From a peer without credit: what may wait for one connection's reader before all others have to wait too, and for how long they will. */
const UNCREDITED_BYTES_MAX = 256 * 1024;
const HOLD_ALL_MS = 30_000; // source: http-server.ts cuts off peers that take nothing for 60 s; here others wait

interface Kept { readonly connection: TunnelConnection; readonly window: ReceiveWindow | undefined }

export class Multiplexer implements Line {
  readonly #options: MultiplexerOptions;
  readonly #stream: PacketStream;
  readonly #connections = new Map<number, Kept>();
  readonly #budget: WindowBudget;
  /** Whose turn it is, in order. */
  readonly #turns = new Set<TunnelConnection>();
  readonly #overfull = new Set<TunnelConnection>();
  #patience: { cancel(): void } | undefined;
  #closed = false;

  constructor(options: MultiplexerOptions) {
    this.#options = options;
    this.#budget = new WindowBudget((options.windows ?? WINDOW_LIMITS).budgetBytes);
    this.#stream = new PacketStream(options.stream, {
      onPacket: (packet) => this.#onPacket(packet),
      onRoom: () => this.#pump(),
      onClose: (error) => this.#onClose(error),
    }, options.clock);
  }

  get connectionCount(): number { return this.#connections.size; }
  get closed(): boolean { return this.#closed; }
  /** Packets received so far. */
  get packetCount(): number { return this.#stream.packetCount; }

  has(connectId: number): boolean { return this.#connections.has(connectId); }

  /** One whose number nobody else has. */
  add(connectId: number): TunnelConnection {
    const { peerWindowBytes, windows = WINDOW_LIMITS, clock } = this.#options;
    const connection = new TunnelConnection(connectId, this, peerWindowBytes ?? Number.POSITIVE_INFINITY);
    const window = peerWindowBytes === undefined ? undefined : new ReceiveWindow(windows, this.#budget, () => clock.uptimeMs());
    this.#connections.set(connectId, { connection, window });
    return connection;
  }

  send(packet: Parameters<PacketStream["send"]>[0]): void {
    if (!this.#closed) this.#stream.send(packet);
  }

  /** Cuts everything off. */
  destroy(error?: Error): void { this.#stream.destroy(error); }

  #onPacket(packet: Packet): void {
    switch (packet.type) {
      case "DATA": return this.#onData(packet);
      case "FLOW": {
        const { connection } = this.#connections.get(packet.connectId) ?? {};
        if (packet.credit > 0) connection?.takeCredit(packet.credit);
        if (packet.end) connection?.takeEnd();
        return;
      }
      case "CLOSE_REQ":
      case "CLOSE_RSP": {
        const kept = this.#connections.get(packet.connectId);
        if (!kept) return this.#options.onStray(packet);
        kept.connection.takeClose(packet.type === "CLOSE_RSP" ? packet.error : "");
        return;
      }
      case "unknown": return; // of a later version
      default: this.#options.onControl(packet);
    }
  }

  #onData(packet: Extract<Packet, { type: "DATA" }>): void {
    const kept = this.#connections.get(packet.connectId);
    if (!kept) return this.#options.onStray(packet);
    const { connection, window } = kept;
    if (window && !window.received(packet.data.length)) return void connection.destroy(new Error("the other end of the tunnel sent more than it may"));
    connection.takeData(packet.data);
    if (!window && connection.arrivedBytes > UNCREDITED_BYTES_MAX) this.#holdAll(connection);
  }

  // a peer without credit

  #holdAll(connection: TunnelConnection): void {
    this.#overfull.add(connection);
    this.#stream.pause();
    this.#patience ??= this.#options.clock.after(HOLD_ALL_MS, () => {
      this.#patience = undefined;
      for (const one of [...this.#overfull]) one.destroy(new Error(`nobody read from this connection for ${HOLD_ALL_MS / 1000} s, and others had to wait`));
    });
  }

  #letGo(connection: TunnelConnection): void {
    if (!this.#overfull.delete(connection) || this.#overfull.size > 0) return;
    this.#patience?.cancel();
    this.#patience = undefined;
    this.#stream.resume();
  }

  // what connections ask for

  wantsToSend(connection: TunnelConnection): void {
    this.#turns.add(connection);
    this.#pump();
  }

  #pump(): void {
    while (this.#stream.hasRoom && !this.#closed) {
      const [next] = this.#turns;
      if (!next) return;
      this.#turns.delete(next);
      next.sendPiece();
      if (next.canSend) this.#turns.add(next); // behind the others
    }
  }

  sendData({ connectId }: TunnelConnection, data: Buffer): void { this.send({ type: "DATA", connectId, error: "", data }); }

  /** A stock peer knows no half of a connection: to a server the end is all of it; from a server it is told when the connection is closed. */
  sendEnd(connection: TunnelConnection): void {
    const { connectId } = connection;
    if (this.#options.peerWindowBytes !== undefined) this.send({ type: "FLOW", connectId, credit: 0, end: true });
    else if (this.#options.end === "agent") connection.destroy();
  }

  onRead(connection: TunnelConnection, bytes: number): void {
    const { connectId, arrivedBytes } = connection;
    const credit = this.#connections.get(connectId)?.window?.read(bytes, { keptUp: arrivedBytes === 0 }) ?? 0;
    if (credit > 0 && !connection.closedByPeer) this.send({ type: "FLOW", connectId, credit, end: false });
    if (arrivedBytes <= UNCREDITED_BYTES_MAX / 2) this.#letGo(connection);
  }

  onGone(connection: TunnelConnection): void {
    const { connectId } = connection;
    const kept = this.#connections.get(connectId);
    if (kept?.connection !== connection) return;
    this.#connections.delete(connectId);
    this.#turns.delete(connection);
    kept.window?.release();
    this.#letGo(connection);
    if (connection.ended) return;
    if (this.#options.end === "agent") this.send({ type: "CLOSE_RSP", error: connection.errored?.message ?? "", connectId });
    else if (!connection.closedByPeer) this.send({ type: "CLOSE_REQ", connectId });
  }

  #onClose(error: Error | undefined): void {
    this.#closed = true;
    this.#patience?.cancel();
    for (const { connection } of [...this.#connections.values()]) connection.destroy(new Error("the tunnel was closed", { cause: error }));
    this.#options.onClose(error);
  }
}
