import { expect, test } from "vitest";
import { systemClock } from "./clock.ts";
import { Waker } from "./waker.ts";

test("a sleep ends when it is over, when somebody wakes the sleeper, when there is something to do already, and when it is to stop", async () => {
  const waker = new Waker(systemClock);
  const stop = new AbortController();
  const { signal } = stop;
  expect(await waker.sleep(1, { isDue: false, signal })).toBe(false);
  expect(await waker.sleep(3_600_000, { isDue: true, signal })).toBe(true);
  const asleep = waker.sleep(3_600_000, { isDue: false, signal });
  waker.wake();
  expect(await asleep).toBe(true);
  waker.wake(); // nobody sleeps: nobody is woken
  expect(await waker.sleep(1, { isDue: false, signal })).toBe(false);
  const stopped = waker.sleep(3_600_000, { isDue: false, signal });
  stop.abort();
  expect([await stopped, await waker.sleep(3_600_000, { isDue: false, signal })]).toEqual([false, false]);
});
