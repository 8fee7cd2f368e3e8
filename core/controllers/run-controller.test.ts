import { expect, test } from "vitest";
import { eventually } from "../../test/fake-api.ts";
import type { ObjectKey } from "../api/meta/object-meta.ts";
import { conflict, statusError } from "../api/meta/status-error.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { controllerMetrics, runController } from "./run-controller.ts";

test("what waits, what is worked on and what failed can be scraped under upstream's names", async () => {
  const metrics = metricsRegistry();
  const stop = new AbortController();
  const hold = Promise.withResolvers<void>();
  let tries = 0;
  const life = runController({
    name: "thing", workers: 1, watches: [], starts: ["a", "b"] as ObjectKey[],
    async reconcile(key) {
      if (key === "b") return;
      if (tries++ === 0) throw new Error("not yet");
      await hold.promise;
    },
  }, { clock: systemClock, log: silentLog, metrics: controllerMetrics(metrics) }).run(stop.signal, () => undefined);
  const sample = (name: string): number => Number(new RegExp(`^${name}\\{name="thing"\\} (\\S+)$`, "m").exec(metrics.render())?.[1] ?? -1);
  await eventually(() => sample("workqueue_unfinished_work_seconds"), (seconds) => seconds > 0 && sample("workqueue_longest_running_processor_seconds") > 0);
  expect([sample("workqueue_adds_total"), sample("workqueue_retries_total"), sample("workqueue_depth"), sample("workqueue_queue_duration_seconds_count"), sample("workqueue_work_duration_seconds_count")]).toEqual([3, 1, 0, 3, 2]);
  hold.resolve();
  await eventually(() => sample("workqueue_work_duration_seconds_count"), (count) => count === 3);
  expect(sample("workqueue_unfinished_work_seconds")).toBe(0);
  stop.abort();
  await life;
});

test("a key that failed waits as long as its controller says, twice as long each time", async () => {
  const stop = new AbortController();
  const waits: number[] = [];
  const clock = { ...systemClock, after(ms: number, work: () => void) { waits.push(ms); return systemClock.after(0, work); } };
  let tries = 0;
  const life = runController({
    name: "thing", workers: 1, retry: { minMs: 1000, maxMs: 3000 }, watches: [], starts: ["a"] as ObjectKey[],
    async reconcile() { if (tries++ < 3) throw new Error("not yet"); },
  }, { clock, log: silentLog }).run(stop.signal, () => undefined);
  await eventually(() => tries, (count) => count === 4);
  expect(waits).toEqual([1000, 2000, 3000]);
  stop.abort();
  await life;
});

test.each([
  ["warn", new Error("broken")], ["debug", conflict({ group: "", resource: "pods" }, "a")],
  ["debug", new Error("create", { cause: statusError({ code: 403, reason: "Forbidden", message: "no", details: { causes: [{ reason: "NamespaceTerminating" }] } }) })],
])("what failed is tried again, and told as %s: nobody need hear of what passes by itself", async (level, error) => {
  const stop = new AbortController();
  const told: string[] = [];
  const log = { ...silentLog, warn: () => told.push("warn"), debug: () => told.push("debug"), with: () => log };
  let tries = 0;
  const life = runController({ name: "thing", workers: 1, watches: [], starts: ["a"] as ObjectKey[], async reconcile() { if (tries++ === 0) throw error; } }, { clock: systemClock, log }).run(stop.signal, () => undefined);
  await eventually(() => tries, (count) => count === 2);
  expect(told).toEqual([level]);
  stop.abort();
  await life;
});

test("when the clock is set, who waits for a time of day is asked again at once: it is at another distance now", async () => {
  const stop = new AbortController();
  const listeners = new Set<() => void>();
  const jumps = { subscribe(jumped: () => void) { listeners.add(jumped); return () => void listeners.delete(jumped); } };
  let asked = 0;
  const life = runController({
    name: "thing", workers: 1, watches: [], starts: ["a"] as ObjectKey[],
    async reconcile() { asked++; return { againInMs: 3_600_000 }; },
  }, { clock: systemClock, jumps, log: silentLog }).run(stop.signal, () => undefined);
  for (const times of [1, 2, 3]) {
    await eventually(() => asked, (count) => count === times);
    for (const jumped of listeners) jumped();
  }
  await eventually(() => asked, (count) => count === 4);
  stop.abort();
  await life;
  expect(listeners.size).toBe(0);
});

test("keys that want nothing written keep nobody else waiting until the last of them", async () => {
  const stop = new AbortController();
  let nowMs = 0, worked = 0, workedBefore: number | undefined;
  const life = runController({
    name: "thing", workers: 2, watches: [], starts: Array.from({ length: 1000 }, (_, i) => `key-${i}` as ObjectKey),
    async reconcile() {
      if (worked++ === 0) setImmediate(() => { workedBefore = worked; });
      nowMs++; // it takes a millisecond
    },
  }, { clock: { ...systemClock, uptimeMs: () => nowMs }, log: silentLog }).run(stop.signal, () => undefined);
  await eventually(() => worked, (count) => count === 1000);
  expect(workedBefore).toBeLessThan(20);
  stop.abort();
  await life;
});

test("of workers that begin together each lets others have their turn before the next one's work begins", async () => {
  let upMs = 0, others = 0;
  const worked: number[] = []; // by turns that others had before
  const turn = (): void => { if (++others < 60) setImmediate(turn); };
  const stop = new AbortController();
  const life = runController({
    name: "thing", workers: 5, watches: [], starts: Array.from({ length: 20 }, (_, i) => `${i}`) as ObjectKey[],
    async reconcile() {
      upMs += 50;
      worked[others] = (worked[others] ?? 0) + 1;
    },
  }, { clock: { ...systemClock, uptimeMs: () => upMs }, log: silentLog }).run(stop.signal, () => setImmediate(turn));
  await eventually(() => worked.reduce((sum, count) => sum + count, 0), (count) => count === 20);
  expect(worked.filter(Boolean)).toEqual(Array.from({ length: 20 }, () => 1));
  stop.abort();
  await life;
});
