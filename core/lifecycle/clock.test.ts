import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "./clock.ts";

const DAY_MS = 86_400_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("what is to be in months is not done at once, nor when it was cancelled", async () => {
  const done: string[] = [];
  systemClock.after(60 * DAY_MS, () => done.push("in 60 days"));
  void systemClock.sleep(30 * DAY_MS, new AbortController().signal).then(() => done.push("slept for 30"));
  const late = systemClock.after(40 * DAY_MS, () => done.push("never"));
  const stop = new AbortController();
  void systemClock.sleep(Number.POSITIVE_INFINITY, stop.signal).then(() => done.push("woken"));
  await vi.advanceTimersByTimeAsync(29.9 * DAY_MS);
  expect(done).toEqual([]);
  late.cancel();
  await vi.advanceTimersByTimeAsync(30 * DAY_MS);
  expect(done).toEqual(["slept for 30"]);
  stop.abort();
  await vi.advanceTimersByTimeAsync(DAY_MS);
  expect(done).toEqual(["slept for 30", "woken", "in 60 days"]);
});
