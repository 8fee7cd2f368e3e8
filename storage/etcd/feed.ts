/**
 * What happens in etcd, as it happens: one watch of all keys, for all watchers of this process.
 *
 *   etcd ──Watch──▶ history (bounded) ◀── cursors: our watchers (../watch/watch.ts)
 *
 * All keys, because every revision of etcd changes at least one: so each shows up here, and `revision` tells exactly how far we have come, also for a
 * prefix in which nothing happens. (etcd's own progress reports would not do: before v3.4.25 and v3.5.8 they could overtake events.) The price is to
 * receive what other tenants write; a Kubernetes' etcd usually has none.
 *
 * When the stream breaks it is begun again, at the same member or the next, after the last revision that came whole: etcd never splits one.
 * If that was compacted meanwhile, events are lost: history starts anew, and all watchers are told "overrun".
 */
import type { ClientDuplexStream } from "@grpc/grpc-js";
import type { StoreClock } from "../engine.ts";
import { History, type HistoryLimits } from "../mvcc/history.ts";
import { StoreError, type Revision, type StoreEvent, type WatchOptions } from "../store.ts";
import { type WatchBatch, Watchers } from "../watch/watch.ts";
import { meaningOf, type Members } from "./members.ts";
import { WATCH, type WatchEvent, type WatchRequest, type WatchResponse } from "./messages.ts";
import { ALL_KEYS, eventOf } from "./rows.ts";

export interface FeedOptions extends HistoryLimits {
  readonly members: Members;
  readonly clock: StoreClock;
  /** Where it starts. */
  readonly revision: Revision;
  /** The newest revision there is, asked of etcd. */
  readonly newest: () => Promise<Revision>;
  readonly onTrouble: (error: StoreError) => void;
}

/** How long a member may take to begin the stream. */
const BEGIN_MS = 5_000;
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 1_000;
/** Events taken in before watchers get their turn. */
const CHUNK_MAX = 1_000;

/** The stream ended, and so did what it was to continue. */
const LOST = Symbol("lost");

export class Feed {
  readonly #options: FeedOptions;
  readonly #watchers: Watchers;
  readonly #chunk: number;
  #history: History;
  #revision: Revision; // every event up to here is in the history
  #failure: StoreError | undefined; // why there will be no more
  #stopped = false;
  #stopStream = (): void => {};
  #wakePause = (): void => {};
  #life: Promise<void> | undefined;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#revision = options.revision;
    this.#history = new History(options.revision, options);
    this.#chunk = Math.min(CHUNK_MAX, Math.ceil((options.historyRevisionsMax ?? Infinity) / 2));
    const feed = this;
    this.#watchers = new Watchers({
      get revision() { return feed.#revision; },
      get floor() { return feed.#history.floor; },
      get closed() { return feed.#stopped; },
      check: (revision) => feed.#history.check(revision, feed.#revision),
      after: (revision, prefix, max) => feed.#history.after(revision, prefix, max, feed.#revision),
    });
  }

  get revision(): Revision {
    return this.#revision;
  }

  start(): void {
    this.#options.members.onMove(() => this.#stopStream()); // what hangs would be noticed much later
    this.#life = this.#run();
  }

