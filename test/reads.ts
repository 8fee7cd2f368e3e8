/**
 * How often things are looked at, for tests that work does not grow faster than what it is done on.
 *
 *   expect(growth((n, reads) => plan(reads.of(items(n))))).toBeLessThan(3);      twice as many items: twice the looks, not four times
 */
export class Reads {
  count = 0;

  /** The same items, each of whose fields counts when it is read. */
  of<T extends object>(items: readonly T[]): T[] {
    return items.map((item) => new Proxy(item, { get: (from, field) => { this.count++; return Reflect.get(from, field) as unknown; } }));
  }
}

/** By how much the looks grow from `n` items to twice as many. */
export function growth(work: (n: number, reads: Reads) => void, n = 500): number {
  const [some, twice] = [n, 2 * n].map((size) => {
    const reads = new Reads();
    work(size, reads);
    return reads.count;
  }) as [number, number];
  return twice / some;
}
