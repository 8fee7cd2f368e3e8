/** Entries of a resource in the order of their keys, each key once: what lists are made of. It is the store's order, where a list that has pages goes on. */
import { compareKeys, keyOrder } from "../../../storage/keys.ts";
import type { Cached } from "./cached.ts";

/** The character that follows "/". */
const AFTER_SLASH = "0";

export function sortedByKey(entries: Iterable<Cached>): Cached[] { return [...entries].sort((a, b) => compareKeys(a.key, b.key)); }

/** Where the entry of `key` is, or would be. */
function placeOf(sorted: readonly Cached[], key: string): number {
  const order = keyOrder(key);
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order(sorted[middle]!.key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Those whose key starts with `prefix`, which ends in a slash: a copy, as they are now. */
export function startingWith(sorted: readonly Cached[], prefix: string): readonly Cached[] {
  return sorted.slice(placeOf(sorted, prefix), placeOf(sorted, prefix.slice(0, -1) + AFTER_SLASH));
}

/** In place of the entry of the same key, if there is one. */
export function insert(sorted: Cached[], entry: Cached): void {
  const last = sorted.at(-1);
  if (!last || compareKeys(last.key, entry.key) < 0) return void sorted.push(entry); // of entries in order each is
  const at = placeOf(sorted, entry.key);
  if (sorted[at]?.key === entry.key) sorted[at] = entry;
  else sorted.splice(at, 0, entry);
}

export function remove(sorted: Cached[], key: string): void {
  const at = placeOf(sorted, key);
  if (sorted[at]?.key === key) sorted.splice(at, 1);
}