  /** Watchers end with "closed". */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopStream();
    this.#wakePause();
    this.#watchers.wake();
    await this.#life;
  }

  async *watch(options: WatchOptions, signal: AbortSignal): AsyncGenerator<WatchBatch, void, void> {
    try {
      yield* this.#watchers.watch(options, signal);
    } catch (error) {
      throw this.#failure ?? error;
    }
  }

  /** Resolves once everything up to `revision` is in the history, or `signal` aborts. Throws "closed". */
  async reach(revision: Revision, signal: AbortSignal): Promise<void> {
    while (this.#revision < revision && !signal.aborted) {
      if (this.#failure) throw this.#failure;
      if (this.#stopped) throw new StoreError("closed");
      await this.#watchers.next(signal);
    }
  }

  /** Events of one key after `revision`. Throws "compacted" if they are not all known. */
  eventsOf(key: string, revision: Revision): readonly StoreEvent[] {
    this.#history.check(revision, this.#revision);
    return this.#history.after(revision, key, Infinity, this.#revision).events.filter((event) => event.row.key === key);
  }

  /** Forgets what is older. */
  forget(revision: Revision): void {
    this.#history.forget(revision);
  }

  async #run(): Promise<void> {
    const { members, onTrouble } = this.#options;
    let pauseMs = PAUSE_MS_MIN;
    for (let again = false; !this.#stopped; again = true) {
      let begun = false;
      let index: number | undefined;
      try {
        if (again) await this.#checkTime();
        const opened = members.stream(WATCH, { hasleader: "true" }); // a member cut off from the others ends the stream
        index = opened.index;
        if ((await this.#follow(opened.stream, members.endpoint(index), () => { begun = true; })) === LOST) await this.#startAnew();
      } catch (cause) {
        if (this.#stopped) break;
        const error = cause instanceof StoreError ? cause : meaningOf(cause as never, members.endpoint(index));
        if (error.code === "corrupt") return this.#fail(error);
        onTrouble(error);
        if (index !== undefined) members.failed(index, String(error.fields["reason"] ?? error.message));
      }
      pauseMs = begun ? PAUSE_MS_MIN : Math.min(2 * pauseMs, PAUSE_MS_MAX);
      if (!this.#stopped) await this.#pause(pauseMs);
    }
  }

  async #follow(stream: ClientDuplexStream<WatchRequest, WatchResponse>, endpoint: string, onBegun: () => void): Promise<typeof LOST | undefined> {
    const late = this.#options.clock.after(BEGIN_MS, () => stream.cancel());
    this.#stopStream = () => stream.cancel();
    stream.on("error", () => {}); // also after the loop below has ended; in the loop it is thrown
    try {
      stream.write({ create_request: { key: ALL_KEYS, range_end: ALL_KEYS, start_revision: this.#revision + 1, prev_kv: true } });
      for await (const response of stream as AsyncIterable<WatchResponse>) {
        if (this.#stopped) return undefined;
        if (response.compact_revision > 0) return LOST;
        if (response.canceled) throw new StoreError("unavailable", { reason: response.cancel_reason || "the watch was ended", endpoint });
        if (response.created) {
          late.cancel();
          onBegun();
        }
        if (!(await this.#take(response.events))) return LOST;
      }
      throw new StoreError("unavailable", { reason: "the watch has ended", endpoint });
    } finally {
      late.cancel();
      this.#stopStream = () => {};
      stream.cancel();
    }
  }

  /** False: something is missing. */
  async #take(events: readonly WatchEvent[]): Promise<boolean> {
    for (let i = 0, count = 0; i < events.length; i++) {
      const { kv, prev_kv } = events[i]!;
      const event = eventOf(events[i]!);
      if (!kv || !event) return false;
      if (kv.mod_revision <= this.#revision) continue;
      this.#history.push(event, prev_kv?.value.length ?? 0, this.#options.clock.uptimeMs());
      count++;
      const next = events[i + 1]?.kv?.mod_revision;
      if (next === kv.mod_revision) continue; // watchers get revisions whole
      this.#revision = kv.mod_revision;
      if (next !== undefined && count < this.#chunk) continue;
      count = 0;
      this.#watchers.wake();
      await new Promise((resolve) => setImmediate(resolve)); // all watchers go before the next events come
    }
    return true;
  }

  async #startAnew(): Promise<void> {
    const revision = await this.#options.newest();
    this.#options.onTrouble(new StoreError("compacted", { reason: "events were compacted before they arrived", from: this.#revision, to: revision }));
    this.#revision = revision;
    this.#history = new History(revision, this.#options);
    this.#watchers.wake();
  }

  /** An etcd restored from a backup has forgotten revisions that we have told others. */
  async #checkTime(): Promise<void> {
    const newest = await this.#options.newest();
    if (newest >= this.#revision) return;
    throw new StoreError("corrupt", { reason: "etcd went back to an older revision: it was restored from a backup", from: this.#revision, to: newest, remedy: "restart this server" });
  }

  #fail(error: StoreError): void {
    this.#failure = error;
    this.#history = new History(this.#revision + 1, this.#options); // every cursor is behind it
    this.#options.onTrouble(error);
    this.#watchers.wake();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.after(ms, resolve);
      this.#wakePause = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
