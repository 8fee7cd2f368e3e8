import { expect, test } from "vitest";
import { MemoryDisk, memoryStore } from "../../../storage/memory.ts";
import { StoreError } from "../../../storage/store.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import type { Resource } from "./resource.ts";
import { ResourceStore } from "./store.ts";
import { WatchCache } from "./watch-cache.ts";

test("what nothing holds is deleted from a full disk, without the mark there is no room for", async () => {
  const disk = new MemoryDisk();
  const store = await memoryStore({ disk });
  const all = new WatchCache(store, systemClock);
  const stop = new AbortController();
  const ready = Promise.withResolvers<void>();
  const life = all.run(stop.signal, ready.resolve, silentLog);
  await ready.promise;
  const resource = { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true, hasStatus: true, canonical: <T>(object: T) => object };
  const definition: Resource = { group: "", version: "v1", plural: "pods", kind: "Pod", gracePeriodSeconds: (_, requested) => requested ?? 30 };
  const pods = new ResourceStore(resource, definition, { store, cache: all, clock: systemClock, random: { uuid: () => "u" } as never });
  const options = { signal: stop.signal, context: { user: { name: "a", groups: [] }, nowMs: 0, dryRun: false, uuid: () => "u" } };
  await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "b" } as never }, options);

  disk.full = new StoreError("full");
  await expect(pods.delete("b", "a", {}, options)).rejects.toThrow("the server's disk is full");
  expect((await pods.delete("b", "a", { gracePeriodSeconds: 0 }, options)).done).toBe(true);
  expect(pods.select({ namespace: "b" })).toEqual([]);
  stop.abort();
  await life;
});
