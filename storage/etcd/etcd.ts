/**
 * The store over an etcd cluster: the same interface, for several servers at once.
 *
 *   const store = await openEtcd({ endpoints, tls, clock }, signal);    // waits until etcd answers
 *
 *   writes   ─▶ one transaction each, acknowledged by a majority of members (write.ts)
 *   reads    ─▶ linearizable: whatever was acknowledged anywhere before is seen
 *   watches  ◀─ one feed for all (feed.ts)
 *   history  ─▶ etcd's own, compacted every five minutes by one of the servers (compactor.ts)
 *
 * Keys are stored as they are (/registry/…), values as JSON. There are no volatile writes here: every write goes to etcd's log.
 * Members, fail-over and what errors mean: members.ts.
 *
 * etcd v3.4 or later. Where etcd's own access control is on, the user needs a role for all keys, as kube-apiserver's usually has.
 */
import type { StoreClock } from "../engine.ts";
import { valueText } from "../json-text.ts";
import { assertKey } from "../keys.ts";
import { freezeJson } from "../mvcc/freeze-json.ts";
import type { HistoryLimits } from "../mvcc/history.ts";
import { StoreError, type Listing, type ListOptions, type Revision, type Row, type Store, type Value, type WatchOptions } from "../store.ts";
import type { WatchBatch } from "../watch/watch.ts";
import { claimIn, type Release } from "./claim.ts";
import { COMPACT_EVERY_MS, compactTo, startCompactor } from "./compactor.ts";
import { Feed } from "./feed.ts";
import { type EtcdTls, Members, TRY_MS } from "./members.ts";
import { type KeyValue, RANGE, STATUS } from "./messages.ts";
import { ALL_KEYS, endOf, keyAfter, rowOf } from "./rows.ts";
import type { Decoded, Encodable } from "./wire.ts";
import { writeTo } from "./write.ts";

export interface EtcdOptions extends HistoryLimits {
  readonly endpoints: readonly string[];
  /** Asked again whenever a member does not answer. */
  readonly tls?: (() => EtcdTls) | undefined;
  readonly clock: StoreClock;
  /** How long is tried what a caller waits for. Default 15 s: an election of etcd, and more than one member that is gone. */
  readonly callTimeoutMs?: number;
  /** How often etcd is told to forget; 0: never, somebody else sees to it. Default: five minutes. */
  readonly compactEveryMs?: number;
  /** It was reached. */
  readonly onOpen?: (facts: { readonly endpoint: string; readonly version: string; readonly bytes: number }) => void;
  /** A member did not answer, the next is used. */
  readonly onFailover?: (facts: { readonly from: string; readonly to: string; readonly reason: string }) => void;
  /** Something failed that nobody waits for. It is tried again. */
  readonly onTrouble?: (error: StoreError) => void;
}

/** A listing is put together from pages of one revision, of about so many bytes, judging by the rows before: a slow link must bring one in the time of a try (members.ts). */
const PAGE_BYTES = 1024 * 1024;
const PAGE_ROWS_FIRST = 16;
const PAGE_ROWS_MAX = 10_000; // kubernetes v1.36 apiserver/pkg/storage/etcd3/store.go maxLimit
/** Nobody compacts all the time. */
const LIST_TRIES_MAX = 3;
/** How much larger than the one before a page may be, and how much smaller it becomes that was too large: rows of the next resource may be of another size. */
const PAGE_FACTOR = 8;

/** Opens the store once a majority of etcd answers; until then `onTrouble` is told why it does not. Throws TypeError for endpoints that are none, and the signal's reason. */
export async function openEtcd(options: EtcdOptions, signal?: AbortSignal): Promise<Store> {
  const members = new Members(options);
  const close = (): void => members.close();
  signal?.addEventListener("abort", close, { once: true });
  try {
    const revision = await firstRevision(members, options, signal);
    const { version, dbSize } = await members.call(STATUS, {});
    options.onOpen?.({ endpoint: members.endpoint(), version, bytes: dbSize });
    return new EtcdStore({ options, members, revision });
  } catch (error) {
    members.close();
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", close);
  }
}

