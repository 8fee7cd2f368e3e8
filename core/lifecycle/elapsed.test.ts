import { expect, test } from "vitest";
import { Elapsed } from "./elapsed.ts";

test("how long ago it was is told by the clock at first, and by uptime from then on", () => {
  const clock = { now: 100_000, up: 5_000, nowMs: () => clock.now, uptimeMs: () => clock.up };
  const elapsed = new Elapsed(clock);
  expect(elapsed.sinceMs("1970-01-01T00:01:30Z")).toBe(10_000);
  [clock.now, clock.up] = [1.8e12, 6_000]; // a network has appeared
  expect(elapsed.sinceMs("1970-01-01T00:01:30Z")).toBe(11_000);
  expect(elapsed.sinceMs("2096-01-01T00:00:00Z")).toBe(0);
  clock.up += 1_000;
  expect([elapsed.sinceMs("2096-01-01T00:00:00Z"), elapsed.sinceMs(""), elapsed.sinceMs(new Date(1.8e12 - 3_000).toISOString())]).toEqual([1_000, 0, 3_000]);
});
