/**
 * The current rows: by key, and in the order of keys.
 *
 * In order they lie in chunks, so that putting one among 100,000 others moves a few hundred, not all of them.
 */
import { compareKeys, keyOrder } from "../keys.ts";
import type { Row } from "../store.ts";

/** Rows of a chunk, at most. A full one is cut in half. */
const CHUNK_MAX = 512;

/** What is known of a row's value. */
export interface Weight {
  /** About the bytes of its JSON. */
  readonly size: number;
  /** How much it takes of what all rows may take together. */
  readonly room: number;
}

interface Slot {
  row: Row;
  weight: Weight;
}

export const NOTHING: Weight = { size: 0, room: 0 };

/** A place in the order: before the row at `at` of chunk `chunk`. */
interface Place {
  readonly chunk: number;
  readonly at: number;
}

export class Rows {
  readonly #byKey = new Map<string, Slot>();
  readonly #chunks: Slot[][] = []; // none is empty
  #room = 0; // the sum of what all take

  get(key: string): Row | undefined {
    return this.#byKey.get(key)?.row;
  }

  /** Of all rows together. */
  get room(): number { return this.#room; }

  /** What was given with the row of `key`; nothing if there is none. */
  weightOf(key: string): Weight {
    return this.#byKey.get(key)?.weight ?? NOTHING;
  }

  set(row: Row, weight: Weight): void {
    const slot = this.#byKey.get(row.key);
    this.#room += weight.room - (slot?.weight.room ?? 0);
    if (slot) {
      slot.row = row;
      slot.weight = weight;
      return;
    }
    const added = { row, weight };
    this.#byKey.set(row.key, added);
    const order = keyOrder(row.key);
    const place = this.#find((key) => order(key) > 0);
    // Between two chunks the row goes to the end of the first: rows that arrive in order fill one chunk after the other.
    const chunk = place.at === 0 && place.chunk > 0 ? place.chunk - 1 : place.chunk;
    const slots = this.#chunks[chunk];
    if (!slots) {
      this.#chunks.push([added]);
      return;
    }
    slots.splice(chunk === place.chunk ? place.at : slots.length, 0, added);
    if (slots.length > CHUNK_MAX) this.#chunks.splice(chunk + 1, 0, slots.splice(CHUNK_MAX / 2));
  }

  delete(key: string): void {
    this.#room -= this.weightOf(key).room;
    if (!this.#byKey.delete(key)) return;
    const order = keyOrder(key);
    const { chunk, at } = this.#find((other) => order(other) >= 0);
    const slots = this.#chunks[chunk]!;
    slots.splice(at, 1);
    const next = this.#chunks[chunk + 1];
    if (slots.length === 0) this.#chunks.splice(chunk, 1);
    else if (next && slots.length + next.length < CHUNK_MAX / 2) slots.push(...this.#chunks.splice(chunk + 1, 1)[0]!);
  }

  /** Rows whose keys start with `prefix` and come after `after`. Do not write while iterating. */
  *range(prefix: string, after: string | undefined): Generator<Row> {
    let { chunk, at } = this.#start(prefix, after);
    for (; chunk < this.#chunks.length; chunk++, at = 0) {
      const slots = this.#chunks[chunk]!;
      for (; at < slots.length; at++) {
        const { row } = slots[at]!;
        if (!row.key.startsWith(prefix)) return;
        yield row;
      }
    }
  }

  /** How many rows `range` would yield. */
  count(prefix: string, after: string | undefined): number {
    const end = this.#find((key) => !key.startsWith(prefix) && compareKeys(key, prefix) > 0);
    return Math.max(0, this.#rank(end) - this.#rank(this.#start(prefix, after)));
  }

  #start(prefix: string, after: string | undefined): Place {
    if (after === undefined || compareKeys(after, prefix) < 0) return this.#find((key) => compareKeys(key, prefix) >= 0);
    return this.#find((key) => compareKeys(key, after) > 0);
  }

  #rank({ chunk, at }: Place): number {
    let rank = at;
    for (let i = 0; i < chunk; i++) rank += this.#chunks[i]!.length;
    return rank;
  }

  /** The first place whose key is `beyond`, which must be false up to some key and true from there on. */
  #find(beyond: (key: string) => boolean): Place {
    const chunk = search(this.#chunks.length, (i) => beyond(this.#chunks[i]!.at(-1)!.row.key));
    const slots = this.#chunks[chunk];
    return { chunk, at: slots ? search(slots.length, (i) => beyond(slots[i]!.row.key)) : 0 };
  }
}

/** The first of `count` numbers for which `test` is true, or `count`. */
export function search(count: number, test: (i: number) => boolean): number {
  let low = 0;
  for (let high = count; low < high; ) {
    const middle = (low + high) >>> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
