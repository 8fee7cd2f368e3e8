/**
 * The store interface: keys and values under one ever-growing revision, exactly etcd's semantics as Kubernetes sees them.
 *
 * Two implementations: mvcc/ over LevelDB (one writer: this process) and etcd/ over an etcd cluster.
 * test/contract/store.ts is what both must do.
 */

/** Counts commits. Never repeats, never goes backwards, also not after a crash. 0 means "before everything" and, as an expectation, "absent". */
export type Revision = number;

/**
 * What is stored: a JSON object. Handed out frozen or fresh; never mutate what a store returns or what you gave it (a store may keep and freeze the
 * very object). What JSON cannot say is dropped as JSON.stringify does it; what is no JSON at all throws a TypeError.
 */
export type Value = Readonly<Record<string, unknown>>;

export interface Row {
  readonly key: string;
  readonly value: Value;
  /** Revision of the last write of this key. */
  readonly revision: Revision;
}

/** A committed change of one key. `previous` is the row before it, absent for a create; for a delete `row.value` is the last value and `row.revision` the revision of the delete. */
export interface StoreEvent {
  readonly type: "put" | "delete";
  readonly row: Row;
  readonly previous?: Row;
}

export interface ListOptions {
  readonly prefix: string;
  /** Only keys greater than this one. Keys are ordered by their UTF-8 bytes. */
  readonly after?: string;
  /** At most this many rows; 0 or absent: all. */
  readonly limit?: number;
  /** The state as it was at this revision; absent: now. Throws "compacted" or "future". */
  readonly revision?: Revision;
}

export interface Listing {
  readonly rows: readonly Row[];
  /** The revision this listing is a snapshot of. */
  readonly revision: Revision;
  readonly more: boolean;
  /** How many keys come after the last row; only counted when `more`. */
  readonly remaining: number;
}

export interface WatchOptions {
  readonly prefix: string;
  /** Events after this revision. */
  readonly after: Revision;
}

export interface Store {
  /** The newest committed revision; at least 1. Whatever has it is visible to every read that starts now. */
  readonly revision: Revision;
  /** The same, asked where it is decided: other processes may write to the store, too. Throws "unavailable", and the signal's reason. */
  newestRevision(signal?: AbortSignal): Promise<Revision>;
  get(key: string): Promise<Row | undefined>;
  list(options: ListOptions): Promise<Listing>;
  /**
   * Writes if the key's last revision is `expected` (0: the key does not exist). Resolves with the new revision once the write is durable
   * (for a volatile key: once it is visible). Throws "conflict" with the row as it is now, "full" when the disk is, "too-large" (request-size.ts), "key-away".
   * Nobody sees a durable write before it is on disk. A write that was refused with "full" or "unavailable" did not happen, unless the process dies before the disk works again;
   * over etcd nobody knows what became of a write that was refused with "unavailable" because no member answered for long. There it is tried until `signal` aborts: whoever
   * wanted it has been told that it came to nothing.
   * `drafted` may be called with the row as it will be, while the disk is at work: what is to be made of it can be made meanwhile. It may yet come to nothing, or to another row.
   */
  put(key: string, value: Value, expected: Revision, signal?: AbortSignal, drafted?: (row: Row) => void): Promise<Revision>;
  /** Like put. Throws "conflict" also if there is no such key. Where room is short, deletes still work. */
  delete(key: string, expected: Revision, signal?: AbortSignal): Promise<Revision>;
  /**
   * Batches of events after `options.after`, in revision order, none twice, none missing. Throws "compacted" if that history is gone (list again
   * and start from there), "future" if it is still to come, and "overrun" if the consumer is too slow for the bounded history. Ends without
   * error when `signal` aborts; throws "closed" when the store closes. Nothing happens before the first `next`.
   * A batch may be empty: then it only tells that everything up to `revision` has been sent. The first batch comes at once, and every commit moves `revision`.
   */
  watch(options: WatchOptions, signal: AbortSignal): AsyncIterable<{ readonly events: readonly StoreEvent[]; readonly revision: Revision }>;
  /** Forgets history older than `revision`: what was overwritten or deleted before it can no longer be listed or watched. Stores forget by themselves, too. */
  compact(revision: Revision): Promise<void>;
  /**
   * Takes a name that one process at a time may hold; undefined: somebody has it. Given back, or gone with the process some `ttlSeconds` later.
   * Absent where no other process can have the store open.
   */
  claim?(name: string, options: { readonly ttlSeconds: number }): Promise<(() => Promise<void>) | undefined>;
  /** Ends watches, finishes writes that are under way, flushes what is volatile, releases the lock. Rejects if something could not be written; it is closed even so. */
  close(): Promise<void>;
}

/** "key-away": what seals and opens this value is a key service that cannot be asked now; another time it can (encryption/encryption.ts). */
export type StoreErrorCode = "conflict" | "compacted" | "future" | "overrun" | "full" | "too-large" | "corrupt" | "key-away" | "locked" | "closed" | "unavailable";

/** Whether it is of one row, whose value cannot be told: now, or ever. */
export function isUnreadable(error: unknown): error is StoreError { return error instanceof StoreError && (error.code === "corrupt" || error.code === "key-away"); }

/** Everything a store can refuse. `fields` are facts for the caller and the log. */
export class StoreError extends Error {
  readonly code: StoreErrorCode;
  /** With "conflict": the row as it is now, absent if there is none. */
  readonly current: Row | undefined;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(code: StoreErrorCode, fields: Record<string, unknown> & { current?: Row | undefined } = {}, options?: { cause?: unknown }) {
    const { current, ...facts } = fields;
    super(`store: ${code}${Object.keys(facts).length > 0 ? ` ${JSON.stringify(facts)}` : ""}`, options);
    this.name = "StoreError";
    this.code = code;
    this.current = current;
    this.fields = facts;
  }
}
