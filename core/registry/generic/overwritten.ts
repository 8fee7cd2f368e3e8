/**
 * Versions that were overwritten lately: they have their bytes for a while yet. Who wrote one is answered with it a moment later, and watchers that are served in turn, or read slowly,
 * are still to be told of it.
 */
import type { Cached } from "./cached.ts";

/** Of all resources together: some thousand pods. */
const BYTES_MAX = 4 * 1024 * 1024;
/** Larger ones would leave no room for others. */
const ENTRY_BYTES_MAX = BYTES_MAX / 64;

export class Overwritten {
  #entries: { readonly entry: Cached; readonly bytes: number }[] = []; // from #first on
  #first = 0;
  #bytes = 0;

  get size(): number { return this.#entries.length - this.#first; }

  add(entry: Cached): void {
    const bytes = entry.bytesHeld;
    if (bytes === 0) return;
    if (bytes > ENTRY_BYTES_MAX) return void entry.forget();
    this.#entries.push({ entry, bytes });
    this.#bytes += bytes;
    while (this.#bytes > BYTES_MAX) this.#forgetOldest();
  }

  /** As ResourceCache.forgetUnused; what has no bytes is not kept for them any more. */
  forgetUnused(): number {
    let forgotten = 0;
    for (const { entry } of this.#entries.slice(this.#first)) forgotten += entry.forgetUnused();
    this.#entries = this.#entries.slice(this.#first).filter(({ entry }) => entry.bytesHeld > 0);
    this.#first = 0;
    this.#bytes = this.#entries.reduce((sum, { bytes }) => sum + bytes, 0);
    return forgotten;
  }

  #forgetOldest(): void {
    const { entry, bytes } = this.#entries[this.#first++]!;
    entry.forget();
    this.#bytes -= bytes;
    if (this.#first < this.#entries.length / 2) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
  }
}