async function firstRevision(members: Members, { onTrouble }: EtcdOptions, signal: AbortSignal | undefined): Promise<Revision> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await newestOf(members);
    } catch (error) {
      if (!signal || !(error instanceof StoreError) || error.code !== "unavailable" || error.fields["final"]) throw error;
      onTrouble?.(error);
    }
  }
}

async function newestOf(members: Members): Promise<Revision> {
  return (await members.call(RANGE, { key: ALL_KEYS, limit: 1, keys_only: true })).header!.revision;
}

class EtcdStore implements Store {
  readonly #members: Members;
  readonly #clock: StoreClock;
  readonly #callTimeoutMs: number;
  readonly #feed: Feed;
  readonly #stopCompactor: () => void;
  readonly #writing = new Set<Promise<unknown>>();
  #revision: Revision; // the newest anybody told us of
  #asking: Promise<Revision> | undefined; // for the newest revision, on its way
  #askingNext: Promise<Revision> | undefined; // begins when that is back
  #closing: Promise<void> | undefined;

  constructor({ options, members, revision }: { options: EtcdOptions; members: Members; revision: Revision }) {
    const { clock, compactEveryMs = COMPACT_EVERY_MS, onTrouble = () => {} } = options;
    this.#members = members;
    this.#clock = clock;
    this.#callTimeoutMs = options.callTimeoutMs ?? Number.POSITIVE_INFINITY;
    this.#revision = revision;
    this.#feed = new Feed({ ...options, members, revision, newest: () => newestOf(members), onTrouble });
    this.#feed.start();
    this.#stopCompactor = compactEveryMs === 0 ? () => {} : startCompactor({ members, clock, everyMs: compactEveryMs, onCompacted: (to) => this.#feed.forget(to), onTrouble });
  }

