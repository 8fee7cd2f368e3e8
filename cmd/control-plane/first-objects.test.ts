import { expect, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import { untilMade } from "./first-objects.ts";

test("what cannot be made is tried again, and the server starts meanwhile; one trouble is told once", async () => {
  const events: string[] = [];
  const log = { ...silentLog, warn: (_: string, { error }: { error?: unknown } = {}) => void events.push(`told ${(error as Error).message}`) };
  const clock = { ...systemClock, sleep: async () => void events.push("waits") };
  const troubles = ["a webhook", "a webhook", "another"];
  await untilMade({ clock, log, ready: () => void events.push("ready") }, new AbortController().signal, async () => {
    const trouble = troubles.shift();
    if (trouble !== undefined) throw new Error(trouble);
    events.push("made");
  });
  expect(events).toEqual(["told a webhook", "ready", "waits", "ready", "waits", "told another", "ready", "waits", "made"]);
});

test("who stops the server does not wait for it", async () => {
  const stop = new AbortController();
  const clock = { ...systemClock, sleep: async () => stop.abort() };
  let tries = 0;
  await untilMade({ clock, log: silentLog, ready: () => undefined }, stop.signal, async () => { tries++; throw new Error("no"); });
  expect(tries).toBe(1);
});
