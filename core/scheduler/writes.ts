/** Writes that nobody waits for one by one: how many are under way, when there is room for another, and when all are done. */
export class Writes {
  readonly #max: number;
  readonly #running = new Set<Promise<void>>();
  #room: PromiseWithResolvers<void> | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number { return this.#running.size; }

  /** `work` is one that does not fail. It may be one too many: who does not want that waits for room before. */
  add(work: Promise<void>): void {
    const running = work.finally(() => {
      this.#running.delete(running);
      if (this.#running.size < this.#max) this.#room?.resolve();
    });
    this.#running.add(running);
  }

  /** Undefined: there is room now. */
  room(): Promise<void> | undefined {
    if (this.#running.size < this.#max) return undefined;
    this.#room = Promise.withResolvers<void>();
    return this.#room.promise;
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }
}
