import { expect, test } from "vitest";
import { memoryStore } from "../../../storage/memory.ts";
import type { Revision } from "../../../storage/store.ts";
import { type Clock, systemClock, timestamp } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import { WatchCache } from "../generic/watch-cache.ts";
import { eventExpiry } from "./event-expiry.ts";

const KEY = "/registry/core/events/default/";
const START_MS = Date.parse("2026-01-01T00:00:00Z");

test("events go when their time since the last write is over, and nothing else does; a clock that jumps changes nothing", async () => {
  const store = await memoryStore();
  const stop = new AbortController();
  const cache = new WatchCache(store, systemClock);
  const running = [cache.run(stop.signal, () => undefined, silentLog)];
  let upMs = 0, wallMs = START_MS, tick = Promise.withResolvers<void>();
  const clock: Clock = { ...systemClock, uptimeMs: () => upMs, nowMs: () => wallMs, async *every() { for (;;) { yield; await tick.promise; if (stop.signal.aborted) return; } } };
  /** The names that are left after a look at this minute. */
  const at = async (minute: number): Promise<string> => {
    await cache.fresh(stop.signal);
    upMs = minute * 60_000;
    const now = tick;
    tick = Promise.withResolvers();
    now.resolve();
    await Bun.sleep(20);
    return (await store.list({ prefix: "/registry/" })).rows.map(({ key }) => key.split("/").at(-1)).join(" ");
  };
  const event = (name: string, minutesAgo: number, writtenMinutesAgo?: number) => ({
    metadata: { name, namespace: "default", creationTimestamp: timestamp(START_MS - minutesAgo * 60_000), ...(writtenMinutesAgo === undefined ? {} : { managedFields: [{ time: timestamp(START_MS - writtenMinutesAgo * 60_000) }] }) },
  });
  await store.put(`${KEY}ancient`, event("ancient", 90), 0);
  await store.put(`${KEY}half`, event("half", 30), 0);
  const series = await store.put(`${KEY}series`, event("series", 90, 10), 0);
  await store.put("/registry/core/pods/default/pod", event("pod", 900), 0);
  await cache.fresh(stop.signal);

  running.push(eventExpiry({ store, cache, ttlMs: 3_600_000, clock, log: silentLog }).run(stop.signal, () => undefined));
  expect(await at(0)).toBe("half series pod");
  await store.put(`${KEY}new`, event("new", 0), 0);
  wallMs += 365 * 86_400_000;
  expect(await at(29)).toBe("half new series pod");
  expect(await at(30)).toBe("new series pod");
  await store.put(`${KEY}series`, event("series", 90, 0), series);
  expect(await at(51)).toBe("new series pod"); // written again
  expect(await at(89)).toBe("series pod");
  expect(await at(112)).toBe("pod");
  stop.abort();
  tick.resolve();
  await Promise.all(running);
});

/** A store with so many events, all of START_MS, and its cache. */
async function eventsWritten(count: number) {
  const store = await memoryStore(), stop = new AbortController();
  const cache = new WatchCache(store, systemClock);
  const reading = cache.run(stop.signal, () => undefined, silentLog);
  for (let i = 0; i < count; i++) await store.put(`${KEY}e${i}`, { metadata: { name: `e${i}`, namespace: "default", creationTimestamp: timestamp(START_MS) } }, 0);
  await cache.fresh(stop.signal);
  return { store, cache, stop, async [Symbol.asyncDispose]() { stop.abort(); await reading; } };
}

test("while thousands of events go others have their turn", async () => {
  await using written = await eventsWritten(2000);
  const { store, cache, stop } = written;
  let upMs = 0, turns = 0, isOver = false;
  const left = async (): Promise<number> => (await store.list({ prefix: KEY })).rows.length;
  const turn = (): void => { turns++; if (!isOver) setImmediate(turn); };
  const slow = { ...store, delete: async (key: string, revision: Revision) => { upMs++; return await store.delete(key, revision); } };
  const clock: Clock = { ...systemClock, uptimeMs: () => upMs, nowMs: () => START_MS + 7_200_000, async *every() { yield; } };
  setImmediate(turn);
  await eventExpiry({ store: slow, cache, ttlMs: 3_600_000, clock, log: silentLog }).run(stop.signal, () => undefined);
  const had = turns;
  isOver = true;
  expect(await left()).toBe(0);
  expect(had).toBeGreaterThan(10);
});

test("once it is known what there is, a look costs nothing for events that are not due", async () => {
  await using written = await eventsWritten(20);
  const { store, cache, stop } = written;
  let looks = 0;
  const events = cache.resource("/registry/core/events/"), values = events.values.bind(events);
  events.values = () => { looks++; return values(); };
  const clock: Clock = { ...systemClock, uptimeMs: () => 0, nowMs: () => START_MS, async *every() { for (let i = 0; i < 5; i++) yield; } };
  await eventExpiry({ store, cache, ttlMs: 3_600_000, clock, log: silentLog }).run(stop.signal, () => undefined);
  expect(looks).toBe(1);
});
