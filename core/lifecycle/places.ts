/**
 * So many at a time: whoever comes later waits for a place, in the order in which they came, as long as it is wanted.
 *
 *   await places.take(signal);
 *   try { … } finally { places.give(); }
 */
export class Places {
  #free: number;
  readonly #urgent = new Set<() => void>();
  readonly #waiting = new Set<() => void>();

  constructor(count: number) { this.#free = count; }

  /** `urgent`: goes before those that are not. Throws the signal's reason if that comes before its turn. */
  async take(signal: AbortSignal, { urgent = false }: { readonly urgent?: boolean } = {}): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) return void this.#free--;
    const queue = urgent ? this.#urgent : this.#waiting;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const quit = (): void => { if (queue.delete(resolve)) reject(signal.reason); };
    queue.add(resolve);
    signal.addEventListener("abort", quit, { once: true });
    await promise.finally(() => signal.removeEventListener("abort", quit));
  }

  /** One place, to whoever waits next. */
  give(): void {
    const queue = this.#urgent.size > 0 ? this.#urgent : this.#waiting;
    const [next] = queue;
    if (next === undefined) return void this.#free++;
    queue.delete(next);
    next();
  }
}
