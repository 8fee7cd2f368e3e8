/**
 * Chunks of HTTP/1.1 bodies with their length before them. Those of watchers are made once for all that are sent the same bytes one after another:
 * five hundred watchers then cost five hundred writes, and no copy each.
 */
interface Framed { readonly bytes: Uint8Array; readonly frame: Buffer }

/** Watchers of different things are served in between. */
const FRAMES_MAX = 8;
/** Of all that are kept, but for the latest. */
const BYTES_MAX = 8 * 1024 * 1024;

export class ChunkFrames {
  readonly #latest: Framed[] = [];
  #bytes = 0;

  of(bytes: Uint8Array): Buffer {
    const known = this.#latest.find((one) => one.bytes === bytes);
    if (known) return known.frame;
    const head = `${bytes.length.toString(16)}\r\n`;
    const frame = Buffer.allocUnsafeSlow(head.length + bytes.length + 2);
    frame.write(head, "latin1");
    frame.set(bytes, head.length);
    frame.write("\r\n", head.length + bytes.length, "latin1");
    this.#latest.unshift({ bytes, frame });
    this.#bytes += frame.length;
    while (this.#latest.length > FRAMES_MAX || (this.#latest.length > 1 && this.#bytes > BYTES_MAX)) this.#bytes -= this.#latest.pop()!.frame.length;
    return frame;
  }
}

const LENGTH_DIGITS = 8;

/** What a block needs around the bytes that `framedInPlace` makes a chunk of. */
export const CHUNK_ROOM = { before: LENGTH_DIGITS + 2, after: 2 } as const;

/** The chunk of `length` bytes that lie in `block` after the room before them. */
export function framedInPlace(block: Buffer, length: number): Buffer {
  const end = CHUNK_ROOM.before + length;
  block.write(`${length.toString(16).padStart(LENGTH_DIGITS, "0")}\r\n`, "latin1");
  block.write("\r\n", end, "latin1");
  return block.subarray(0, end + CHUNK_ROOM.after);
}
