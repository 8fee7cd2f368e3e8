/**
 * Results that are still good the next time: what was made of the same things is not made again, and is the same object, so that those who look at it can tell.
 *
 *   const sum = memory.recall("sum", [a, b], () => a.n + b.n);
 *   memory.turn();                                       at the end of a round: what nobody recalled in it is forgotten
 */
import type { Pausing } from "../../core/lifecycle/breather.ts";

export class Memory {
  #before = new Map<string, Entry>();
  #now = new Map<string, Entry>();

  /** `key` says what is made, `of` all that it depends on: compared one by one, by identity. */
  recall<T>(key: string, of: readonly unknown[], make: () => T): T {
    return this.#keep(key, this.#known(key, of) ?? { of, made: make() });
  }

  /** What takes longer to make. */
  *recallInPieces<T>(key: string, of: readonly unknown[], make: () => Pausing<T>): Pausing<T> {
    return this.#keep(key, this.#known(key, of) ?? { of, made: yield* make() });
  }

  #known(key: string, of: readonly unknown[]): Entry | undefined {
    const known = this.#now.get(key) ?? this.#before.get(key);
    return known && sameThings(known.of, of) ? known : undefined;
  }

  #keep<T>(key: string, entry: Entry): T {
    this.#now.set(key, entry);
    return entry.made as T;
  }

  turn(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }
}

interface Entry { readonly of: readonly unknown[]; readonly made: unknown }

function sameThings(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
