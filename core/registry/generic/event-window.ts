/**
 * The last events of one resource: a watch may start after any of them, where another ended or a list was made.
 *
 *   … forgotten ──▶ oldest │ event │ event │ … │ newest
 *
 * A client has 75 s to come back, as at upstream's watch cache, however much happens meanwhile: a burst of thousands of pods must not tell everybody who lags to list them
 * all again. Less long only where what is remembered takes much memory, and longer where it takes little, or all windows together do.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/storage/cacher/watch_cache.go (DefaultEventFreshDuration)
 */
import { jsonText } from "../../api/codec/json.ts";
import { resourceVersionTooOld } from "../../api/meta/status-error.ts";
import type { Revision } from "../../../storage/store.ts";
import type { CacheEvent } from "./audience.ts";

/** What a client may need to read a list and to begin its watch. */
const FRESH_MS = 75_000;
/** Bytes of JSON at most, however fresh, of versions that have been overwritten or deleted: decoded they take up to five times that. */
const BYTES_MAX = 6 * 1024 * 1024;
/** What is not fresh any more is kept as well, up to so many events and bytes. */
const LASTING_EVENTS = 1024;
const LASTING_BYTES = 4 * 1024 * 1024;
/** However large they are, so many remain, as long as all windows together take no more than ALL_BYTES_MAX. */
const EVENTS_MIN = 100;
/** A sixteenth of a small machine's memory: objects may be of a megabyte, and of many kinds. Beyond it each window has what is fresh, and so many bytes. */
const ALL_BYTES_MAX = 64 * 1024 * 1024;
const BYTES_MIN = 1024 * 1024;
/** An event beside the version that it holds. */
const EVENT_BYTES = 100;
/** One version in so many is measured. */
const MEASURED_EVERY = 16;

/** What windows that share it take together. */
export interface WindowBytes { sum: number }

interface Past {
  readonly change: CacheEvent;
  readonly bytes: number;
  readonly atMs: number;
}

export class EventWindow {
  #past: (Past | undefined)[] = []; // from #first on; before it there is nothing any more, which is cut off now and then
  #first = 0;
  #bytes = 0;
  #held = 0; // versions that were, so far, held by the window alone
  #averageBytes = 0;
  #oldest: Revision;
  readonly #all: WindowBytes;

  constructor(revision: Revision, all: WindowBytes = { sum: 0 }) {
    this.#oldest = revision;
    this.#all = all;
  }

  /** Watches may start after any revision ≥ this one. */
  get oldest(): Revision { return this.#oldest; }

  get #size(): number { return this.#past.length - this.#first; }

  /** What happened up to `revision` is not remembered. */
  begin(revision: Revision): void { this.#oldest = revision; }

  /** Returns how many bytes it takes to remember that. */
  push(change: CacheEvent, nowMs: number): number {
    const bytes = EVENT_BYTES + this.#bytesHeld(change);
    this.#past.push({ change, bytes, atMs: nowMs });
    this.#count(bytes);
    this.forgetOld(nowMs);
    return bytes;
  }

  forgetOld(nowMs: number): void {
    while (this.#size > 1) {
      const oldest = this.#past[this.#first]!;
      if (this.#isKept(nowMs - oldest.atMs)) break;
      this.#oldest = oldest.change.entry.revision;
      this.#count(-oldest.bytes);
      this.#past[this.#first++] = undefined;
    }
    if (this.#first < 1024 || this.#first < this.#past.length / 2) return;
    this.#past = this.#past.slice(this.#first);
    this.#first = 0;
  }

  /** Whether the oldest is, of that age. */
  #isKept(ageMs: number): boolean {
    if (ageMs <= FRESH_MS && this.#bytes <= BYTES_MAX) return true;
    if (this.#all.sum > ALL_BYTES_MAX) return this.#size <= LASTING_EVENTS && this.#bytes <= BYTES_MIN;
    return this.#size <= EVENTS_MIN || (this.#size <= LASTING_EVENTS && this.#bytes <= LASTING_BYTES);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#all.sum += bytes;
  }

  /** Remembered events after `revision`. Throws 410 if some of those are forgotten. */
  after(revision: Revision): CacheEvent[] {
    if (revision < this.#oldest) throw resourceVersionTooOld(revision, this.#oldest);
    let from = this.#past.length;
    while (from > this.#first && this.#past[from - 1]!.change.entry.revision > revision) from--;
    return this.#past.slice(from).map((one) => one!.change);
  }

  /** The event of that revision, if there was one lately: what is asked for has just happened. */
  at(revision: Revision): CacheEvent | undefined {
    let i = this.#past.length - 1;
    while (i > this.#first && this.#past[i]!.change.entry.revision > revision) i--;
    const change = this.#past[i]?.change;
    return change?.entry.revision === revision ? change : undefined;
  }

  *[Symbol.iterator](): Iterable<CacheEvent> & Generator<CacheEvent> {
    for (let i = this.#first; i < this.#past.length; i++) yield this.#past[i]!.change;
  }

  /** Of the version that nothing else needs from now on: the one before, or the last one of what was deleted. About: where its JSON is not there, only some are measured. */
  #bytesHeld({ type, entry, previous }: CacheEvent): number {
    const version = type === "DELETED" ? entry : previous;
    if (!version) return 0;
    const known = version.jsonLength;
    if (this.#held++ % MEASURED_EVERY === 0) {
      const bytes = known ?? jsonText(version.object).length;
      this.#averageBytes = this.#averageBytes === 0 ? bytes : (this.#averageBytes * 3 + bytes) / 4;
    }
    return known ?? this.#averageBytes;
  }
}
