import { expect, test } from "vitest";
import { memoryStore } from "../../../storage/memory.ts";
import { type Store, StoreError, type WatchOptions } from "../../../storage/store.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import { Changes } from "./changes.ts";
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
  const cache = new WatchCache(store, systemClock);
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

test("a watch whose client does not read is ended, and can begin again after what was read last", async () => {
  const store = await memoryStore();
  const cache = new WatchCache(store, systemClock);
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const life = cache.run(stop.signal, ready.resolve, silentLog);
  await ready.promise;
  const pods = cache.resource("/registry/core/pods/");
  const watch = new Changes(pods, { after: cache.revision, signal: stop.signal });
  const happens = watch.happens();
  const revision = await store.put(`${KEY}read`, pod("read", 1), 0);
  await happens;
  expect(watch.take()?.map(({ entry }) => entry.revision)).toEqual([revision]);
  expect([watch.take(), watch.isOver]).toEqual([undefined, false]);
  await Promise.all(Array.from({ length: 16_385 }, (_, i) => store.put(`${KEY}${i}`, pod(String(i), 1), 0)));
  await cache.fresh(stop.signal);
  expect([watch.take(), watch.isOver]).toEqual([undefined, true]);
  const again = new Changes(pods, { after: revision, signal: stop.signal });
  expect(again.take()).toHaveLength(16_385);
  const ends = again.happens();
  stop.abort();
  await ends;
  expect(again.isOver).toBe(true);
  again.stop();
  await life;
});

test("what was before the store was opened is forgotten: a watch from then is told to list again, also of resources that were known before anything was read", async () => {
  const store = await memoryStore();
  await store.put(`${KEY}early`, pod("early", 1), 0);
  const revision = await store.put(`${KEY}late`, pod("late", 1), 0);
  const cache = new WatchCache(store, systemClock);
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

test("who gives up waiting for a revision that never comes is forgotten; the others are still told", async () => {
  const store = await memoryStore();
  const cache = new WatchCache(store, systemClock);
  const stop = new AbortController(), late = new AbortController();
  const ready = Promise.withResolvers<void>();
  const life = cache.run(stop.signal, ready.resolve, silentLog);
  await ready.promise;
  const never = Array.from({ length: 3 }, () => cache.reach(Number.MAX_SAFE_INTEGER, late.signal));
  const soon = cache.reach(cache.revision + 1, stop.signal);
  expect(cache.waiting).toBe(4);
  late.abort(new Error("too late"));
  expect((await Promise.allSettled(never)).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(cache.waiting).toBe(1);
  await store.put(`${KEY}one`, pod("one", 1), 0);
  await soon;
  expect(cache.waiting).toBe(0);
  stop.abort();
  await life.catch(() => undefined);
});
