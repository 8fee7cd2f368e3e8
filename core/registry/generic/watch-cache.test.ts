import { expect, test } from "vitest";
import { memoryStore } from "../../../storage/memory.ts";
import { type Store, StoreError, type WatchOptions } from "../../../storage/store.ts";
import { silentLog } from "../../observe/log.ts";
import { WatchCache } from "./watch-cache.ts";

const KEY = "/registry/core/pods/default/";

/** A store that can stop telling what happens, and then says so. */
function forgetful(store: Store) {
  let fail = (): void => {};
  async function* watch(options: WatchOptions, signal: AbortSignal) {
    const lost = new AbortController();
    fail = () => lost.abort();
    yield* store.watch(options, AbortSignal.any([signal, lost.signal]));
    if (!signal.aborted) {
      await refill.promise;
      throw new StoreError("overrun");
    }
  }
  const refill = Promise.withResolvers<void>();
  return { store: { ...bound(store), get revision() { return store.revision; }, watch } satisfies Store, lose: () => fail(), notice: () => refill.resolve() };
}

function bound(store: Store): Omit<Store, "revision" | "watch"> {
  return {
    newestRevision: () => store.newestRevision(), get: (key) => store.get(key), list: (options) => store.list(options), put: (...args) => store.put(...args),
    delete: (...args) => store.delete(...args), compact: (revision) => store.compact(revision), close: () => store.close(),
  };
}

const pod = (name: string, n: number) => ({ metadata: { name, namespace: "default" }, n });

test("when the store loses events, the cache reads it again and tells what differs", async () => {
  const real = await memoryStore();
  const { store, lose, notice } = forgetful(real);
  const kept = await real.put(`${KEY}kept`, pod("kept", 1), 0);
  const changed = await real.put(`${KEY}changed`, pod("changed", 1), 0);
  const gone = await real.put(`${KEY}gone`, pod("gone", 1), 0);
  const cache = new WatchCache(store);
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const life = cache.run(stop.signal, ready.resolve, silentLog);
  await ready.promise;
  const pods = cache.resource("/registry/core/pods/");
  const told: string[] = [];
  pods.listen(({ type, entry }) => told.push(`${type} ${entry.object.metadata.name} ${entry.revision}`));
  await real.put(`${KEY}seen`, pod("seen", 1), 0);
  await cache.fresh(stop.signal);

  lose();
  const second = await real.put(`${KEY}changed`, pod("changed", 2), changed);
  const deleted = await real.delete(`${KEY}gone`, gone);
  const added = await real.put(`${KEY}added`, pod("added", 1), 0);
  notice();
  await cache.fresh(stop.signal);
  expect(told.slice(1)).toEqual([`MODIFIED changed ${second}`, `ADDED added ${added}`, `DELETED gone ${added}`]);
  expect(deleted).toBeLessThan(added);
  expect([...pods.under(KEY)].map(({ object, revision }) => [object.metadata.name, revision])).toEqual([["added", added], ["changed", second], ["kept", kept], ["seen", gone + 1]]);
  const last = await real.put(`${KEY}after`, pod("after", 1), 0);
  await cache.fresh(stop.signal);
  expect(pods.get(`${KEY}after`)?.revision).toBe(last);
  stop.abort();
  await life;
  await real.close();
});

test("a window has room for many small events, and for fewer large ones", async () => {
  const store = await memoryStore();
  const cache = new WatchCache(store);
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const life = cache.run(stop.signal, ready.resolve, silentLog);
  await ready.promise;
  const write = async (name: string, count: number, bytes: number): Promise<number> => {
    let revision = 0;
    for (let i = 0; i < count; i++) revision = await store.put(`/registry/core/${name}/a`, { metadata: { name: "a" }, text: "x".repeat(bytes), i }, revision);
    await cache.fresh(stop.signal);
    return cache.resource(`/registry/core/${name}/`).after(cache.resource(`/registry/core/${name}/`).oldest).length;
  };
  expect(await write("small", 1_000, 10)).toBe(1_000);
  expect(await write("large", 400, 50_000)).toBeLessThanOrEqual(100);
  expect(await write("huge", 80, 100_000)).toBe(80); // never less than a client needs to come back
  stop.abort();
  await life;
});

test("what was before the store was opened is forgotten: a watch from then is told to list again, also of resources that were known before anything was read", async () => {
  const store = await memoryStore();
  await store.put(`${KEY}early`, pod("early", 1), 0);
  const revision = await store.put(`${KEY}late`, pod("late", 1), 0);
  const cache = new WatchCache(store);
  const pods = cache.resource("/registry/core/pods/"), none = cache.resource("/registry/core/secrets/");
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const life = cache.run(stop.signal, ready.resolve, silentLog);
  await ready.promise;
  for (const resource of [pods, none, cache.resource("/registry/apps/deployments/")]) {
    expect(() => resource.after(revision - 1)).toThrow("too old resource version");
    expect(resource.after(revision)).toEqual([]);
  }
  stop.abort();
  await life.catch(() => undefined);
});
