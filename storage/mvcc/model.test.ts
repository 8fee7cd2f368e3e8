/** Whatever happens to a store and to its disk, in whatever order: what it tells is what was told to whoever wrote. */
import { expect, test } from "vitest";
import { mulberry32 } from "../../test/mulberry32.ts";
import { settle, TestStoreClock } from "../../test/store-clock.ts";
import { storeError } from "../disk.ts";
import { MemoryDisk } from "../memory.ts";
import { type Listing, type Revision, type Row, type Store, StoreError, type Value } from "../store.ts";
import { openMvcc } from "./mvcc.ts";

const SEEDS = Number(process.env["MODEL_SEEDS"] ?? 15), FIRST = Number(process.env["MODEL_FIRST"] ?? 1), STEPS = 300;
const KEYS = ["/d/0", "/d/1", "/d/2", "/v/0", "/v/1", "/v/2"];
const isVolatile = (key: string, value: Value | undefined, previous: Value | undefined): boolean => key.startsWith("/v/") && value?.["holder"] === previous?.["holder"];

type State = ReadonlyMap<string, { readonly revision: Revision; readonly n: unknown }>;
const stateOf = (rows: readonly Row[]): State => new Map(rows.map(({ key, revision, value }) => [key, { revision, n: value["n"] }]));

/** All there was at a revision, some rows at a time. */
async function pages(store: Store, revision: Revision, limit: number): Promise<Listing[]> {
  const all: Listing[] = [];
  for (let after: string | undefined; ; ) {
    const page = await store.list({ prefix: "", revision, limit, ...(after === undefined ? {} : { after }) });
    all.push(page);
    if (!page.more) return all;
    after = page.rows.at(-1)!.key;
  }
}

/** How many rows each page has, and how many are left after it. */
function pageSizes(total: number, limit: number): (readonly [rows: number, remaining: number])[] {
  return Array.from({ length: Math.max(1, Math.ceil(total / limit)) }, (_, i) => [Math.min(limit, total - i * limit), Math.max(0, total - (i + 1) * limit)]);
}

/** One life of a store, from its opening to its end. */
class Life {
  readonly store: Store;
  readonly opened: Revision;
  readonly now: Map<string, { readonly revision: Revision; readonly n: unknown }>;
  readonly states = new Map<Revision, State>(); // after each event
  readonly stop = new AbortController();
  readonly acked = new Map<Revision, { readonly key: string; readonly n: unknown }>();
  newest: Revision;
  broken: unknown;

  constructor(store: Store, rows: readonly Row[]) {
    this.store = store;
    this.opened = this.newest = store.revision;
    this.now = new Map(stateOf(rows));
    this.states.set(this.opened, new Map(this.now));
    void this.#follow().catch((error: unknown) => { this.broken ??= error; });
  }

  async #follow(): Promise<void> {
    for await (const { events, revision } of this.store.watch({ prefix: "/", after: this.opened }, this.stop.signal)) {
      for (const { type, row, previous } of events) {
        expect(row.revision).toBeGreaterThan(this.newest);
        expect(previous && { revision: previous.revision, n: previous.value["n"] }).toEqual(this.now.get(row.key));
        if (type === "put") this.now.set(row.key, { revision: row.revision, n: row.value["n"] });
        else this.now.delete(row.key);
        this.newest = row.revision;
        this.states.set(row.revision, new Map(this.now));
      }
      expect(revision).toBeGreaterThanOrEqual(this.newest);
    }
  }
}

