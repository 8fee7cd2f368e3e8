/** Packets over one gRPC stream: either end's HTTP/2 stream, whose back-pressure it passes on. */
import type { Duplex } from "node:stream";
import { GrpcFrameReader } from "../net/grpc/frames.ts";
import { decodePacket, encodePacket, type Packet } from "./packet.ts";

/** Source: grpc-go's default for received messages, which stock peers keep to. */
const PACKET_BYTES_MAX = 4 * 1024 * 1024;
/** Small packets are sent without waiting for room. A peer that makes us send them without end and reads none is cut off. */
const UNSENT_BYTES_MAX = 4 * 1024 * 1024;

export interface PacketHandlers {
  onPacket(packet: Packet): void;
  /** After `hasRoom` was false. */
  onRoom(): void;
  /** Once. Undefined: it ended as it should. */
  onClose(error: Error | undefined): void;
}

export class PacketStream {
  readonly #stream: Duplex;
  #packets = 0;
  #error: Error | undefined;

  constructor(stream: Duplex, { onPacket, onRoom, onClose }: PacketHandlers) {
    this.#stream = stream;
    const reader = new GrpcFrameReader({ bytesMax: PACKET_BYTES_MAX });
    stream.on("data", (chunk: Buffer) => {
      try {
        for (const message of reader.take(chunk)) {
          this.#packets++;
          onPacket(decodePacket(message));
        }
      } catch (error) {
        this.destroy(error as Error);
      }
    });
    stream.on("drain", onRoom);
    stream.on("error", (error) => { this.#error ??= error; });
    stream.on("end", () => { if (!stream.destroyed) stream.end(); });
    stream.on("close", () => onClose(this.#error));
  }

  /** Received so far. */
  get packetCount(): number { return this.#packets; }

  get hasRoom(): boolean { return !this.#stream.writableNeedDrain && this.#stream.writable; }

  send(packet: Exclude<Packet, { type: "unknown" }>): void {
    if (!this.#stream.writable) return; // its close is on its way to us
    this.#stream.write(encodePacket(packet));
    if (this.#stream.writableLength > UNSENT_BYTES_MAX) this.destroy(new Error("the other end of the tunnel does not read"));
  }

  pause(): void { this.#stream.pause(); }
  resume(): void { this.#stream.resume(); }

  destroy(error?: Error): void {
    this.#error ??= error;
    this.#stream.destroy();
  }
}
