/**
 * The store over one engine: etcd's semantics for one process.
 *
 * In memory: every current row, decoded and frozen (the same objects go to every reader), and the recent history. On disk: the current rows,
 * and one meta record. Reads never touch the disk; the disk is read once, when the store opens, and every row is verified then.
 *
 * Writes queue up. One commit at a time takes what is waiting (group commit): it compares each write with the row as the writes before it
 * leave it, numbers what passes, and puts all of it into one durable batch with the meta record. Only when that is on disk do the writes
 * become visible, in the order of their revisions, and are acknowledged. Meanwhile the next group gathers.
 *
 * Volatile writes do not wait for the disk: of a group they come first, are visible at once and written behind (write-behind.ts). One that comes
 * while the disk is busy waits its turn, but not for a disk that hangs: it overtakes the batch, which is then given higher revisions and written
 * once more before anybody sees it. So nodes that renew their leases are not taken for dead because a flash card collects its garbage.
 *
 * So that revisions never repeat although volatile writes can be lost, the meta record reserves a range of revisions ahead,
 * and after a crash the store goes on behind that range. A revision from before the crash is then "compacted", never wrong.
 *
 * When a batch fails it is unknown whether it reached the disk. Its writes are refused, its revisions are never used again, the engine is
 * closed, and the first thing a new one gets is every row of that batch as it really is (durable.ts).
 * Reads, watches and volatile writes go on all the while. Only if the process dies in between may a refused write turn out to have happened.
 */
import { explain, storeError } from "../disk.ts";
import type { Engine, StoreClock } from "../engine.ts";
import { assertKey } from "../keys.ts";
import { StoreError, type Listing, type ListOptions, type Revision, type Row, type Store, type Value, type WatchOptions } from "../store.ts";
import { type WatchBatch, Watchers } from "../watch/watch.ts";
import { type AcceptedWrite, type Draft, draftWrites, type DraftContext, renumbered, type WriteRequest } from "./draft.ts";
import { type BatchReport, type Changes, Durable } from "./durable.ts";
import { freezeJson } from "./freeze-json.ts";
import { History, type HistoryLimits } from "./history.ts";
import { listRows } from "./list.ts";
import { load, type Loaded } from "./load.ts";
import { Quota, weightOf } from "./quota.ts";
import { NOTHING, Rows } from "./rows.ts";
import { WriteBehind, type WriteBehindOptions } from "./write-behind.ts";

/** What every store of this kind can be told. */
export interface MvccOptions extends HistoryLimits, WriteBehindOptions {
  readonly clock: StoreClock;
  /**
   * Which writes are volatile: visible at once, on disk later, lost by a crash in between. `value` is undefined for a delete, `previous` for a create.
   * Looking at both allows for a lease whose heartbeats are volatile while a change of its holder is not.
   */
  readonly volatile?: (key: string, value: Value | undefined, previous: Value | undefined) => boolean;
  /** It has held something, and a disk on which nothing is has lost it. */
  readonly wasUsed?: boolean;
  /** Which rows may also be overwritten while room is short, as long as the disk takes it and memory is left for it: few and small ones, that tell of it, or lead to room. */
  readonly urgent?: (key: string, value: Value) => boolean;
  /** How much all rows may take together, in bytes of JSON that takes three times as much memory; what takes more of it counts for more. Creating more is refused as "full". Default: no end. */
  readonly bytesMax?: number;
  /** Called when room becomes short, with why, and with nothing when there is enough again. */
  readonly onRoom?: (full: StoreError | undefined) => void;
  /** Called with a value that may be too large, before it is put. Throws "too-large" for one that is. */
  readonly refuseLarge?: (key: string, value: Value, expected: Revision) => void;
  /** Freeze the arrays in values, too, so that a reader who changes one is caught. Objects always are; see freeze-json.ts for the price. */
  readonly freezeArrays?: boolean;
  /** Called with each value that is read when the store opens. Returns an equal one, parts of which may be those of others: they take the memory of one. */
  readonly share?: (value: Value) => Value;
  /** Called after every durable batch, for metrics. */
  readonly onBatch?: (report: BatchReport) => void;
  /** Called when a batch goes to the disk, and when the disk has answered, with why if it refused. One that hangs keeps all writes waiting, and whoever reads does not notice. */
  readonly onDisk?: (busy: boolean, refused?: StoreError) => void;
  /** Called when something failed that nobody waits for: writing behind. It is tried again. */
  readonly onTrouble?: (error: StoreError) => void;
}

