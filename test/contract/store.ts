/**
 * What every implementation of the store interface must do (storage/store.ts). Run over memory and LevelDB by store.test.ts, and over etcd.
 *
 *   storeContract("LevelDB", async () => ({ store, reopen, [Symbol.asyncDispose] }));
 */
import { describe, expect, test } from "vitest";
import { StoreError, type Revision, type Row, type Store, type StoreEvent, type Value } from "../../storage/store.ts";

export interface StoreUnderTest extends AsyncDisposable {
  readonly store: Store;
  /** Closes the store in order and opens it again. */
  reopen(): Promise<Store>;
}

export interface StoreKnobs {
  /** Events a watcher may be behind before it is overrun. */
  readonly backlogMax?: number;
}

/** `dispose`: takes away what it is kept in. */
export function reopenable(store: Store, open: () => Promise<Store>, dispose: () => void): StoreUnderTest {
  return {
    get store() { return store; },
    async reopen() {
      await store.close();
      return (store = await open());
    },
    async [Symbol.asyncDispose]() {
      await store.close();
      dispose();
    },
  };
}

export function storeContract(name: string, open: (knobs?: StoreKnobs) => Promise<StoreUnderTest>): void {
  describe(`store contract: ${name}`, () => {
    test("a new store is empty, and its revision is no longer before everything", async () => {
      await using at = await open();
      expect(at.store.revision).toBeGreaterThan(0);
      expect(await at.store.list({ prefix: "/" })).toEqual({ rows: [], revision: at.store.revision, more: false, remaining: 0 });
      expect(await at.store.get("/a")).toBeUndefined();
    });

    test("writes compare before they write, and say what they met", async () => {
      await using at = await open();
      const { store } = at;
      const created = await store.put("/a", { n: 1 }, 0);
      const updated = await store.put("/a", { n: 2 }, created);
      expect(updated).toBeGreaterThan(created);
      const row = { key: "/a", value: { n: 2 }, revision: updated };
      expect(await store.get("/a")).toEqual(row);
      for (const [what, write, current] of [
        ["create of what is there", () => store.put("/a", {}, 0), row],
        ["update of an older revision", () => store.put("/a", {}, created), row],
        ["delete of an older revision", () => store.delete("/a", created), row],
        ["update of what is not there", () => store.put("/b", {}, created), undefined],
        ["delete of what is not there", () => store.delete("/b", created), undefined],
      ] as const) {
        const error = await failure(write());
        expect([what, error.code, error.current]).toEqual([what, "conflict", current]);
      }
      const deleted = await store.delete("/a", updated);
      expect(deleted).toBeGreaterThan(updated);
      expect(await store.get("/a")).toBeUndefined();
      expect(await store.put("/a", { n: 3 }, 0)).toBeGreaterThan(deleted);
    });

    test("of many writes that expect the same revision one wins", async () => {
      await using at = await open();
      const created = await at.store.put("/a", { n: 0 }, 0);
      const results = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => at.store.put("/a", { n }, created)));
      const won = results.flatMap((result, n) => (result.status === "fulfilled" ? [{ n, revision: result.value }] : []));
      expect(won).toHaveLength(1);
      expect(await at.store.get("/a")).toEqual({ key: "/a", value: { n: won[0]!.n }, revision: won[0]!.revision });
      for (const result of results) if (result.status === "rejected") expect((result.reason as StoreError).current?.revision).toBe(won[0]!.revision);
    });

    test("what was JSON comes back as it was, now and after a restart", async () => {
      await using at = await open();
      for (const [i, value] of ODD_VALUES.entries()) await at.store.put(`/odd/${String(i).padStart(3, "0")}`, JSON.parse(value) as Value, 0);
      const wide = { max: 2n ** 63n - 1n, min: -(2n ** 63n), odd: { list: [9007199254740993n] }, text: "9007199254740993" };
      await at.store.put("/wide", wide, 0);
      await at.store.put("/undefined", { a: undefined, b: { c: undefined, d: [1] } }, 0);
      for (const reach of [() => at.store, () => at.reopen()]) {
        const store = await reach();
        const { rows } = await store.list({ prefix: "/odd/" });
        for (const [i, value] of ODD_VALUES.entries()) expect(JSON.stringify(rows[i]?.value)).toBe(JSON.stringify(JSON.parse(value)));
        expect((await store.get("/wide"))!.value).toEqual(wide);
        expect(Object.keys((await store.get("/undefined"))!.value)).toEqual(["b"]);
        expect(JSON.stringify((await store.get("/undefined"))!.value)).toBe('{"b":{"d":[1]}}');
      }
    });

    test("listing goes in the order of bytes, in pages, and counts what remains", async () => {
      await using at = await open();
      const keys = ["/p/a", "/p/a/b", "/p/a0", "/p/b", "/p/\uffff", "/p/\u{10000}"];
      for (const key of ["/o", "/q", ...keys.toReversed()]) await at.store.put(key, { key }, 0);
      const all = await at.store.list({ prefix: "/p/" });
      expect(all.rows.map((row) => row.key)).toEqual(keys);
      expect(all.revision).toBe(at.store.revision);
      const pages: string[][] = [];
      for (let after: string | undefined, more = true; more; ) {
        const page = await at.store.list({ prefix: "/p/", limit: 4, ...(after !== undefined && { after }) });
        pages.push(page.rows.map((row) => row.key));
        expect(page.remaining).toBe(page.more ? 2 : 0);
        ({ more } = page);
        after = page.rows.at(-1)?.key;
      }
      expect(pages).toEqual([keys.slice(0, 4), keys.slice(4)]);
      expect((await at.store.list({ prefix: "/p/", limit: 6 })).more).toBe(false);
      expect((await at.store.list({ prefix: "/p/", after: "/a" })).rows).toHaveLength(6);
      expect((await at.store.list({ prefix: "/p/", after: "/z" })).rows).toHaveLength(0);
    });

    test("revisions and rows survive a restart", async () => {
      await using at = await open();
      const revision = await at.store.put("/a", { n: 1 }, 0);
      await at.store.delete("/b", await at.store.put("/b", {}, 0));
      const newest = at.store.revision;
      const store = await at.reopen();
      expect(store.revision).toBeGreaterThanOrEqual(newest);
      expect((await store.list({ prefix: "/" })).rows).toEqual([{ key: "/a", value: { n: 1 }, revision }]);
      expect(await store.put("/b", {}, 0)).toBeGreaterThan(newest);
    });

    test("a watch sends every event of its prefix once, in order, with the row before", async () => {
      await using at = await open();
      const { store } = at;
      await store.put("/other", {}, 0);
      const start = store.revision;
      const created = await store.put("/w/a", { n: 1 }, 0);
      const stop = new AbortController();
      const seen = collect(store, "/w/", start, stop.signal, 3);
      const updated = await store.put("/w/a", { n: 2 }, created);
      await store.put("/other2", {}, 0);
      const deleted = await store.delete("/w/a", updated);
      const a = (n: number, revision: Revision): Row => ({ key: "/w/a", value: { n }, revision });
      expect(await seen).toEqual([
        { type: "put", row: a(1, created) },
        { type: "put", row: a(2, updated), previous: a(1, created) },
        { type: "delete", row: a(2, deleted), previous: a(2, updated) },
      ]);
      stop.abort();
    });

    test("a batch's revision tells how fresh the watcher is, events or not", async () => {
      await using at = await open();
      const stop = new AbortController();
      const batches = at.store.watch({ prefix: "/quiet/", after: at.store.revision }, stop.signal)[Symbol.asyncIterator]();
      const written = await at.store.put("/loud/a", {}, 0);
      for (let revision = 0; revision < written; ) {
        const { value } = await batches.next();
        expect(value.events).toEqual([]);
        expect(value.revision).toBeGreaterThanOrEqual(revision);
        revision = value.revision;
      }
      stop.abort();
      expect((await batches.next()).done).toBe(true);
    });

    test("a watch ends without error when its signal aborts, before or while it waits", async () => {
      await using at = await open();
      const stop = new AbortController();
      const ended = drain(at.store, at.store.revision, stop.signal);
      await Promise.resolve();
      stop.abort();
      await ended;
      await drain(at.store, at.store.revision, stop.signal);
    });

    test("compacted history can be neither listed nor watched, what is after it can", async () => {
      await using at = await open();
      const { store } = at;
      const first = await store.put("/a", { n: 1 }, 0);
      const second = await store.put("/a", { n: 2 }, first);
      const third = await store.put("/a", { n: 3 }, second);
      expect((await store.list({ prefix: "/", revision: first })).rows[0]?.value).toEqual({ n: 1 });
      await store.compact(third);
      expect((await failure(store.list({ prefix: "/", revision: first }))).code).toBe("compacted");
      expect((await failure(drain(store, first, AbortSignal.timeout(5000)))).code).toBe("compacted");
      expect((await store.list({ prefix: "/", revision: third })).rows[0]?.value).toEqual({ n: 3 });
      const fourth = await store.put("/a", { n: 4 }, third);
      expect((await collect(store, "/", third, AbortSignal.timeout(5000), 1)).map((event) => event.row.revision)).toEqual([fourth]);
    });

    test("the future can be neither listed nor watched", async () => {
      await using at = await open();
      const future = at.store.revision + 1000;
      expect((await failure(at.store.list({ prefix: "/", revision: future }))).code).toBe("future");
      expect((await failure(drain(at.store, future, AbortSignal.timeout(5000)))).code).toBe("future");
    });

    test("a watcher that falls behind is overrun, and nobody else notices", async () => {
      await using at = await open({ backlogMax: 50 });
      const { store } = at;
      const stop = new AbortController();
      const start = store.revision;
      const slow = store.watch({ prefix: "/", after: start }, stop.signal)[Symbol.asyncIterator]();
      await slow.next();
      const fast = collect(store, "/", start, stop.signal, 5000);
      for (let i = 0; i < 100; i++) await Promise.all(Array.from({ length: 50 }, (_, j) => store.put(`/${i}/${j}`, {}, 0)));
      const error = await failure((async () => { for (let next = await slow.next(); !next.done; next = await slow.next()); })());
      expect(error.code).toBe("overrun");
      expect(await fast).toHaveLength(5000);
      stop.abort();
    });

    test("after close nothing is answered, and watches have ended", async () => {
      await using at = await open();
      const { store } = at;
      const revision = await store.put("/a", {}, 0);
      const watching = failure(drain(store, revision, AbortSignal.timeout(5000)));
      const writing = store.put("/b", {}, 0);
      await store.close();
      expect(await writing).toBeGreaterThan(revision); // it was on its way
      expect((await watching).code).toBe("closed");
      for (const call of [() => store.get("/a"), () => store.list({ prefix: "/" }), () => store.put("/a", {}, 0), () => store.delete("/a", revision), () => drain(store, revision, AbortSignal.timeout(5000))])
        expect((await failure(call())).code).toBe("closed");
    });

    test("whatever is written, lists at any revision and watches from any revision tell the same story", async () => {
      await using at = await open();
      const { store } = at;
      const random = seeded(20260);
      const states = new Map<Revision, ReadonlyMap<string, Row>>([[store.revision, new Map()]]); // the model: every state there was
      const events: StoreEvent[] = [];
      const watching = new AbortController();
      const live = collect(store, "/", store.revision, watching.signal, 600);
      let now = new Map<string, Row>();
      for (let i = 0; i < 600; i++) {
        const key = `/${"abc"[random(3)]}/${random(12)}`;
        const previous = now.get(key);
        const remove = previous !== undefined && random(3) === 0;
        const value = { i, kind: "Thing", ...(random(2) && { labels: { [`l-${random(5)}`]: "x" } }) };
        const revision = remove ? await store.delete(key, previous.revision) : await store.put(key, value, previous?.revision ?? 0);
        now = new Map(now);
        const row = { key, value: remove ? previous.value : value, revision };
        if (remove) now.delete(key);
        else now.set(key, row);
        states.set(revision, now);
        events.push({ type: remove ? "delete" : "put", row, ...(previous && { previous }) });
      }
      const revisions = [...states.keys()];
      expect(revisions).toEqual(revisions.toSorted((a, b) => a - b));
      expect(await live).toEqual(events);
      for (let i = 0; i < 60; i++) {
        const revision = revisions[random(revisions.length)]!;
        const prefix = ["/", "/a/", "/b/1", "/c/"][random(4)]!;
        const expected = [...states.get(revision)!.values()].filter((row) => row.key.startsWith(prefix)).sort((a, b) => (a.key < b.key ? -1 : 1));
        expect(await store.list({ prefix, revision })).toEqual({ rows: expected, revision, more: false, remaining: 0 });
        const limit = 1 + random(6);
        for (let at = 0, after: string | undefined; at < expected.length; at += limit) {
          const page = await store.list({ prefix, revision, limit, ...(after !== undefined && { after }) });
          const remaining = Math.max(0, expected.length - at - limit);
          expect(page).toEqual({ rows: expected.slice(at, at + limit), revision, more: remaining > 0, remaining });
          after = page.rows.at(-1)!.key;
        }
        const later = events.filter((event) => event.row.revision > revision && event.row.key.startsWith(prefix));
        expect(await collect(store, prefix, revision, watching.signal, later.length)).toEqual(later);
      }
      watching.abort();
      expect((await (await at.reopen()).list({ prefix: "/" })).rows).toEqual([...now.values()].sort((a, b) => (a.key < b.key ? -1 : 1)));
    });
  });
}

