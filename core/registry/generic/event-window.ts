/**
 * The last events of one resource: a watch may start after any of them, where another ended or a list was made.
 *
 *   … forgotten ──▶ oldest │ event │ event │ … │ newest
 *
 * A client has 75 s to come back, as at upstream's watch cache, however much happens meanwhile: a burst of thousands of pods must not tell everybody who lags to list them
 * all again. Less long only where what is remembered takes much memory, and longer where it takes little.
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
/** However large they are, so many remain. */
const EVENTS_MIN = 100;
/** An event beside the version that it holds. */
const EVENT_BYTES = 100;
/** One version in so many is measured. */
const MEASURED_EVERY = 16;

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

  constructor(revision: Revision) {
    this.#oldest = revision;
  }

  /** Watches may start after any revision ≥ this one. */
  get oldest(): Revision { return this.#oldest; }

  get #size(): number { return this.#past.length - this.#first; }

  /** What happened up to `revision` is not remembered. */
  begin(revision: Revision): void { this.#oldest = revision; }

  push(change: CacheEvent, nowMs: number): void {
    const bytes = EVENT_BYTES + this.#bytesHeld(change);
    this.#past.push({ change, bytes, atMs: nowMs });
    this.#bytes += bytes;
    this.forgetOld(nowMs);
  }

  forgetOld(nowMs: number): void {
    while (this.#size > EVENTS_MIN) {
      const oldest = this.#past[this.#first]!;
      const lasting = this.#size <= LASTING_EVENTS && this.#bytes <= LASTING_BYTES;
      if (lasting || (nowMs - oldest.atMs <= FRESH_MS && this.#bytes <= BYTES_MAX)) break;
      this.#oldest = oldest.change.entry.revision;
      this.#bytes -= oldest.bytes;
      this.#past[this.#first++] = undefined;
    }
    if (this.#first < 1024 || this.#first < this.#past.length / 2) return;
    this.#past = this.#past.slice(this.#first);
    this.#first = 0;
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

  /** Of the version that nothing else needs from now on: the one before, or the last one of what was deleted. About: only some are measured. */
  #bytesHeld({ type, entry, previous }: CacheEvent): number {
    const version = type === "DELETED" ? entry : previous;
    if (!version) return 0;
    if (this.#held++ % MEASURED_EVERY === 0) {
      const bytes = version.jsonLength ?? jsonText(version.object).length;
      this.#averageBytes = this.#averageBytes === 0 ? bytes : (this.#averageBytes * 3 + bytes) / 4;
    }
    return this.#averageBytes;
  }
}
