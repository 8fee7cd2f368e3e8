/**
 * gRPC's framing: messages in a byte stream, each with a byte that says whether it is compressed and four that say how long it is.
 *
 *   stream.write(grpcFrame(message));
 *   const reader = new GrpcFrameReader({ bytesMax: 4 * 1024 * 1024 });
 *   stream.on("data", (chunk) => { for (const message of reader.take(chunk)) … });
 *
 * API: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
export const GRPC_PREFIX_BYTES = 5;

/** Writes the prefix of a message of `length` bytes into the first bytes of `into`. */
export function writeGrpcPrefix(into: Buffer, length: number): void {
  into[0] = 0;
  into.writeUInt32BE(length, 1);
}

/** The peer does not speak gRPC, or sends more than it may. */
export class GrpcFrameError extends Error {
  override readonly name = "GrpcFrameError";
}

/** Cuts a byte stream into messages. A message that came in one piece is a view of that piece, not a copy. */
export class GrpcFrameReader {
  readonly #bytesMax: number;
  #pieces: Buffer[] = [];
  #length = 0;
  /** How long all of `#pieces` must be before another look at them is worth it. */
  #wanted = GRPC_PREFIX_BYTES;

  constructor({ bytesMax }: { readonly bytesMax: number }) {
    this.#bytesMax = bytesMax;
  }

  /** What is held of a message that has not come whole. Never more than `bytesMax`, the prefix and one chunk. */
  get heldBytes(): number { return this.#length; }

  /** The messages that `chunk` completes. Throws GrpcFrameError; after that nothing more can be read. */
  *take(chunk: Buffer): Iterable<Buffer> {
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#wanted) return;
    let rest = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces, this.#length);
    while (rest.length >= GRPC_PREFIX_BYTES) {
      const end = GRPC_PREFIX_BYTES + this.#lengthOf(rest);
      if (rest.length < end) break;
      yield rest.subarray(GRPC_PREFIX_BYTES, end);
      rest = rest.subarray(end);
    }
    this.#wanted = rest.length < GRPC_PREFIX_BYTES ? GRPC_PREFIX_BYTES : GRPC_PREFIX_BYTES + this.#lengthOf(rest);
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
  }

  #lengthOf(frame: Buffer): number {
    if (frame[0] !== 0) throw new GrpcFrameError(`a message with compression flag ${frame[0]}, though none was agreed on`);
    const length = frame.readUInt32BE(1);
    if (length > this.#bytesMax) throw new GrpcFrameError(`a message of ${length} bytes: at most ${this.#bytesMax} are allowed`);
    return length;
  }
}