  get revision(): Revision {
    return Math.max(this.#revision, this.#feed.revision);
  }

  async newestRevision(signal?: AbortSignal): Promise<Revision> {
    this.#assertOpen();
    signal?.throwIfAborted();
    const answer = this.#asking ? this.#askNext(this.#asking) : (this.#asking = this.#ask());
    if (!signal) return await answer;
    const gone = Promise.withResolvers<never>();
    const onAbort = (): void => gone.reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([answer, gone.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Those who ask while an answer is on its way share the next one: that answer may be older than their question. When there is none, there is none for them, too. */
  #askNext(asking: Promise<Revision>): Promise<Revision> {
    const next = (): Promise<Revision> => (this.#asking = this.#ask());
    return (this.#askingNext ??= asking.then(next).finally(() => { this.#askingNext = undefined; }));
  }

  async get(key: string): Promise<Row | undefined> {
    this.#assertOpen();
    const { header, kvs } = await this.#members.call(RANGE, { key: Buffer.from(key) });
    this.#saw(header!.revision);
    return kvs[0] && rowOf(kvs[0]);
  }

  /** Somebody may compact away what is being listed: nobody asked for just that state. */
  async list(options: ListOptions): Promise<Listing> {
    this.#assertOpen();
    for (let left = LIST_TRIES_MAX; ; left--) {
      try {
        return await this.#list(options);
      } catch (error) {
        if (options.revision !== undefined || left === 1 || !(error instanceof StoreError) || error.code !== "compacted") throw error;
      }
    }
  }

  async #list({ prefix, after, limit = 0, revision }: ListOptions): Promise<Listing> {
    const end = endOf(prefix);
    let from = after !== undefined && Buffer.compare(Buffer.from(after), Buffer.from(prefix)) >= 0 ? keyAfter(after) : Buffer.from(prefix || "\0");
    const rows: Row[] = [];
    let at = revision, page = PAGE_ROWS_FIRST;
    for (;;) {
      if (Buffer.compare(from, end) >= 0 && end !== ALL_KEYS) from = end; // beyond the prefix: an empty range
      const wanted = limit > 0 ? Math.min(limit - rows.length, page) : page;
      const answer = await this.#page({ key: from, range_end: end, limit: wanted, ...(at !== undefined && { revision: at }) });
      if (answer === undefined) {
        page = Math.ceil(wanted / PAGE_FACTOR);
        continue;
      }
      const { header, kvs, more, count } = answer;
      this.#saw(header!.revision);
      at ??= header!.revision;
      for (const kv of kvs as readonly KeyValue[]) rows.push(rowOf(kv));
      if (!more || rows.length === limit) return { rows, revision: at, more, remaining: more ? count - kvs.length : 0 };
      from = keyAfter(rows.at(-1)!.key);
      const bytes = kvs.reduce((sum, { value }) => sum + value.length, 1);
      page = Math.max(1, Math.min(Math.floor((PAGE_BYTES * kvs.length) / bytes), PAGE_FACTOR * wanted, PAGE_ROWS_MAX));
    }
  }

  /** Undefined: it did not come in time, and a smaller one may. */
  async #page(range: Encodable<typeof RANGE.request> & { readonly limit: number }): Promise<Decoded<typeof RANGE.response> | undefined> {
    if (range.limit === 1) return await this.#members.call(RANGE, range);
    try {
      return await this.#members.call(RANGE, range, { timeoutMs: Math.min(TRY_MS, this.#callTimeoutMs) });
    } catch (error) {
      if (error instanceof StoreError && error.code === "unavailable" && !error.fields["final"]) return undefined;
      throw error;
    }
  }

  async put(key: string, value: Value, expected: Revision, signal?: AbortSignal): Promise<Revision> {
    assertKey(key);
    const { value: frozen } = freezeJson(value, { arrays: false });
    this.#assertOpen();
    return await this.#write({ key, text: valueText(frozen), expected, signal });
  }

  async delete(key: string, expected: Revision, signal?: AbortSignal): Promise<Revision> {
    this.#assertOpen();
    return await this.#write({ key, text: undefined, expected, signal });
  }

  async *watch(options: WatchOptions, signal: AbortSignal): AsyncGenerator<WatchBatch, void, void> {
    if (signal.aborted) return;
    this.#assertOpen();
    const { after } = options;
    if (after > this.revision && after > (await this.newestRevision())) throw new StoreError("future", { revision: after, newest: this.revision });
    await this.#feed.reach(after, signal);
    yield* this.#feed.watch(options, signal);
  }

  async compact(revision: Revision): Promise<void> {
    this.#assertOpen();
    await compactTo(this.#members, revision);
    this.#feed.forget(Math.min(revision, this.#feed.revision));
  }

  async claim(name: string, options: { readonly ttlSeconds: number }): Promise<Release | undefined> {
    this.#assertOpen();
    return await claimIn(this.#members, name, options);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#stopCompactor();
    await Promise.allSettled(this.#writing); // what is uncertain needs the feed
    await this.#feed.stop();
    this.#members.close();
  }

  #assertOpen(): void {
    if (this.#closing) throw new StoreError("closed");
  }

  #saw(revision: Revision): void {
    this.#revision = Math.max(this.#revision, revision);
  }

  async #write(write: Parameters<typeof writeTo>[1]): Promise<Revision> {
    const writing = writeTo({ members: this.#members, feed: this.#feed, clock: this.#clock }, write);
    this.#writing.add(writing);
    try {
      const revision = await writing;
      this.#saw(revision);
      return revision;
    } finally {
      this.#writing.delete(writing);
    }
  }

  #ask(): Promise<Revision> {
    const asking: Promise<Revision> = newestOf(this.#members).then((revision) => {
      this.#saw(revision);
      return revision;
    }).finally(() => {
      if (this.#asking === asking) this.#asking = undefined;
    });
    return asking;
  }
}
