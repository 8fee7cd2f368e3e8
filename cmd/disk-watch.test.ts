import { expect, test } from "vitest";
import { healthPaths } from "../core/server/health.ts";
import type { Log } from "../core/observe/log.ts";
import { storeError } from "../storage/disk.ts";
import { MemoryDisk, memoryStore } from "../storage/memory.ts";
import { SimulatedClock } from "../test/simulator/seeded.ts";
import { diskWatch } from "./disk-watch.ts";
import { healthChecks } from "./health-checks.ts";

test("while the disk hangs all is read and watched, writes wait, /readyz names the check that fails; then everything goes on by itself and nothing is lost", async () => {
  const clock = new SimulatedClock();
  const told: string[] = [];
  const tell = (message: string): void => void told.push(message);
  const disk = new MemoryDisk();
  const watch = diskWatch({ path: "/db", clock, log: { error: tell, info: tell } as unknown as Log });
  const store = await memoryStore({ disk, clock, onDisk: watch.onDisk });
  const yes = (): boolean => true;
  const health = healthPaths(healthChecks({ steps: { store: yes, informers: yes, webhooks: yes, fairness: yes, customResources: yes, bootstrap: yes, aggregation: yes, registration: yes }, storeTrouble: () => watch.trouble(), isStopping: () => false }));
  const readyz = async (): Promise<string> => {
    const answer = (await health({ path: "/readyz", method: "GET", query: new URLSearchParams("verbose"), header: () => undefined } as never, {} as never)) as unknown as { status: number; body: string };
    return `${answer.status} ${/^.*etcd.*$/m.exec(String(answer.body))![0]}`;
  };
  const first = await store.put("/a", { n: 1 }, 0);
  const ended = new AbortController();
  const events = store.watch({ prefix: "/", after: first }, ended.signal)[Symbol.asyncIterator]();
  expect((await events.next()).value).toMatchObject({ events: [] });

  const { promise, resolve: over } = Promise.withResolvers<void>();
  disk.hang = promise;
  const writes = [store.put("/a", { n: 2 }, first), store.put("/b", { n: 1 }, 0)];
  await clock.run(1_000);
  expect(await readyz()).toBe("200 [+]etcd ok"); // it is slow now and then
  await clock.run(60_000);
  expect(await readyz()).toBe("500 [-]etcd failed: reason withheld");
  expect(watch.trouble()).toBe("the disk has not answered for 61 s");
  expect([(await store.get("/a"))?.value, (await store.list({ prefix: "/" })).rows.length]).toEqual([{ n: 1 }, 1]);
  expect(told).toEqual(["the store's disk does not answer: what is there can be read, writes wait"]);

  disk.hang = undefined;
  over();
  await Promise.all(writes);
  expect((await events.next()).value).toMatchObject({ events: [{ row: { key: "/a", value: { n: 2 } } }, { row: { key: "/b" } }] });
  expect(await readyz()).toBe("200 [+]etcd ok");
  expect(told.slice(1)).toEqual(["the store's disk answers again"]);
  ended.abort();
  await store.close();
});

test("a disk that refuses what is written is told of, once, until it takes it again; one that is only full is not", async () => {
  const clock = new SimulatedClock();
  const told: string[] = [], refused: string[] = [];
  const tell = (message: string): void => void told.push(message);
  const disk = new MemoryDisk();
  const watch = diskWatch({ path: "/db", clock, log: { error: tell, info: tell } as unknown as Log, onRefused: (reason) => void refused.push(reason) });
  const store = await memoryStore({ disk, clock, onDisk: watch.onDisk });
  const puts = async (key: string): Promise<string> => {
    const put = store.put(key, { n: 1 }, 0).then(() => "written", (error: { code: string }) => error.code);
    await clock.run(2_000);
    return await put;
  };
  disk.fault = () => ({ error: storeError("full", { reason: "no space left on the device" }), landed: false });
  expect([await puts("/a"), watch.trouble()]).toEqual(["full", undefined]);
  disk.fault = () => ({ error: storeError("unavailable", { reason: "the file system is read-only" }), landed: false });
  expect([await puts("/b"), await puts("/c"), watch.trouble()]).toEqual(["unavailable", "unavailable", "the disk refuses what is written: the file system is read-only"]);
  expect([told, refused]).toEqual([["the store's disk refuses what is written: what is there can be read"], ["the file system is read-only"]]);
  disk.fault = undefined;
  expect([await puts("/d"), watch.trouble()]).toEqual(["written", undefined]);
  expect([told.slice(1), refused.length]).toEqual([["the store's disk takes what is written again"], 1]);
  await store.close();
});
