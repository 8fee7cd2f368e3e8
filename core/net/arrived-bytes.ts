/**
 * The beginning of a message that comes in pieces, until it is whole. Pieces may be as small as their sender likes: each costs what it weighs, not what came before it.
 *
 *   const arrived = new ArrivedBytes();
 *   arrived.add(chunk);
 *   if (arrived.headEnd < 0) return;          more is to come
 *   const rest = arrived.take();              all of it; nothing is kept
 */
import { headEnd } from "./head-end.ts";

const NOTHING = Buffer.alloc(0);
/** So many bytes of an end of lines may have come before the rest of it. */
const SEAM_BYTES = 2;

export class ArrivedBytes {
  #bytes: Buffer = NOTHING;
  /** Begins with `#bytes`, where that is more than one piece. */
  #store: Buffer = NOTHING;
  /** There is no head that ends before. */
  #searched = 0;

  get bytes(): Buffer { return this.#bytes; }

  /** Keeps `chunk` itself if it is the first. */
  add(chunk: Buffer): void {
    const before = this.#bytes.length, length = before + chunk.length;
    if (before === 0) this.#bytes = chunk;
    else {
      if (length > this.#store.length) {
        this.#store = Buffer.allocUnsafe(2 * length);
        this.#bytes.copy(this.#store);
      }
      chunk.copy(this.#store, before);
      this.#bytes = this.#store.subarray(0, length);
    }
  }

  /** Where the first head ends; -1: not yet. */
  get headEnd(): number {
    const end = headEnd(this.#bytes, Math.max(0, this.#searched - SEAM_BYTES));
    if (end < 0) this.#searched = this.#bytes.length;
    return end;
  }

  take(): Buffer {
    const bytes = this.#bytes;
    this.#bytes = this.#store = NOTHING;
    this.#searched = 0;
    return bytes;
  }
}
