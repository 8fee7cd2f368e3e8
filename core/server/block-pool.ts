/** Blocks that long answers are put together in, each used again for the next one: made anew they would be most of the garbage that a list leaves behind. */
export class BlockPool {
  readonly #bytes: number;
  readonly #keptMax: number;
  readonly #free: Buffer[] = [];

  /** Blocks of `bytes` each, of which `keptMax` are kept while nobody needs them. */
  constructor(bytes: number, keptMax: number) {
    this.#bytes = bytes;
    this.#keptMax = keptMax;
  }

  /** Lends a block to `work`. Whoever was given its bytes must have read them when that resolves, unless `signal` has aborted by then: what was under way may go on reading. */
  async lend(signal: AbortSignal, work: (block: Buffer) => Promise<void>): Promise<void> {
    const block = this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
    await work(block);
    if (!signal.aborted && this.#free.length < this.#keptMax) this.#free.push(block);
  }
}
