import { expect, test } from "vitest";
import { storeError } from "../../../storage/disk.ts";
import { meaningOf } from "../../../storage/etcd/members.ts";
import { MemoryDisk, memoryStore } from "../../../storage/memory.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { StatusError } from "../../api/meta/status-error.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import type { CacheEvent } from "./audience.ts";
import type { Cached } from "./cached.ts";
import { asStatus, Commits } from "./commits.ts";
import { WatchCache } from "./watch-cache.ts";

const POD = { metadata: { name: "a", namespace: "default" } } as ApiObject;
const KEY = "/registry/core/pods/default/a";

async function podCommits(disk = new MemoryDisk()) {
  const store = await memoryStore({ disk });
  const all = new WatchCache(store, systemClock);
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const life = all.run(stop.signal, ready.resolve, silentLog);
  await ready.promise;
  const cache = all.resource("/registry/core/pods/");
  const told: CacheEvent[] = [];
  cache.listen((event) => void told.push(event));
  const commits = new Commits({ store, all, cache, form: undefined, groupResource: { group: "", resource: "pods" } });
  return { commits, cache, told, signal: stop.signal, async [Symbol.asyncDispose]() { stop.abort(); await life; } };
}

test("who writes or deletes an object is answered with the very entry that watchers are told of: it is encoded once", async () => {
  await using at = await podCommits();
  const { commits, told, signal } = at;
  const put = await commits.put(KEY, POD, undefined, signal);
  const { removed } = await commits.remove(put, {}, signal);
  expect(told.map(({ type, entry }) => [type, entry.object.metadata.resourceVersion])).toEqual([["ADDED", String(put.revision)], ["DELETED", String(put.revision + 1)]]);
  expect(told[0]!.entry).toBe(put);
  expect(told[1]!.entry).toBe(removed);
});

test("what is answered can be made ready while the disk is at work, before anybody else sees it", async () => {
  const disk = new MemoryDisk();
  await using at = await podCommits(disk);
  const { commits, cache, told, signal } = at;
  let answer = (): void => {};
  disk.hang = new Promise((resolve) => (answer = resolve));
  const ready = Promise.withResolvers<Cached>();
  const put = commits.put(KEY, POD, undefined, signal, { ahead: ready.resolve });
  const entry = await ready.promise;
  const bytes = entry.json();
  expect(cache.get(KEY)).toBeUndefined();
  answer();
  expect(await put).toBe(entry);
  expect(told.map(({ entry: seen }) => seen)).toEqual([entry]);
  expect(entry.json()).toBe(bytes);
});

test("what cannot be made ready is found out when it is answered: the write happens, and those beside it are made ready", async () => {
  const disk = new MemoryDisk();
  await using at = await podCommits(disk);
  const { commits, cache, signal } = at;
  let answer = (): void => {};
  disk.hang = new Promise((resolve) => (answer = resolve));
  const ready = Promise.withResolvers<Cached>();
  const broken = commits.put(KEY, POD, undefined, signal, { ahead: () => { throw new Error("not converted"); } });
  const other = commits.put(`${KEY}-b`, { metadata: { name: "a-b", namespace: "default" } } as ApiObject, undefined, signal, { ahead: ready.resolve });
  const entry = await ready.promise;
  answer();
  expect(await broken).toBe(cache.get(KEY));
  expect(await other).toBe(entry);
});

test("a disk without room is not blamed for a limit of the store's own, which is told in etcd's words", () => {
  const ofEtcd = meaningOf({ code: 8, details: "etcdserver: mvcc: database space exceeded" } as never, "https://etcd:2379");
  const ofOurs = storeError("full", { reason: "etcdserver: mvcc: database space exceeded", remedy: "delete objects that nobody needs" });
  const told = [storeError("full", { path: "/var/lib/coracle/server/db", reason: "no space left on the device" }), ofEtcd, ofOurs].map((error) => asStatus(error) as StatusError);
  expect(told.map(({ message, status }) => [status.code, message])).toEqual([
    [507, "the server's disk is full: free some space and try again"],
    [500, "etcdserver: mvcc: database space exceeded: compact and defragment etcd, or give it more room (--quota-backend-bytes); then: etcdctl alarm disarm"],
    [500, "etcdserver: mvcc: database space exceeded: delete objects that nobody needs"],
  ]);
});
