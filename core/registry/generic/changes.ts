/**
 * What happens to a resource after a revision, for one watcher:
 *
 *   const changes = new Changes(cache, { after, signal, topic });    listens from here on: nothing is missed
 *   while (!changes.isOver) {
 *     const batch = changes.take();
 *     if (batch) …
 *     else await changes.happens();
 *   }
 *   changes.stop();
 *
 * No async generator: of those each event would pass several promises more for each of a thousand watchers.
 */
import type { Revision } from "../../../storage/store.ts";
import type { CacheEvent, Topic } from "./audience.ts";
import type { ResourceCache } from "./resource-cache.ts";

/** Events a consumer may lag behind before its watch is ended: bounds memory when a client stops reading. */
const LAG_MAX = 16_384;
/** And bytes of their JSON, for objects may be of a megabyte: half as many as all windows together remember (event-window.ts), but so many events however large they are. */
const LAG_BYTES_MAX = 32 * 1024 * 1024;
const LAG_EVENTS_MIN = 100;

interface Options {
  readonly after: Revision;
  readonly signal: AbortSignal;
  /** Then those of it, and perhaps others that had happened already. */
  readonly topic?: Topic | undefined;
}

export class Changes {
  readonly #signal: AbortSignal;
  readonly #stop: () => void;
  #pending: CacheEvent[];
  #bytes = 0; // of versions that are held until they are taken
  #isLost = false;
  #waiting: (() => void) | undefined;

  /** Throws 410 for a forgotten revision. */
  constructor(cache: ResourceCache, { after, signal, topic }: Options) {
    this.#signal = signal;
    this.#pending = cache.after(after);
    cache.counts.initial += this.#pending.length;
    const stop = cache.listen((event, bytes) => {
      if (event.entry.revision <= after) return; // of a watch that starts in the future
      this.#pending.push(event);
      this.#bytes += bytes;
      if (this.#pending.length > LAG_MAX || (this.#bytes > LAG_BYTES_MAX && this.#pending.length > LAG_EVENTS_MIN)) {
        this.#isLost = true;
        cache.counts.terminated++;
        this.#pending = [];
        stop();
      }
      this.wake();
    }, topic);
    const onAbort = (): void => this.wake();
    signal.addEventListener("abort", onAbort, { once: true });
    this.#stop = () => {
      stop();
      signal.removeEventListener("abort", onAbort);
    };
  }

  /** The signal has aborted, or the consumer lags too far behind: what it was given last is where it may begin again, as at upstream. */
  get isOver(): boolean { return this.#isLost || this.#signal.aborted; }

  /** What has happened since, if anything. */
  take(): readonly CacheEvent[] | undefined {
    if (this.#pending.length === 0) return undefined;
    const batch = this.#pending;
    this.#pending = [];
    this.#bytes = 0;
    return batch;
  }

  /** Resolves when there may be something to take, it is over, or somebody calls `wake`. Not while there is something: `take` first. */
  happens(): Promise<void> { return new Promise((resolve) => (this.#waiting = resolve)); }

  wake(): void { this.#waiting?.(); }

  stop(): void { this.#stop(); }
}
