/**
 * The one copy of the world: every stored object once, kept current by one watch of the store.
 *
 *   store ──watch──▶ WatchCache ──▶ one ResourceCache a resource ──▶ lists, watches, informers
 *
 * Each resource keeps a window of its last events, so that a watch may start at a recent revision; an older one is told to list again
 * ("compacted"), as upstream's watch cache does.
 *
 * A row that cannot be read is told of, and whoever asks for it or lists where it is gets an error (unreadable.ts). Where most cannot be read it is somebody else's store, and nothing begins;
 * unless they are sealed by a key service that is away: it may be a pod of this very node.
 *
 * Should the store lose events (etcd, when it cannot be reached for longer than it remembers), everything is read again, and what differs becomes events.
 */
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { serviceUnavailable } from "../../api/meta/status-error.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Log } from "../../observe/log.ts";
import { type Revision, type Row, type Store, StoreError, type StoreEvent } from "../../../storage/store.ts";
import { Audience, type CacheEvent, type Listener, type Topic } from "./audience.ts";
import { CacheCounts } from "./cache-counts.ts";
import { type Cached, cachedOf, type Reading } from "./cached.ts";
import { EventWindow, type WindowBytes } from "./event-window.ts";
import { LabelIndex } from "./label-index.ts";
import { Overwritten } from "./overwritten.ts";
import { insert, remove, sortedByKey, startingWith } from "./sorted-entries.ts";
import { Unreadable, type UnreadableRow, unlessUnreadable } from "./unreadable.ts";

export const ROOT = "/registry/";

type UptimeClock = Pick<Clock, "uptimeMs">;

/** The objects under one key prefix ("/registry/pods/"), in key order when listed. */
export class ResourceCache {
  readonly prefix: string;
  readonly counts = new CacheCounts();
  readonly #entries = new Map<string, Cached>();
  /** In key order; made when it is first asked for, and kept up to date from then on. */
  #sorted: Cached[] | undefined;
  readonly #byLabel = new LabelIndex();
  readonly #window: EventWindow;
  readonly #clock: UptimeClock;
  readonly #audience = new Audience();
  readonly #overwritten: Overwritten;
  /** Of objects that are about to go, by key: what they are when they do. */
  readonly #endings = new Map<string, Ending>();
  /** Of rows that are on their way to the disk: what they will be here. */
  readonly #expected = new WeakMap<Row, Cached>();
  readonly #unreadable = new Unreadable();
  #read: Reading | undefined;

