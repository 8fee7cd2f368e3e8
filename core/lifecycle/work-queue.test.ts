import { expect, test } from "vitest";
import { systemClock } from "./clock.ts";
import { workQueue } from "./work-queue.ts";

test("a key waits once, is not handed out twice at the same time, and again when it was added meanwhile; each is told to the meter", async () => {
  let nowMs = 0;
  const told: (string | number)[] = [];
  const queue = workQueue<string>({ ...systemClock, uptimeMs: () => nowMs }, { meter: { added: () => void told.push("added"), waited: (ms) => void told.push(ms) } });
  const { signal } = new AbortController();
  for (const key of ["a", "b", "a"]) queue.add(key);
  nowMs = 5;
  expect([await queue.take(signal), queue.size]).toEqual(["a", 1]);
  queue.add("a");
  queue.add("a");
  expect(queue.size).toBe(1); // it is worked on
  nowMs = 8;
  queue.done("a");
  expect([await queue.take(signal), await queue.take(signal), queue.size]).toEqual(["b", "a", 0]);
  expect(told).toEqual(["added", "added", 5, "added", 8, 3]);
});

test("what was to be added later can be added now, once", async () => {
  const queue = workQueue<string>(systemClock);
  queue.addAfter("a", 60_000);
  queue.addAfter("b", 120_000);
  queue.hasten();
  queue.hasten();
  const { signal } = new AbortController();
  expect([await queue.take(signal), await queue.take(signal), queue.size]).toEqual(["a", "b", 0]);
});