/** Of one group: so that its first write does not wait long for its last. */
const GROUP_WRITES_MAX = 512;
const GROUP_BYTES_MAX = 2 * 1024 * 1024;
/** So long a volatile write may have to wait for a batch before it overtakes it. A kubelet gives its lease 10 s. */
const OVERTAKE_MS = 3000;
/** Revisions left free before a batch that is written again, for volatile writes meanwhile: so it is not written a third time. */
const OVERTAKE_REVISIONS = 10_000;
/** Rows written behind in one batch. */
const FLUSH_ROWS_MAX = 2000;
/** While nothing can be written behind, so many rows may wait in memory for it; then new volatile rows are refused as well. */
const BEHIND_MAX = 20_000;
/** What is smaller is not looked at: a character is four bytes at the most, and a few say what takes many more nowhere. */
const LARGE_SIZE = 384 * 1024;
/** Urgent rows are written until so little is left: an eighth of what is kept free for them and for deletes. */
const URGENT_BYTES_MIN = 4 * 1024 * 1024;
/** What is wrong with a store that is as good as new and ought not to be. */
export const EMPTIED = "nothing is in it, and it has been in use: its log is lost";
/** What a new store starts at. As in etcd: 0 is before everything, and must not be the revision of a listing. */
const FIRST_REVISION = 1;

