/** Packets over one gRPC stream: either end's HTTP/2 stream, whose back-pressure it passes on. A peer that sends them without end has its turn, and others have theirs. */
import type { Duplex } from "node:stream";
import { type Breathe, breather } from "../lifecycle/breather.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { GrpcFrameReader } from "../net/grpc/frames.ts";
import { decodePacket, encodePacket, type Packet } from "./packet.ts";

/** Source: grpc-go's default for received messages, which stock peers keep to. */
const PACKET_BYTES_MAX = 4 * 1024 * 1024;
/** Small packets are sent without waiting for room. A peer that makes us send them without end and reads none is cut off. */
const UNSENT_BYTES_MAX = 4 * 1024 * 1024;
/** What each of them costs that waits, however small it is. */
const UNSENT_BYTES_MIN = 256;

/** Packets that wait for their turn; more of them are left to the stream. */
const WAITING_BYTES_MAX = 1024 * 1024;

export interface PacketHandlers {
  onPacket(packet: Packet): void;
  /** After `hasRoom` was false. */
  onRoom(): void;
  /** Once. Undefined: it ended as it should. */
  onClose(error: Error | undefined): void;
}

export class PacketStream {
  readonly #stream: Duplex;
  readonly #handlers: PacketHandlers;
  readonly #reader = new GrpcFrameReader({ bytesMax: PACKET_BYTES_MAX });
  readonly #breathe: Breathe;
  #packets = 0;
  #error: Error | undefined;
  /** Packets that wait to be sent; where they need not wait, this turn's. */
  #unsent = 0;
  readonly #onSent = (): void => { this.#unsent--; };
  #isPaused = false;
  /** Waits for its turn to go on with what has come. */
  #isWaiting = false;

  constructor(stream: Duplex, handlers: PacketHandlers, clock: Pick<Clock, "uptimeMs">) {
    this.#stream = stream;
    this.#handlers = handlers;
    this.#breathe = breather(clock);
    stream.on("data", (chunk: Buffer) => {
      this.#reader.add(chunk);
      if (!this.#isWaiting) this.#take();
      else if (this.#reader.heldBytes > WAITING_BYTES_MAX) stream.pause();
    });
    stream.on("drain", () => handlers.onRoom());
    stream.on("error", (error) => { this.#error ??= error; });
    stream.on("end", () => { if (!stream.destroyed) stream.end(); });
    stream.on("close", () => {
      while (!this.#error && this.#takeOne());
      handlers.onClose(this.#error);
    });
  }

  /** Received so far. */
  get packetCount(): number { return this.#packets; }

  get hasRoom(): boolean { return !this.#stream.writableNeedDrain && this.#stream.writable; }

  send(packet: Exclude<Packet, { type: "unknown" }>): void {
    if (!this.#stream.writable) return; // its close is on its way to us
    this.#unsent++;
    this.#stream.write(encodePacket(packet), this.#onSent);
    const unsentBytes = Math.max(this.#stream.writableLength, this.#stream.writableNeedDrain ? this.#unsent * UNSENT_BYTES_MIN : 0);
    if (unsentBytes > UNSENT_BYTES_MAX) this.destroy(new Error("the other end of the tunnel does not read"));
  }

  pause(): void {
    this.#isPaused = true;
    this.#stream.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isWaiting) this.#take();
  }

  /** What has come, for as long as it is its turn. */
  #take(): void {
    while (!this.#isPaused && !this.#stream.destroyed && this.#takeOne()) {
      const turn = this.#breathe();
      if (!turn) continue;
      this.#isWaiting = true;
      void turn.then(() => {
        this.#isWaiting = false;
        this.#take();
      });
      return;
    }
    if (!this.#isPaused) this.#stream.resume();
  }

  #takeOne(): boolean {
    try {
      const message = this.#reader.next();
      if (!message) return false;
      this.#packets++;
      this.#handlers.onPacket(decodePacket(message));
      return true;
    } catch (error) {
      this.destroy(error as Error);
      return false;
    }
  }

  destroy(error?: Error): void {
    this.#error ??= error;
    this.#stream.destroy();
  }
}
