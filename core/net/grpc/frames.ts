/**
 * gRPC's framing: messages in a byte stream, each with a byte that says whether it is compressed and four that say how long it is.
 *
 *   stream.write(grpcFrame(message));
 *   const reader = new GrpcFrameReader({ bytesMax: 4 * 1024 * 1024 });
 *   stream.on("data", (chunk) => {
 *     reader.add(chunk);
 *     for (let message; (message = reader.next()); ) …
 *   });
 *
 * API: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
import { ArrivedBytes } from "../arrived-bytes.ts";

export const GRPC_PREFIX_BYTES = 5;
const NOTHING = Buffer.alloc(0);

/** Writes the prefix of a message of `length` bytes into the first bytes of `into`. */
export function writeGrpcPrefix(into: Buffer, length: number): void {
  into[0] = 0;
  into.writeUInt32BE(length, 1);
}

/** The peer does not speak gRPC, or sends more than it may. */
export class GrpcFrameError extends Error {
  override readonly name = "GrpcFrameError";
}

/** Cuts a byte stream into messages. A message that came in one piece is a view of that piece, not a copy; in pieces as small as their sender likes, it is kept as what it weighs. */
export class GrpcFrameReader {
  readonly #bytesMax: number;
  readonly #arrived = new ArrivedBytes();
  /** Has come before all of `#arrived`. */
  #rest: Buffer = NOTHING;
  /** How much must be there for another message. */
  #wanted = GRPC_PREFIX_BYTES;

  constructor({ bytesMax }: { readonly bytesMax: number }) {
    this.#bytesMax = bytesMax;
  }

  /** What has come and was not taken. */
  get heldBytes(): number { return this.#rest.length + this.#arrived.bytes.length; }

  add(chunk: Buffer): void { this.#arrived.add(chunk); }

  /** Undefined: it has not come whole. Throws GrpcFrameError; after that nothing more can be read. */
  next(): Buffer | undefined {
    for (;;) {
      if (this.heldBytes < this.#wanted) return undefined;
      if (this.#rest.length < this.#wanted) this.#rest = this.#rest.length === 0 ? this.#arrived.take() : Buffer.concat([this.#rest, this.#arrived.take()]);
      const end = GRPC_PREFIX_BYTES + this.#lengthOf(this.#rest);
      this.#wanted = end;
      if (this.#rest.length < end) continue;
      const message = this.#rest.subarray(GRPC_PREFIX_BYTES, end);
      this.#rest = this.#rest.subarray(end);
      this.#wanted = GRPC_PREFIX_BYTES;
      return message;
    }
  }

  #lengthOf(frame: Buffer): number {
    if (frame[0] !== 0) throw new GrpcFrameError(`a message with compression flag ${frame[0]}, though none was agreed on`);
    const length = frame.readUInt32BE(1);
    if (length > this.#bytesMax) throw new GrpcFrameError(`a message of ${length} bytes: at most ${this.#bytesMax} are allowed`);
    return length;
  }
}