/** Opens the store that `connect` finds, or makes a new one. Throws "corrupt" if any row is not as it was written. */
export async function openMvcc(connect: (options: { readonly create: boolean }) => Promise<Engine>, options: MvccOptions): Promise<Store> {
  const engine = await connect({ create: true });
  try {
    const loaded = await load(engine, options);
    refuseUnsound(loaded);
    if (loaded.empty && options.wasUsed) throw storeError("corrupt", { reason: EMPTIED, remedy: "restore a snapshot; or remove this directory to begin anew, without anything that was in the cluster" });
    const head = !loaded.meta ? FIRST_REVISION : loaded.meta.clean ? loaded.meta.head : loaded.meta.reserved;
    const durable = new Durable({ ...options, ...loaded, engine, reserved: head, connect: () => connect({ create: false }) });
    await durable.write(new Map(), { head, clean: false }); // reserves revisions, and shows that the disk can be written
    return new MvccStore({ durable, head, loaded, options });
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function refuseUnsound({ problems, newerLayout }: Loaded): void {
  if (newerLayout !== undefined) throw storeError("unavailable", { reason: "the store was written by a newer version of this program", layout: newerLayout });
  if (problems.length > 0) throw storeError("corrupt", { reason: problems[0]!.what, ...(problems[0]!.key && { key: problems[0]!.key }), problems: problems.length });
}

/** A batch that is on its way to the disk, and what may be done meanwhile. */
interface Flight {
  /** What nothing may be done to. */
  readonly keys: ReadonlySet<string>;
  /** The newest revision handed out to a volatile write, or the one from which on they may be. */
  head: Revision;
  /** The newest one they may have. */
  readonly until: Revision;
  hangs: boolean;
}

class MvccStore implements Store {
  readonly #clock: StoreClock;
  readonly #options: MvccOptions;
  readonly #durable: Durable;
  readonly #rows = new Rows();
  readonly #history: History;
  readonly #watchers: Watchers;
  readonly #behind: WriteBehind;
  readonly #quota: Quota;
  readonly #queue: WriteRequest[] = [];
  #revision: Revision; // the newest visible one
  #head: Revision; // the newest handed out. Invariant: #revision ≤ #head
  #draining: Promise<void> | undefined;
  #flight: Flight | undefined;
  #isFull = false; // as onRoom was told
  #flushDue = false;
  #closing: Promise<void> | undefined;

  constructor({ durable, head, loaded, options }: { durable: Durable; head: Revision; loaded: Loaded; options: MvccOptions }) {
    this.#clock = options.clock;
    this.#options = options;
    this.#durable = durable;
    this.#revision = this.#head = head;
    for (const { row, weight } of loaded.rows) this.#rows.set(row, weight);
    this.#quota = new Quota(options.bytesMax ?? Infinity, this.#rows.room);
    this.#history = new History(head, options);
    this.#behind = new WriteBehind({ ...options, onDue: () => this.#flush() });
    const store = this;
    this.#watchers = new Watchers({
      get revision() { return store.#revision; },
      get floor() { return store.#history.floor; },
      get closed() { return store.#closing !== undefined; },
      check: (revision) => this.#history.check(revision, this.#revision),
      after: (revision, prefix, max) => this.#history.after(revision, prefix, max, this.#revision),
    });
  }

  get revision(): Revision {
    return this.#revision;
  }

  async newestRevision(): Promise<Revision> {
    return this.#revision; // nobody else writes
  }

  async get(key: string): Promise<Row | undefined> {
    this.#assertOpen();
    return this.#rows.get(key);
  }

  async list(options: ListOptions): Promise<Listing> {
    this.#assertOpen();
    const { revision = this.#revision, prefix } = options;
    this.#history.check(revision, this.#revision);
    return listRows(this.#rows, options, revision, this.#history.since(revision, prefix));
  }

  async put(key: string, value: Value, expected: Revision, _signal?: AbortSignal, drafted?: (row: Row) => void): Promise<Revision> {
    assertKey(key);
    const json = freezeJson(value, { arrays: this.#options.freezeArrays ?? false }), { value: frozen } = json;
    this.#assertOpen();
    if (json.size > LARGE_SIZE) this.#options.refuseLarge?.(key, frozen, expected);
    // The row may change before its turn comes: this is only a guess at whether encoding it now is worth while.
    const payload = this.#isVolatile(key, frozen, this.#rows.get(key)?.value) ? undefined : this.#durable.codec.encode(frozen);
    return this.#enqueue({ key, value: frozen, weight: weightOf(json), expected, payload, drafted });
  }

  async delete(key: string, expected: Revision): Promise<Revision> {
    this.#assertOpen();
    return this.#enqueue({ key, value: undefined, weight: NOTHING, expected, payload: undefined });
  }

  watch(options: WatchOptions, signal: AbortSignal): AsyncIterable<WatchBatch> {
    return this.#watchers.watch(options, signal);
  }

  async compact(revision: Revision): Promise<void> {
    this.#assertOpen();
    if (revision > this.#revision) throw new StoreError("future", { revision, newest: this.#revision });
    this.#history.forget(revision);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await Promise.resolve(); // #closing is set from here on
    this.#watchers.wake();
    await this.#draining;
    this.#behind.stop(); // what was under way may have set its alarm
    try {
      const down = await this.#durable.ready({ rows: this.#rows, head: this.#head, isLast: true });
      if (down) throw down;
      await this.#durable.write(this.#changesOf(this.#behind.all()), { head: this.#head, clean: true });
    } finally {
      await this.#durable.close();
    }
  }

  #assertOpen(): void {
    if (this.#closing) throw new StoreError("closed");
  }

  #isVolatile(key: string, value: Value | undefined, previous: Value | undefined): boolean {
    return this.#options.volatile?.(key, value, previous) ?? false;
  }

  #enqueue(write: Omit<WriteRequest, "resolve" | "reject">): Promise<Revision> {
    const { promise, resolve, reject } = Promise.withResolvers<Revision>();
    this.#queue.push({ ...write, resolve, reject });
    this.#draining ??= this.#drain();
    if (this.#flight?.hangs) this.#overtake(this.#flight);
    return promise;
  }

  #flush(): void {
    this.#flushDue = true;
    this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    await Promise.resolve(); // whatever is put in the same turn goes into the same group
    while (this.#queue.length > 0 || this.#flushDue) {
      const group = this.#takeGroup();
      try {
        await this.#commit(group);
      } catch (error) {
        for (const { reject } of group) reject(error);
        this.#options.onTrouble?.(explain(error, ""));
      }
    }
    this.#draining = undefined;
  }

  #takeGroup(): WriteRequest[] {
    let bytes = 0;
    const end = this.#queue.findIndex(({ weight: { size } }, i) => i === GROUP_WRITES_MAX || (i > 0 && (bytes += size) > GROUP_BYTES_MAX));
    return this.#queue.splice(0, end < 0 ? this.#queue.length : end);
  }

  async #commit(group: readonly WriteRequest[]): Promise<void> {
    const down = await this.#durable.ready({ rows: this.#rows, head: this.#head });
    const noRoom = down ?? this.#durable.refusal();
    this.#noteRoom(noRoom ?? this.#quota.exceeded(this.#rows.room));
    const { first, rest } = this.#partVolatile(group, { head: this.#head });
    this.#head = this.#commitVolatile(first, this.#head);
    const drafted = draftWrites(rest, this.#draftContext(this.#head, { down, noRoom }));
    for (const { request, error } of drafted.refused) request.reject(error);
    for (const { request, current, byGroup } of drafted.losers) if (!byGroup) request.reject(conflict(request, current));
    this.#head = drafted.head; // also if the batch fails: then these revisions are never used

    const { draft, error } = await this.#persistOrBeOvertaken(drafted, noRoom);
    const lost = (write: AcceptedWrite): boolean => error !== undefined && (write.durable || write.event.row.revision > this.#durable.reserved);
    for (const write of draft.accepted) {
      if (lost(write)) write.request.reject(error);
      else this.#apply(write);
    }
    for (const { request, current, byGroup } of draft.losers) if (byGroup) request.reject(error ?? conflict(request, current));
    if (draft.accepted.length > 0) this.#watchers.wake();
  }

  #draftContext(head: Revision, { down, noRoom }: { readonly down?: StoreError | undefined; readonly noRoom?: StoreError | undefined } = {}): DraftContext {
    return {
      rows: this.#rows,
      head,
      isVolatile: (key, value, previous) => this.#isVolatile(key, value, previous),
      refusal: ({ key, value, room, kind, durable }) => {
        const isUrgent = (): boolean => kind === "overwrite" && value !== undefined && this.#options.urgent?.(key, value) === true;
        const exceeded = kind === "delete" ? undefined : this.#quota.refusal({ kind, growth: room - this.#rows.weightOf(key).room, bytes: this.#rows.room, isUrgent });
        if (exceeded) return exceeded;
        if (durable) return kind === "delete" || (hasSome(noRoom) && isUrgent()) ? down : noRoom;
        return kind === "create" && this.#behind.size >= BEHIND_MAX ? noRoom : undefined;
      },
    };
  }

  /** `first`: those that need not wait for the disk, nor for what else is done to their keys. Of each part the order is that of `requests`. */
  #partVolatile(requests: readonly WriteRequest[], { head, until = this.#durable.reserved, busy }: { readonly head: Revision; readonly until?: Revision; readonly busy?: ReadonlySet<string> }): { readonly first: WriteRequest[]; readonly rest: WriteRequest[] } {
    const first: WriteRequest[] = [], rest: WriteRequest[] = [], seen = new Set<string>();
    let room = Math.min(Math.min(until, this.#durable.reserved) - head, BEHIND_MAX - this.#behind.size);
    for (const request of requests) {
      const { key, value } = request;
      const isFirst = room > 0 && !seen.has(key) && !busy?.has(key) && this.#isVolatile(key, value, this.#rows.get(key)?.value);
      seen.add(key);
      if (isFirst) room--;
      (isFirst ? first : rest).push(request);
    }
    return { first, rest };
  }

  /** Makes them visible at once, with revisions after `head`. Returns the last one. */
  #commitVolatile(requests: readonly WriteRequest[], head: Revision): Revision {
    if (requests.length === 0) return head;
    const draft = draftWrites(requests, this.#draftContext(head));
    for (const { request, error } of draft.refused) request.reject(error);
    for (const { request, current } of draft.losers) request.reject(conflict(request, current));
    for (const write of draft.accepted) this.#apply(write);
    if (draft.accepted.length > 0) this.#watchers.wake();
    return draft.head;
  }

  /** What is volatile and waits does so no longer. */
  #overtake(flight: Flight): void {
    const { first, rest } = this.#partVolatile(this.#queue, { head: flight.head, until: flight.until, busy: flight.keys });
    if (first.length === 0) return;
    this.#queue.splice(0, this.#queue.length, ...rest);
    flight.head = this.#commitVolatile(first, flight.head);
  }

  /** As `#persist`. Returns the draft as it may be seen then: if it has been overtaken, its revisions are others than before. */
  async #persistOrBeOvertaken(draft: Draft, noRoom: StoreError | undefined): Promise<{ readonly draft: Draft; readonly error: StoreError | undefined }> {
    const keys = new Set(draft.accepted.map(({ request }) => request.key));
    const flight: Flight = (this.#flight = { keys, head: draft.head, until: Infinity, hangs: false });
    const alarm = this.#clock.after(OVERTAKE_MS, () => {
      flight.hangs = true;
      if (this.#flight === flight) this.#overtake(flight);
    });
    try {
      const persisted = this.#persist(draft, noRoom);
      queueMicrotask(() => { for (const { request, event } of draft.accepted) request.drafted?.(event.row); }); // what they throw is not the batch's
      const error = await persisted;
      this.#head = flight.head;
      if (flight.head === draft.head || draft.accepted.length === 0) return { draft, error };
      const after = flight.head + OVERTAKE_REVISIONS;
      const again = renumbered(draft, after);
      this.#head = again.head;
      this.#flight = { keys, head: flight.head, until: after, hangs: true };
      return { draft: again, error: error ?? (await this.#persist(again, noRoom)) };
    } finally {
      alarm.cancel();
      this.#flight = undefined;
    }
  }

  #noteRoom(refusal: StoreError | undefined): void {
    const full = refusal?.code === "full" ? refusal : undefined;
    if ((full === undefined) === !this.#isFull) return;
    this.#isFull = full !== undefined;
    this.#options.onRoom?.(full);
  }

  /** Puts on disk what must be there before the draft may be seen, and what is due to be written behind. Returns why that failed. */
  async #persist(draft: Draft, noRoom: StoreError | undefined): Promise<StoreError | undefined> {
    const flushing = this.#flushDue;
    const due = flushing && !noRoom ? this.#behind.due() : [];
    const behind = due.slice(0, FLUSH_ROWS_MAX);
    this.#flushDue = behind.length < due.length;
    const written = this.#changesOf(behind);
    const changes = new Map([...written, ...draft.durable]);
    let error: StoreError | undefined;
    if (changes.size > 0 || draft.head > this.#durable.reserved) {
      try {
        await this.#durable.write(changes, { head: draft.head, clean: false });
        for (const [key, { row }] of written) if (this.#rows.get(key) === row) this.#behind.forget(key); // others have changed meanwhile
      } catch (cause) {
        error = explain(cause, "");
        this.#flushDue = false;
      }
    }
    const trouble = error ?? noRoom;
    if (flushing && trouble) this.#options.onTrouble?.(trouble);
    if (flushing) this.#behind.rearm({ failed: trouble !== undefined });
    return error;
  }

  #changesOf(keys: readonly string[]): Changes {
    return new Map(keys.map((key) => [key, { row: this.#rows.get(key) }]));
  }

  #apply({ event, request, durable }: AcceptedWrite): void {
    const { row, type } = event;
    this.#history.push(event, this.#rows.weightOf(row.key).size, this.#clock.uptimeMs());
    if (type === "put") this.#rows.set(row, request.weight);
    else this.#rows.delete(row.key);
    if (durable) this.#behind.forget(row.key);
    else this.#behind.mark(row.key, { heartbeat: type === "put" && this.#durable.has(row.key) });
    this.#revision = row.revision;
    request.resolve(row.revision);
  }
}

/** Enough for a few small rows, and not so little that the attempt would only cost the engine. */
function hasSome(noRoom: StoreError | undefined): boolean {
  return Number(noRoom?.fields["freeBytes"] ?? 0) >= URGENT_BYTES_MIN;
}

function conflict({ key, expected }: WriteRequest, current: Row | undefined): StoreError {
  return new StoreError("conflict", { key, expected, actual: current?.revision ?? 0, current });
}