async function run(seed: number): Promise<void> {
  const random = mulberry32(seed), below = (n: number): number => Math.floor(random() * n), chance = (p: number): boolean => random() < p;
  const disk = new MemoryDisk(), clock = new TestStoreClock();
  let epoch = 0, counter = 0, highest = 0, release = (): void => {};
  let faults = 0;
  disk.fault = () => (faults > 0 ? (faults--, { error: new StoreError(chance(0.5) ? "unavailable" : "full", { reason: "broken" }), landed: chance(0.5) }) : undefined);
  /** By key: what may be on disk although nobody was told so. */
  const maybe = new Map<string, Set<unknown>>();
  const mayBe = (key: string, n: unknown): void => void (maybe.get(key) ?? maybe.set(key, new Set()).get(key)!).add(n);
  let onDisk = new Map<string, unknown>(); // of durable writes that were acknowledged

  async function open(): Promise<Life> {
    const mine = ++epoch;
    const store = await openMvcc(async ({ create }) => {
      if (mine !== epoch) throw storeError("unavailable", { reason: "dead" });
      return disk.open({ create });
    }, { clock, volatile: isVolatile, freezeArrays: true, historyRevisionsMax: 50, flushEveryMs: 1000, heartbeatFlushEveryMs: 10_000 });
    expect(store.revision).toBeGreaterThanOrEqual(highest);
    return new Life(store, (await store.list({ prefix: "" })).rows);
  }

  let life = await open();

  function write(): void {
    const key = KEYS[below(KEYS.length)]!, mine = life, before = mine.now.get(key), n = ++counter;
    const expected = chance(0.75) ? before?.revision ?? 0 : Math.max(0, mine.newest + below(8) - 2); // perhaps of a write that is on its way
    const isDelete = chance(0.25);
    mayBe(key, isDelete ? undefined : n);
    const value = { n, holder: key.startsWith("/v/") && chance(0.2) ? n : 0 };
    (isDelete ? mine.store.delete(key, expected) : mine.store.put(key, value, expected)).then((revision) => {
      expect(mine.acked.has(revision)).toBe(false);
      mine.acked.set(revision, { key, n: isDelete ? undefined : n });
      highest = Math.max(highest, revision);
      if (!key.startsWith("/d/") || mine !== life) return;
      if (isDelete) onDisk.delete(key);
      else onDisk.set(key, n);
      for (const [other, values] of maybe) if (other.startsWith("/d/") && pending.get(other) === undefined) values.clear();
    }, (error: unknown) => {
      if (!(error instanceof StoreError)) throw error;
      expect(["conflict", "unavailable", "full", "closed"]).toContain(error.code);
    }).catch((error: unknown) => { mine.broken ??= error; }).finally(() => void pending.set(key, (pending.get(key) ?? 1) - 1 || undefined));
    pending.set(key, (pending.get(key) ?? 0) + 1);
  }
  const pending = new Map<string, number | undefined>();

  async function end(how: "crash" | "close"): Promise<void> {
    const former = life;
    release();
    let inOrder = false;
    if (how === "close") {
      const closing = former.store.close().then(() => true, () => false);
      for (let i = 0; i < 5; i++) { await settle(); clock.pass(500); }
      inOrder = await closing;
    }
    const expected = new Map(former.now);
    for (const [revision, { key, n }] of [...former.acked].filter(([one]) => one > former.newest).sort(([a], [b]) => a - b)) { // watches end when closing begins
      if (n === undefined) expected.delete(key);
      else expected.set(key, { revision, n });
    }
    highest = Math.max(highest, former.newest);
    former.stop.abort();
    epoch++;
    disk.crash();
    faults = 0;
    disk.full = undefined;
    await settle();
    life = await open();
    if (inOrder) expect(life.now).toEqual(expected);
    for (const key of KEYS.filter((one) => one.startsWith("/d/"))) {
      const found = life.now.get(key)?.n;
      if (found !== onDisk.get(key)) expect([key, found, maybe.get(key)?.has(found)]).toEqual([key, found, true]);
    }
    maybe.clear();
    pending.clear();
    onDisk = new Map([...life.now].map(([key, { n }]) => [key, n]));
  }

  for (let step = 0; step < STEPS; step++) {
    const dice = random();
    if (dice < 0.6) write();
    else if (dice < 0.7) clock.pass(below(4000));
    else if (dice < 0.74) faults = below(3);
    else if (dice < 0.78) {
      release();
      const { promise, resolve } = Promise.withResolvers<void>();
      disk.hang = promise;
      release = () => { disk.hang = undefined; resolve(); };
    } else if (dice < 0.83) release();
    else if (dice < 0.85) disk.full = disk.full ? undefined : storeError("full", { freeBytes: 0 });
    else if (dice < 0.87) await end("crash");
    else if (dice < 0.89) await end("close");
    else await settle();
    if (chance(0.3)) await settle();
    if (chance(0.2)) {
      await settle();
      expect(stateOf((await life.store.list({ prefix: "" })).rows)).toEqual(life.now);
      const at = [...life.states.keys()][below(life.states.size)]!;
      const limit = 1 + below(KEYS.length);
      const listed = await pages(life.store, at, limit).catch((error: unknown) => { expect((error as StoreError).code).toBe("compacted"); });
      const then = life.states.get(at)!;
      if (listed) expect([stateOf(listed.flatMap(({ rows }) => rows)), listed.map(({ rows, remaining }) => [rows.length, remaining])]).toEqual([then, pageSizes(then.size, limit)]);
    }
    if (life.broken) throw life.broken;
  }
  await end("close");
}

test("nothing is lost, nothing is told twice, nobody is told what is not so", async () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) await run(seed).catch((error: unknown) => { throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error }); });
});
