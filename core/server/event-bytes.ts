/**
 * Watch events as bytes, once for all watchers that see the same: what one event is in an encoding, and what a batch of them is.
 *
 * Watchers of one resource are woken together and take the same events, so the second of five hundred finds what the first has made. Only the latest are kept.
 */
import type { WatchItem } from "./answer.ts";
import type { Cached } from "../registry/generic/cached.ts";

/** Of one encoding of one resource in one version: who encodes the same event must get the same bytes. */
export type Encoding = string;

interface Batch { readonly encoding: Encoding; readonly items: readonly WatchItem[]; readonly bytes: Uint8Array | readonly Uint8Array[]; readonly sizes: readonly number[] }

/** Watchers are served within a turn or two of the event loop: what is older is of no use to any. */
const EVENTS_MAX = 1_024;
const BYTES_MAX = 8 * 1024 * 1024;
/** And so many bytes of those. */
const BATCHES_MAX = 8;
/** More than this are initial events: hardly two watchers begin in the same turn. */
export const SHARED_ITEMS_MAX = 128;

export class EventBytes {
  readonly #events = new Map<Cached, Map<string, Uint8Array>>();
  #bytes = 0;
  readonly #batches: (Batch & { readonly bytes: Uint8Array })[] = [];
  #batchBytes = 0;

  /** All `items`, one after another; at most SHARED_ITEMS_MAX. Those that are too long to be one are as many. `sized` is told of each how many bytes it is. */
  of(encoding: Encoding, items: readonly WatchItem[], encode: (item: WatchItem) => Uint8Array, sized?: (bytes: number) => void): Uint8Array | readonly Uint8Array[] {
    if (items.length === 1) {
      const bytes = this.#one(encoding, items[0]!, encode);
      sized?.(bytes.length);
      return bytes;
    }
    const { bytes, sizes } = this.#batches.find((batch) => batch.encoding === encoding && isSame(batch.items, items)) ?? this.#batch(encoding, items, encode);
    if (sized) for (const size of sizes) sized(size);
    return bytes;
  }

  #batch(encoding: Encoding, items: readonly WatchItem[], encode: (item: WatchItem) => Uint8Array): Batch {
    const all = items.map((item) => this.#one(encoding, item, encode));
    const sizes = all.map(({ length }) => length), length = sizes.reduce((sum, size) => sum + size, 0);
    if (length > BYTES_MAX) return { encoding, items, bytes: all, sizes };
    const made = { encoding, items, bytes: Buffer.concat(all), sizes };
    this.#batches.unshift(made);
    this.#batchBytes += length;
    while (this.#batches.length > BATCHES_MAX || this.#batchBytes > BYTES_MAX) this.#batchBytes -= this.#batches.pop()!.bytes.length;
    return made;
  }

  #one(encoding: Encoding, item: WatchItem, encode: (item: WatchItem) => Uint8Array): Uint8Array {
    const key = `${item.type} ${encoding}`;
    const known = this.#events.get(item.entry)?.get(key);
    if (known) return known;
    const bytes = encode(item);
    const all = this.#events.get(item.entry) ?? new Map<string, Uint8Array>();
    all.set(key, bytes);
    this.#events.set(item.entry, all);
    this.#bytes += bytes.length;
    for (const [entry, old] of this.#events) {
      if (this.#events.size <= EVENTS_MAX && this.#bytes <= BYTES_MAX) break;
      this.#events.delete(entry);
      for (const one of old.values()) this.#bytes -= one.length;
    }
    return bytes;
  }
}

function isSame(a: readonly WatchItem[], b: readonly WatchItem[]): boolean {
  return a === b || (a.length === b.length && a.every(({ type, entry }, i) => entry === b[i]!.entry && type === b[i]!.type));
}
