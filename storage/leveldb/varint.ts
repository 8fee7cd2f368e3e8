/** Reads LevelDB's numbers and texts one after the other. Throws RangeError behind the end. */
export class Cursor {
  readonly #bytes: Uint8Array;
  #at: number;
  readonly #end: number;

  constructor(bytes: Uint8Array, { from = 0, to = bytes.length }: { readonly from?: number; readonly to?: number } = {}) {
    this.#bytes = bytes;
    this.#at = from;
    this.#end = to;
  }

  get at(): number { return this.#at; }

  get atEnd(): boolean { return this.#at >= this.#end; }

  /** Seven bits in a byte, the lowest first. */
  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      if (this.atEnd || factor > 2 ** 49) throw new RangeError("no number here");
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  bytes(length: number): Uint8Array {
    if (length > this.#end - this.#at) throw new RangeError("behind the end");
    return this.#bytes.subarray(this.#at, (this.#at += length));
  }

  /** With its length before it. */
  text(): Uint8Array { return this.bytes(this.number()); }
}
