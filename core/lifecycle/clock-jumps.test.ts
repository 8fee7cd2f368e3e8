import { expect, test } from "vitest";
import { clockJumps } from "./clock-jumps.ts";

/** What is heard when at each look the wall clock is so far ahead of uptime. */
async function heard(aheadMs: readonly number[]): Promise<number[]> {
  let look = 0, uptimeMs = 0;
  const jumps = clockJumps({
    nowMs: () => uptimeMs + aheadMs[look]!,
    uptimeMs: () => uptimeMs,
    async *every(periodMs) {
      for (; look < aheadMs.length; look++, uptimeMs += periodMs) yield;
    },
  });
  const at: number[] = [];
  jumps.subscribe(() => at.push(look));
  jumps.subscribe(() => at.push(-1))(); // who has left hears nothing
  await jumps.watch.run(new AbortController().signal, () => undefined);
  return at;
}

test("a clock that is set is told of, whichever way", async () => {
  expect(await heard([0, 0, 1_795_000_000_000, 1_795_000_000_000, 0, 0])).toEqual([2, 4]);
});

test("one that is being slewed is told of once it is a second off what was known", async () => {
  expect(await heard([0, 400, 800, 1200, 1600, 2000, 2400])).toEqual([3, 6]);
});
