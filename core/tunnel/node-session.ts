/** The server's end of one node's tunnel: connections are dialled here, and made there. */
import type { Duplex } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import { hostPort } from "../net/dial-tcp.ts";
import type { TunnelConnection } from "./connection.ts";
import { Multiplexer } from "./multiplexer.ts";
import type { Packet } from "./packet.ts";
import type { WindowLimits } from "./window.ts";

export type TunnelErrorCode =
  | "not-allowed" // the agent does not dial that address for us
  | "failed"      // it tried
  | "closed"      // the tunnel is gone
  | "timeout"
  | "canceled";

export class TunnelError extends Error {
  override readonly name = "TunnelError";
  readonly code: TunnelErrorCode;
  constructor(code: TunnelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** How an agent's DIAL_RSP begins when its allow-list says no. */
export const NOT_ALLOWED = "not allowed by the node's tunnel: ";

export interface DialAddress {
  readonly host: string;
  readonly port: number;
  readonly signal: AbortSignal;
}

export interface NodeSessionOptions {
  readonly nodeName: string;
  readonly stream: Duplex;
  readonly peerWindowBytes: number | undefined;
  readonly windows?: WindowLimits | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly onClose: (error: Error | undefined) => void;
}

/** Source: the dialling side's net.Dialer{Timeout: 30s}; the agent itself gives up after 5 s. */
const DIAL_MS_MAX = 30_000;
/** Connections of one node at a time, and dials under way. */
const CONNECTIONS_MAX = 1_000;

interface Dial { readonly resolve: (connection: TunnelConnection) => void; readonly reject: (error: TunnelError) => void }

export class NodeSession {
  readonly nodeName: string;
  readonly #options: NodeSessionOptions;
  readonly #multiplexer: Multiplexer;
  readonly #dials = new Map<bigint, Dial>();
  #draining = false;

  constructor(options: NodeSessionOptions) {
    this.nodeName = options.nodeName;
    this.#options = options;
    this.#multiplexer = new Multiplexer({
      ...options, end: "server",
      onControl: (packet) => this.#onControl(packet),
      onStray: (packet) => this.#onStray(packet),
      onClose: (error) => {
        for (const { reject } of [...this.#dials.values()]) reject(new TunnelError("closed", `the tunnel to node ${this.nodeName} was closed`, { cause: error }));
        options.onClose(error);
      },
    });
  }

  /** The agent is about to leave. */
  get draining(): boolean { return this.#draining; }
  get closed(): boolean { return this.#multiplexer.closed; }
  get connectionCount(): number { return this.#multiplexer.connectionCount; }
  get dialCount(): number { return this.#dials.size; }
  get packetCount(): number { return this.#multiplexer.packetCount; }

  /** Throws TunnelError. */
  async dial({ host, port, signal }: DialAddress): Promise<TunnelConnection> {
    const address = hostPort(host, port);
    if (signal.aborted) throw new TunnelError("canceled", "context canceled");
    if (this.closed) throw new TunnelError("closed", `the tunnel to node ${this.nodeName} was closed`);
    if (this.connectionCount + this.#dials.size >= CONNECTIONS_MAX) throw new TunnelError("failed", `dial tcp ${address}: the tunnel to node ${this.nodeName} has ${CONNECTIONS_MAX} connections, and no more fit`);
    const { clock, random } = this.#options;
    const id = Buffer.from(random.bytes(8)).readBigUInt64BE() >> 1n; // an int64, not negative
    const { promise, resolve, reject } = Promise.withResolvers<TunnelConnection>();
    this.#dials.set(id, { resolve, reject });
    const giveUp = (error: TunnelError): void => {
      this.#dials.delete(id);
      this.#multiplexer.send({ type: "DIAL_CLS", random: id });
      reject(error);
    };
    const quit = (): void => giveUp(new TunnelError("canceled", "context canceled"));
    const late = clock.after(DIAL_MS_MAX, () => giveUp(new TunnelError("timeout", `dial tcp ${address}: i/o timeout`)));
    signal.addEventListener("abort", quit, { once: true });
    this.#multiplexer.send({ type: "DIAL_REQ", protocol: "tcp", address, random: id });
    try {
      return await promise;
    } finally {
      this.#dials.delete(id);
      late.cancel();
      signal.removeEventListener("abort", quit);
    }
  }

  destroy(error?: Error): void { this.#multiplexer.destroy(error); }

  #onControl(packet: Packet): void {
    switch (packet.type) {
      case "DIAL_RSP": return this.#onAnswer(packet);
      case "DIAL_CLS":
        this.#dials.get(packet.random)?.reject(new TunnelError("failed", "the agent closed the dial"));
        return;
      case "DRAIN":
        this.#draining = true;
        return;
      default: return; // a request is nothing an agent sends: stock servers ignore it too
    }
  }

  #onAnswer({ random, connectId, error }: Extract<Packet, { type: "DIAL_RSP" }>): void {
    const dial = this.#dials.get(random);
    this.#dials.delete(random);
    if (error !== "") dial?.reject(new TunnelError(error.startsWith(NOT_ALLOWED) ? "not-allowed" : "failed", error));
    else if (!dial) this.#multiplexer.send({ type: "CLOSE_REQ", connectId }); // nobody waits any more
    else if (this.#multiplexer.has(connectId)) dial.reject(new TunnelError("failed", "the agent gave two connections the same number"));
    else {
      const connection = this.#multiplexer.add(connectId); // at once: its first data may be in the next packet
      connection.on("error", () => undefined); // so may be the tunnel's end, before whoever dialled can listen
      dial.resolve(connection);
    }
  }

  /** What still comes for a connection closed here is part of its end. */
  #onStray(_packet: Packet): void {}
}
