/** The first of many, by an order. What was pushed may go stale: it is dropped when it comes to the top. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;
  readonly #isStale: (item: T) => boolean;

  constructor({ before, isStale }: { readonly before: (a: T, b: T) => boolean; readonly isStale: (item: T) => boolean }) {
    this.#before = before;
    this.#isStale = isStale;
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#before(items[at]!, items[parent]!)) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  peek(): T | undefined {
    while (this.#items.length > 0 && this.#isStale(this.#items[0]!)) this.#removeFirst();
    return this.#items[0];
  }

  pop(): T | undefined {
    const first = this.peek();
    if (first !== undefined) this.#removeFirst();
    return first;
  }

  #removeFirst(): void {
    const items = this.#items;
    const last = items.pop()!;
    if (items.length === 0) return;
    items[0] = last;
    for (let at = 0; ; ) {
      let first = at;
      for (const below of [2 * at + 1, 2 * at + 2]) if (below < items.length && this.#before(items[below]!, items[first]!)) first = below;
      if (first === at) return;
      this.#swap(at, first);
      at = first;
    }
  }

  #swap(a: number, b: number): void {
    const items = this.#items;
    [items[a], items[b]] = [items[b]!, items[a]!];
  }
}
