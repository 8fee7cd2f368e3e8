import { expect, test } from "vitest";
import { memoryStore } from "../../../storage/memory.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import type { CacheEvent } from "./audience.ts";
import { Commits } from "./commits.ts";
import { WatchCache } from "./watch-cache.ts";

test("who writes or deletes an object is answered with the very entry that watchers are told of: it is encoded once", async () => {
  const store = await memoryStore();
  const all = new WatchCache(store, systemClock);
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const life = all.run(stop.signal, ready.resolve, silentLog);
  await ready.promise;
  const cache = all.resource("/registry/core/pods/");
  const told: CacheEvent[] = [];
  cache.listen((event) => void told.push(event));
  const commits = new Commits({ store, all, cache, form: undefined, groupResource: { group: "", resource: "pods" } });
  const put = await commits.put("/registry/core/pods/default/a", { metadata: { name: "a", namespace: "default" } } as ApiObject, undefined, stop.signal);
  const { removed } = await commits.remove(put, {}, stop.signal);
  expect(told.map(({ type, entry }) => [type, entry.object.metadata.resourceVersion])).toEqual([["ADDED", String(put.revision)], ["DELETED", String(put.revision + 1)]]);
  expect(told[0]!.entry).toBe(put);
  expect(told[1]!.entry).toBe(removed);
  stop.abort();
  await life;
});
