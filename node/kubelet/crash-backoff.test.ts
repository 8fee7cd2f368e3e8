import { expect, test } from "vitest";
import { CrashBackoff, crashLimits, formatSeconds } from "./crash-backoff.ts";

test("10 s, doubling to 5 minutes, forgotten after ten minutes of peace", () => {
  const backoff = new CrashBackoff();
  const delays: string[] = [];
  let nowMs = 0;
  for (let i = 0; i < 8; i++) {
    const endedMs = nowMs;
    const wait = backoff.waiting("app", endedMs, nowMs);
    delays.push(wait ? formatSeconds(wait.delayMs) : "0s");
    nowMs = wait?.untilMs ?? nowMs;
    expect(backoff.waiting("app", endedMs, nowMs)).toBeUndefined();
    backoff.retried("app", endedMs, nowMs);
    nowMs += 1_000;
  }
  expect(delays.join(" ")).toBe("0s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s");
  nowMs += 11 * 60_000;
  expect(backoff.waiting("app", nowMs, nowMs)).toBeUndefined();
});

test("a clock that is set back does not make anybody wait until it is there again", () => {
  const backoff = new CrashBackoff();
  const YEAR_MS = 366 * 24 * 3_600_000;
  backoff.retried("app", YEAR_MS, YEAR_MS);
  expect(backoff.waiting("app", YEAR_MS, 1_000)).toBeUndefined();
  backoff.retried("app", YEAR_MS, 1_000);
  expect(backoff.waiting("app", 2_000, 3_000)).toEqual({ delayMs: 20_000, untilMs: 22_000 });
});

test("a node that lets containers wait less does not forget sooner", () => {
  const backoff = new CrashBackoff({ minMs: 10_000, maxMs: 20_000 });
  backoff.retried("app", 0, 0);
  backoff.retried("app", 60_000, 60_000);
  expect(backoff.waiting("app", 600_000, 600_000)?.delayMs).toBe(20_000);
  expect(backoff.waiting("app", 661_000, 661_000)).toBeUndefined();
});

// Cases: pkg/kubelet/kubelet_test.go TestNewCrashLoopBackOff
test.each<[gates: Readonly<Record<string, boolean>>, maxMs: number, minMs: number, limitMs: number]>([
  [{}, 300_000, 10_000, 300_000], [{}, 5_000, 5_000, 5_000], [{ KubeletCrashLoopBackOffMax: false }, 300_000, 10_000, 300_000],
  [{ ReduceDefaultCrashLoopBackOffDecay: true, KubeletCrashLoopBackOffMax: false }, 300_000, 1_000, 60_000], [{ ReduceDefaultCrashLoopBackOffDecay: true }, 300_000, 1_000, 300_000],
  [{ ReduceDefaultCrashLoopBackOffDecay: true }, 1_000, 1_000, 1_000],
])("with %j, and %d ms at most: from %d ms to %d ms", (gates, maxMs, minMs, limitMs) => expect(crashLimits(gates, maxMs)).toEqual({ minMs, maxMs: limitMs }));