/** JSON that encodings tend to trip over. Every one is legal in an object of Kubernetes somewhere. */
const ODD_VALUES = [
  "{}", '{"a":[],"b":{},"c":null,"d":"","e":false}', '{"data":{"__proto__":"x","constructor":"y","hasOwnProperty":"z","toJSON":"t","__keys__":"k","length":"1","read":"r"}}',
  '{"__proto__":{"a":1}}', '{"a":{"0":1,"1":2},"b":[null,[null]]}', '{"n":[0,1,-1,127,128,255,256,65535,65536,4294967295,4294967296,-128,-129,-32769,-2147483649,9007199254740991,1.5,1e300,-0.1,5e-324]}',
  '{"s":"\\u0000\\n\\"\\\\ ü 漢 \\ud83d\\ude00"}', `{"long":"${"x".repeat(70_000)}"}`, '{"metadata":{"labels":{"app.kubernetes.io/name":"x"},"managedFields":[{"fieldsV1":{"f:spec":{"k:{\\"name\\":\\"c\\"}":{".":{},"f:image":{}}}}}]}}',
  `{"wide":{${Array.from({ length: 300 }, (_, i) => `"k${i}":${i}`).join(",")}}}`, `{"deep":${'{"a":'.repeat(100)}1${"}".repeat(100)}}`, '{"a":1,"b":2}', '{"b":1,"a":2}', '{"":{"":""}}',
];

async function failure(call: Promise<unknown>): Promise<StoreError> {
  const error = await call.then(() => undefined, (reason: unknown) => reason);
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

/** The next `count` events. */
async function collect(store: Store, prefix: string, after: Revision, signal: AbortSignal, count: number): Promise<StoreEvent[]> {
  const events: StoreEvent[] = [];
  if (count === 0) return events;
  for await (const batch of store.watch({ prefix, after }, signal)) {
    events.push(...batch.events);
    if (events.length >= count) break;
  }
  return events;
}

async function drain(store: Store, after: Revision, signal: AbortSignal): Promise<void> {
  for await (const { revision } of store.watch({ prefix: "/", after }, signal)) expect(revision).toBeGreaterThanOrEqual(after);
}

function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
