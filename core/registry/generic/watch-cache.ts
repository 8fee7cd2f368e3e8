/**
 * The one copy of the world: every stored object once, kept current by one watch of the store.
 *
 *   store ──watch──▶ WatchCache ──▶ one ResourceCache a resource (resource-cache.ts) ──▶ lists, watches, informers
 *
 * What cannot be read is told of. Where that is most of what there is, it is somebody else's store, and nothing begins; unless it is sealed by a key service that is away: it may be a pod of this
 * very node.
 *
 * Should the store lose events (etcd, when it cannot be reached for longer than it remembers), everything is read again, and what differs becomes events.
 */
import { serviceUnavailable } from "../../api/meta/status-error.ts";
import type { Log } from "../../observe/log.ts";
import { isUnreadable, type Revision, type Row, type Store, StoreError, type StoreEvent } from "../../../storage/store.ts";
import type { WindowBytes } from "./event-window.ts";
import { Overwritten } from "./overwritten.ts";
import { ResourceCache, type UptimeClock } from "./resource-cache.ts";
import { unlessUnreadable } from "./unreadable.ts";

export const ROOT = "/registry/";
/** Of a resource's rows, which a key service cannot open now, so many are asked for in one look: each may take until its time is up, and where one of several keys is gone the others' open. */
const AWAY_MAX = 8;

export class WatchCache {
  readonly #store: Store;
  readonly #clock: UptimeClock;
  readonly #resources = new Map<string, ResourceCache>();
  #revision: Revision = 0;
  readonly #waiters = new Set<{ readonly revision: Revision; readonly resolve: () => void }>();
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
      let isAway = 0;
      for (const key of cache.unreadableKeys()) {
        if (signal.aborted) return mended;
        try {
          const row = await this.#store.get(key);
          if (!row || unlessUnreadable(() => cache.entryOf(row)).error) continue;
          await this.#store.put(key, row.value, row.revision, signal);
          mended.push(key);
        } catch (error) {
          if (!(error instanceof StoreError)) throw error; // still unreadable, written by somebody else, or the store is away: another time
          if (isUnreadable(error)) cache.stillUnreadable(key, error);
          if (error.code === "key-away" && ++isAway === AWAY_MAX) break;
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
      const waiter = { revision, resolve: () => { signal.removeEventListener("abort", onAbort); resolve(); } };
      const onAbort = (): void => {
        this.#waiters.delete(waiter); // its revision may never come
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiters.add(waiter);
    });
  }

  /** How many wait for a revision: whoever gives up is no longer among them. */
  get waiting(): number {
    return this.#waiters.size;
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
    for (const waiter of this.#waiters) {
      if (waiter.revision > revision) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  /** "/registry/apps/deployments/ns/name" and "/registry/core/pods/…": group and resource name the cache. */
  #of(key: string): ResourceCache {
    return this.resource(key.slice(0, key.indexOf("/", key.indexOf("/", ROOT.length) + 1) + 1));
  }
}

function tellUnreadable(error: StoreError, log: Log): void { log.error("an object in the store cannot be read: nobody can list its resource until it can be, or is deleted with ignoreStoreReadErrorWithClusterBreakingPotential", error.fields); }