  constructor(prefix: string, revision: Revision, { clock, overwritten, windows }: { readonly clock: UptimeClock; readonly overwritten: Overwritten; readonly windows: WindowBytes }) {
    this.prefix = prefix;
    this.#overwritten = overwritten;
    this.#window = new EventWindow(revision, windows);
    this.#clock = clock;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** How many are told of changes of the object at `key` (Audience.listenersOf): watches, informers of this process among them. */
  listenersOf(key: string): number {
    return this.#audience.listenersOf(key);
  }

  /** Throws 500 for one that cannot be read. */
  get(key: string): Cached | undefined {
    const found = this.#entries.get(key);
    if (!found) this.#unreadable.refuse(key);
    return found;
  }

  unreadableKeys(): readonly string[] { return [...this.#unreadable.keys()]; }

  /** That of a row that cannot be read. */
  unreadableRevision(key: string): Revision | undefined { return this.#unreadable.get(key)?.revision; }

  /** Before anything is loaded: what readers are shown of what is stored. */
  readAs(read: Reading): void { this.#read = read; }
  read(stored: Readonly<ApiObject>): Readonly<ApiObject> { return this.#read?.(stored) ?? stored; }

  /** A row as this resource shows it. */
  entryOf(row: Row, before?: Cached): Cached { return cachedOf(row, { before, read: this.#read }); }

  /** Makes of a row that is on its way to the disk what readers will be shown of it, and calls `ahead` with that. What goes wrong with it does so again once it is there, before whoever is to know. */
  expect(row: Row, ahead?: (entry: Cached) => void): void {
    try {
      const entry = this.entryOf(row, this.#entries.get(row.key));
      this.#expected.set(row, entry);
      ahead?.(entry);
    } catch {
      this.#expected.delete(row);
    }
  }

  /** Entries whose key starts with `prefix`, in key order: as they are now, whatever happens while they are read. Throws 500 if one of them cannot be read. */
  under(prefix: string): readonly Cached[] {
    this.#unreadable.refuseUnder(prefix);
    const sorted = (this.#sorted ??= sortedByKey(this.#entries.values()));
    return prefix === this.prefix ? sorted.slice() : startingWith(sorted, prefix);
  }

  /** Those of `under` whose label `key` is `value`. */
  labelled(prefix: string, key: string, value: string): readonly Cached[] {
    this.#unreadable.refuseUnder(prefix);
    return startingWith(this.#byLabel.find(key, value, () => (this.#sorted ??= sortedByKey(this.#entries.values())).slice()), prefix);
  }

  /** Of all that can be read. */
  values(): Iterable<Cached> {
    return this.#entries.values();
  }

  /** Remembered events after `revision`. Throws 410 if some of those are forgotten. */
  after(revision: Revision): CacheEvent[] { return this.#window.after(revision); }

  /** What was at `key` until the delete at `revision`, as watchers are told of it: an answer shares its bytes. Undefined: that is forgotten. */
  deleted(key: string, revision: Revision): Cached | undefined {
    const entry = this.#window.at(revision)?.entry;
    return entry?.key === key ? entry : undefined;
  }

  /** Of the object that is there at `revision`: when it goes, `last` is what watchers are told of. What this returns is called if it does not go. */
  ending(key: string, revision: Revision, last: Row["value"]): () => void {
    const known = this.#endings.get(key);
    if (known?.revision === revision) return () => undefined;
    const ending = { revision, last };
    this.#endings.set(key, ending);
    return () => { if (this.#endings.get(key) === ending) this.#endings.delete(key); };
  }

  /** With a topic: hears of that alone. */
  listen(listener: Listener, topic?: Topic): () => void { return this.#audience.add(listener, topic); }

  /** What happened up to `revision` is not remembered. */
  begin(revision: Revision): void {
    this.counts.loads++;
    this.#window.begin(revision);
  }

  /** Returns why it cannot be read. */
  load(row: Row): StoreError | undefined {
    const { value: entry, error } = unlessUnreadable(() => this.entryOf(row));
    if (error) {
      this.#noteUnreadable(row.key, { revision: row.revision, error, last: undefined });
      return error;
    }
    this.#entries.set(row.key, entry);
    this.#sorted = undefined;
    this.#byLabel.replace(undefined, entry);
    return undefined;
  }

  #noteUnreadable(key: string, row: UnreadableRow): void {
    this.counts.unreadable++;
    this.#unreadable.set(key, row);
  }

  /** The events that make of what is here what the store has at `revision`. */
  *difference(rows: ReadonlyMap<string, Row>, revision: Revision): Iterable<StoreEvent> {
    for (const row of rows.values()) if ((this.#entries.get(row.key) ?? this.#unreadable.get(row.key))?.revision !== row.revision) yield { type: "put", row };
    for (const key of this.#unreadable.keys()) if (!rows.has(key)) yield { type: "delete", row: { key, value: {}, revision } };
    for (const { key, stored } of this.#entries.values()) if (!rows.has(key)) yield { type: "delete", row: { key, value: stored as unknown as Row["value"], revision } };
  }

  /** Lets go of what was made for reads and has not been asked for since this was last called: bytes of objects, labels to find them by; and of old events. Returns how many bytes of the first. */
  forgetUnused(): number {
    let bytes = 0;
    this.#window.forgetOld(this.#clock.uptimeMs());
    for (const entry of this.#entries.values()) bytes += entry.forgetUnused();
    for (const { entry, previous } of this.#window) {
      if (this.#entries.get(entry.key) !== entry) bytes += entry.forgetUnused();
      if (previous) bytes += previous.forgetUnused();
    }
    this.#byLabel.forgetUnused();
    return bytes;
  }

  /** Returns why what was written cannot be read. Who watches is told no more of such an object until it can be, or is gone. */
  apply(event: StoreEvent): StoreError | undefined {
    this.counts.received++;
    const { key, revision } = event.row;
    const broken = this.#unreadable.get(key);
    const previous = this.#entries.get(key) ?? broken?.last;
    this.#unreadable.delete(key);
    const ending = event.type === "delete" ? this.#endings.get(key) : undefined;
    const last = ending && ending.revision === previous?.revision ? ending.last : broken?.last?.stored as Row["value"] | undefined;
    if (event.type === "delete" && !previous) return undefined;
    const { value: entry, error } = unlessUnreadable(() => this.#expected.get(event.row) ?? this.entryOf(event.type === "delete" && last ? { key, value: last, revision } : event.row, previous));
    if (error) {
      this.#noteUnreadable(key, { revision, error, last: previous });
      if (this.#entries.delete(key)) {
        if (this.#sorted) remove(this.#sorted, key);
        this.#byLabel.replace(previous, undefined);
      }
      return error;
    }
    if (event.type === "delete") {
      this.#endings.delete(key);
      if (this.#entries.delete(key) && this.#sorted) remove(this.#sorted, key);
    } else {
      this.#entries.set(key, entry);
      if (this.#sorted) insert(this.#sorted, entry);
    }
    this.#byLabel.replace(previous, event.type === "delete" ? undefined : entry);
    const change: CacheEvent = { type: event.type === "delete" ? "DELETED" : previous ? "MODIFIED" : "ADDED", entry, previous };
    this.#window.push(change, this.#clock.uptimeMs());
    this.counts.dispatched++;
    this.#audience.tell(change);
    if (previous) this.#overwritten.add(previous);
    return undefined;
  }
}

function tellUnreadable(error: StoreError, log: Log): void { log.error("an object in the store cannot be read: nobody can list its resource until it can be, or is deleted with ignoreStoreReadErrorWithClusterBreakingPotential", error.fields); }

interface Ending { readonly revision: Revision; readonly last: Row["value"] }

export class WatchCache {
  readonly #store: Store;
  readonly #clock: UptimeClock;
  readonly #resources = new Map<string, ResourceCache>();
  #revision: Revision = 0;
  #waiters: { readonly revision: Revision; readonly resolve: () => void }[] = [];
  readonly #overwritten = new Overwritten();
  readonly #windows: WindowBytes = { sum: 0 };

  constructor(store: Store, clock: UptimeClock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Everything up to this revision is in the cache. */
  get revision(): Revision {
    return this.#revision;
  }

  /** Reads the whole store, then follows it until `signal` aborts. Calls `ready` once reads can be served. */
  async run(signal: AbortSignal, ready: () => void, log: Log): Promise<void> {
    const { rows, revision } = await this.#store.list({ prefix: ROOT });
    this.#revision = revision;
    for (const cache of this.#resources.values()) cache.begin(revision); // those of the registry are there before anything is read
    const errors = rows.flatMap((row) => this.#of(row.key).load(row) ?? []);
    const damaged = errors.filter(({ code }) => code === "corrupt");
    if (damaged.length * 2 > rows.length) throw damaged[0]!;
    for (const error of damaged) tellUnreadable(error, log);
    const away = errors.find(({ code }) => code === "key-away");
    if (away) log.error("objects are sealed by a key service that cannot be asked now: nobody can list their resources until it can be", { count: errors.length - damaged.length, first: away.fields["key"], reason: away.fields["reason"] });
    log.info("watch cache loaded", { objects: rows.length, revision });
    ready();
    for (;;) {
      try {
        return await this.#follow(signal, log);
      } catch (error) {
        if (!(error instanceof StoreError) || (error.code !== "overrun" && error.code !== "compacted")) throw error;
        log.warn("events of the store are lost, reading it again", { error });
        await this.#readAgain(signal, log);
      }
    }
  }

  async #follow(signal: AbortSignal, log: Log): Promise<void> {
    for await (const batch of this.#store.watch({ prefix: ROOT, after: this.#revision }, signal)) {
      for (const event of batch.events) this.#apply(event, log);
      this.#reached(batch.revision);
    }
  }

  #apply(event: StoreEvent, log: Log): void {
    const error = this.#of(event.row.key).apply(event);
    if (error) tellUnreadable(error, log);
  }

  async #readAgain(signal: AbortSignal, log: Log): Promise<void> {
    while (!signal.aborted) {
      try {
        const { rows, revision } = await this.#store.list({ prefix: ROOT });
        const byResource = new Map<ResourceCache, Map<string, Row>>([...this.#resources.values()].map((cache) => [cache, new Map<string, Row>()]));
        for (const row of rows) {
          const cache = this.#of(row.key);
          const found = byResource.get(cache);
          if (found) found.set(row.key, row);
          else byResource.set(cache, new Map([[row.key, row]]));
        }
        const events = [...byResource].flatMap(([cache, found]) => [...cache.difference(found, revision)]);
        for (const cache of byResource.keys()) cache.counts.loads++;
        for (const event of events.sort((a, b) => a.row.revision - b.row.revision)) this.#apply(event, log);
        log.info("watch cache read again", { objects: rows.length, changes: events.length, revision });
        return this.#reached(revision);
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== "unavailable") throw error;
        log.warn("the store cannot be read", { error }); // it has tried for long already
      }
    }
  }

  /** The cache of one resource; `prefix` ends in a slash. */
  resource(prefix: string): ResourceCache {
    const found = this.#resources.get(prefix);
    if (found) return found;
    const made = new ResourceCache(prefix, this.#revision, { clock: this.#clock, overwritten: this.#overwritten, windows: this.#windows });
    if (this.#revision > 0) made.counts.loads++; // of what has come since all was read
    this.#resources.set(prefix, made);
    return made;
  }

  /**
   * Rows that can be read again, since a key service answers once more or the keys are back, are written as they are: so everybody who watches is told of them, in the order of revisions.
   * Returns their keys.
   */
  async mendUnreadable(signal: AbortSignal): Promise<readonly string[]> {
    const mended: string[] = [];
    for (const cache of [...this.#resources.values()]) {
      for (const key of cache.unreadableKeys()) {
        if (signal.aborted) return mended;
        try {
          const row = await this.#store.get(key);
          if (!row || unlessUnreadable(() => cache.entryOf(row)).error) continue;
          await this.#store.put(key, row.value, row.revision, signal);
          mended.push(key);
        } catch (error) {
          if (!(error instanceof StoreError)) throw error; // still unreadable, written by somebody else, or the store is away: another time
          if (error.code === "key-away") break; // as will be those after it, each after its time
        }
      }
    }
    return mended;
  }

  /** Of all resources: see ResourceCache.forgetUnused. */
  forgetUnused(): number {
    let bytes = 0;
    for (const cache of this.#resources.values()) bytes += cache.forgetUnused();
    return bytes + this.#overwritten.forgetUnused();
  }

  /** Resolves once everything up to `revision` is in the cache, or rejects with the signal's reason. */
  async reach(revision: Revision, signal: AbortSignal): Promise<void> {
    if (this.#revision >= revision) return;
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason as Error);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiters.push({ revision, resolve: () => { signal.removeEventListener("abort", onAbort); resolve(); } });
    });
  }

  /** Resolves once the cache has everything that was committed when this was called. */
  async fresh(signal: AbortSignal): Promise<void> {
    await this.reach(await this.#newest(signal), signal);
  }

  async #newest(signal: AbortSignal): Promise<Revision> {
    try {
      return await this.#store.newestRevision(signal);
    } catch (error) {
      throw error instanceof StoreError ? serviceUnavailable("the store is not available") : error;
    }
  }

  #reached(revision: Revision): void {
    this.#revision = revision;
    if (this.#waiters.length === 0) return;
    const due = this.#waiters.filter((waiter) => waiter.revision <= revision);
    if (due.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => waiter.revision > revision);
    for (const { resolve } of due) resolve();
  }

  /** "/registry/apps/deployments/ns/name" and "/registry/core/pods/…": group and resource name the cache. */
  #of(key: string): ResourceCache {
    return this.resource(key.slice(0, key.indexOf("/", key.indexOf("/", ROOT.length) + 1) + 1));
  }
}
