/**
 * Places that several share without knowing of each other: each may have as many as are left free for the others. So one alone has half of them, two have a third each, and whoever comes next finds some.
 *
 *   if (!places.take(who)) return;
 *   try { … } finally { places.give(who); }
 *
 * Source: Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches, 1998
 */
export class FairPlaces {
  #free: number;
  readonly #held = new Map<string, number>();

  constructor(count: number) { this.#free = count; }

  /** Whether there is a place for them. */
  has(who: string): boolean { return (this.#held.get(who) ?? 0) < this.#free; }

  /** False: they have their share already. */
  take(who: string): boolean {
    if (!this.has(who)) return false;
    this.#held.set(who, (this.#held.get(who) ?? 0) + 1);
    this.#free--;
    return true;
  }

  give(who: string): void {
    const held = this.#held.get(who) ?? 0;
    if (held > 1) this.#held.set(who, held - 1);
    else this.#held.delete(who);
    this.#free++;
  }
}
