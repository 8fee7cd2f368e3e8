import { expect, test } from "vitest";
import { SimulatedClock } from "../../test/simulator/seeded.ts";
import { giveBack } from "./give-back.ts";

const MIB = 1024 * 1024;

test("memory is given back when it is quiet: after work, after much was let go, compiled code once after the start and then after much work", async () => {
  const clock = new SimulatedClock();
  const stop = new AbortController();
  const told: string[] = [];
  let cpuMs = 0, waitedMs = 0, kept = 0, heapBytes = 100 * MIB;
  const life = giveBack({
    clock, cpuMs: () => cpuMs, waitedMs: () => waitedMs, heapBytes: () => heapBytes,
    forget: () => { const bytes = kept; kept = 0; return bytes; },
    collect: () => void told.push(`${clock.uptimeMs() / 1000} s: collected`),
    shrink: () => void told.push(`${clock.uptimeMs() / 1000} s: shrunk`),
  }).run(stop.signal, () => undefined);
  /** So many seconds, with so much work in each ten, and so much waiting for a processor. */
  const pass = async (seconds: number, workMs: number, waitMs = 0): Promise<void> => {
    for (let i = 0; i < seconds / 10; i++) {
      cpuMs += workMs;
      waitedMs += waitMs;
      await clock.run(10_000);
    }
  };
  await pass(50, 3_000); // it starts
  expect(told).toEqual([]);
  await pass(20, 100);
  expect(told.splice(0)).toEqual(["60 s: shrunk"]);
  await pass(100, 100);
  expect(told).toEqual([]);
  await pass(40, 2_000);
  await pass(100, 100);
  expect(told.splice(0)).toEqual(["220 s: collected"]);
  kept = 10 * MIB;
  await pass(30, 5_000);
  expect(told).toEqual([]); // it has been let go of, but not in a quiet moment
  await pass(40, 100);
  expect(told.splice(0)).toEqual(["350 s: collected"]);
  await pass(60, 10_000);
  await pass(30, 100);
  expect(told.splice(0)).toEqual(["450 s: shrunk"]);
  await pass(60, 10_000);
  await pass(80, 2_000); // a thousand nodes at rest
  expect(told.splice(0)).toEqual(["540 s: collected", "600 s: collected"]);
  await pass(200, 2_000, 7_000); // others have most of the machine, and it is as busy as it can be
  expect(told.splice(0)).toEqual([]);
  await pass(20, 100);
  expect(told.splice(0)).toEqual(["820 s: shrunk"]);
  heapBytes = 1000 * MIB; // to shrink that takes long, and everybody waits
  await pass(60, 10_000);
  await pass(30, 100);
  expect(told.splice(0)).toEqual(["900 s: collected"]);
  stop.abort();
  await clock.run(10_000);
  await life;
});
