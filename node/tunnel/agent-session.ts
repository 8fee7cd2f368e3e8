/** The agent's end of the tunnel to one server: dials what the server asks for, if it is allowed, and joins both connections. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { dialTcp } from "../../core/net/dial-tcp.ts";
import { readFirst } from "../../core/net/read-first.ts";
import type { Log } from "../../core/observe/log.ts";
import type { TunnelConnection } from "../../core/tunnel/connection.ts";
import { Multiplexer } from "../../core/tunnel/multiplexer.ts";
import { NOT_ALLOWED } from "../../core/tunnel/node-session.ts";
import type { Packet } from "../../core/tunnel/packet.ts";
import type { WindowLimits } from "../../core/tunnel/window.ts";
import type { Address } from "./allow-list.ts";

export interface AgentSessionOptions {
  readonly stream: Duplex;
  /** What the server grants each connection; undefined: a stock server, which knows no credit. */
  readonly peerWindowBytes: number | undefined;
  readonly windows?: WindowLimits | undefined;
  /** Where "host:port" is to be dialled; undefined: not allowed. */
  readonly allowed: (address: string) => Address | undefined;
  readonly onDial: (result: "connected" | "not-allowed" | "failed", durationMs: number) => void;
  readonly onClose: (error: Error | undefined) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Source: pkg/agent/client.go dialTimeout */
const DIAL_MS = 5_000;
/** What the server has asked for and is not answered yet, and what it has open. */
const DIALS_MAX = 500;
const CONNECTIONS_MAX = 1_000;
/** What was sent is delivered, if it is taken in this time, after the server has closed. */
const LINGER_MS = 10_000;

const NOTHING = Buffer.alloc(0);

export class AgentSession {
  readonly #options: AgentSessionOptions;
  readonly #multiplexer: Multiplexer;
  readonly #dials = new Map<bigint, AbortController>();
  #lastId = 0;

  constructor(options: AgentSessionOptions) {
    this.#options = options;
    this.#multiplexer = new Multiplexer({
      ...options, end: "agent",
      onControl: (packet) => this.#onControl(packet),
      onStray: (packet) => this.#onStray(packet),
      onClose: (error) => {
        for (const dial of this.#dials.values()) dial.abort();
        options.onClose(error);
      },
    });
  }

  get connectionCount(): number { return this.#multiplexer.connectionCount; }
  get packetCount(): number { return this.#multiplexer.packetCount; }

  /** Tells the server to dial elsewhere. */
  drain(): void { this.#multiplexer.send({ type: "DRAIN" }); }
  destroy(error?: Error): void { this.#multiplexer.destroy(error); }

  #onControl(packet: Packet): void {
    if (packet.type === "DIAL_REQ") void this.#dial(packet);
    else if (packet.type === "DIAL_CLS") this.#dials.get(packet.random)?.abort();
  }

  #onStray(packet: Packet & { readonly connectId: number }): void {
    const { connectId } = packet;
    if (packet.type === "CLOSE_REQ") this.#multiplexer.send({ type: "CLOSE_RSP", connectId, error: "Unknown connectID" }); // source: pkg/agent/client.go
    else if (packet.type === "DATA" && connectId > this.#lastId) this.#multiplexer.send({ type: "CLOSE_RSP", connectId, error: "unrecognized connectID" });
  }

  async #dial({ protocol, address, random }: Extract<Packet, { type: "DIAL_REQ" }>): Promise<void> {
    const { clock, allowed, onDial, log } = this.#options;
    const refuse = (error: string): void => this.#multiplexer.send({ type: "DIAL_RSP", error, connectId: 0, random });
    if (protocol !== "tcp") return refuse(`dial ${protocol}: unknown network ${protocol}`);
    const target = allowed(address);
    if (!target) {
      log.warn("the server asked for a connection this node does not allow", { address });
      onDial("not-allowed", 0);
      return refuse(`${NOT_ALLOWED}${address}`);
    }
    if (this.#dials.size >= DIALS_MAX || this.connectionCount >= CONNECTIONS_MAX) return refuse(`dial tcp ${address}: too many connections at once`);
    const quit = new AbortController();
    const startMs = clock.uptimeMs();
    this.#dials.set(random, quit);
    try {
      const socket = await dialTcp({ ...target, timeoutMs: DIAL_MS, allowHalfOpen: true }, { clock, signal: quit.signal });
      if (quit.signal.aborted || this.#multiplexer.closed) return void socket.destroy();
      const connectId = ++this.#lastId;
      this.#multiplexer.send({ type: "DIAL_RSP", error: "", connectId, random });
      joinConnections(this.#multiplexer.add(connectId), socket, clock);
      onDial("connected", clock.uptimeMs() - startMs);
    } catch (error) {
      onDial("failed", clock.uptimeMs() - startMs);
      if (!quit.signal.aborted) refuse((error as Error).message);
    } finally {
      this.#dials.delete(random);
    }
  }
}

function joinConnections(connection: TunnelConnection, socket: Socket, clock: Clock): void {
  let failure: Error | undefined;
  connection.pipe(readFirst(socket)); // who refuses what it is sent may not read it
  socket.pipe(connection);
  socket.on("error", (error) => { failure = error; });
  socket.on("close", () => {
    connection.resume(); // what comes now has nobody to go to
    if (!failure && socket.readableEnded) return; // what it has said is still on its way to the server
    const cutOff = (): void => void connection.destroy(failure); // behind what it has said
    if (connection.writable) connection.write(NOTHING, cutOff);
    else if (connection.writableFinished) cutOff();
    else connection.once("finish", cutOff);
  });
  connection.on("error", () => socket.destroy()); // the close that follows says all there is to do
  connection.on("close", () => {
    if (!connection.readableEnded) return void socket.destroy();
    const late = clock.after(LINGER_MS, () => socket.destroy());
    socket.on("close", () => late.cancel());
    socket.end();
  });
}
