/** Entries of a resource in the order of their keys, each key once: what lists are made of. */
import type { Cached } from "./cached.ts";

/** Comes after every character that a key can have. */
const LAST_CHARACTER = "\uffff";

export function sortedByKey(entries: Iterable<Cached>): Cached[] { return [...entries].sort((a, b) => (a.key < b.key ? -1 : 1)); }

/** Where the entry of `key` is, or would be. */
function placeOf(sorted: readonly Cached[], key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Those whose key starts with `prefix`: a copy, as they are now. */
export function startingWith(sorted: readonly Cached[], prefix: string): readonly Cached[] {
  return sorted.slice(placeOf(sorted, prefix), placeOf(sorted, prefix + LAST_CHARACTER));
}

/** In place of the entry of the same key, if there is one. */
export function insert(sorted: Cached[], entry: Cached): void {
  const last = sorted.at(-1);
  if (!last || last.key < entry.key) return void sorted.push(entry); // of entries in order each is
  const at = placeOf(sorted, entry.key);
  if (sorted[at]?.key === entry.key) sorted[at] = entry;
  else sorted.splice(at, 0, entry);
}

export function remove(sorted: Cached[], key: string): void {
  const at = placeOf(sorted, key);
  if (sorted[at]?.key === key) sorted.splice(at, 1);
}
