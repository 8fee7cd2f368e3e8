import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { metricsRegistry } from "./metrics.ts";
import { buildMetrics, processMetrics } from "./process-metrics.ts";

test("a version is told without what is built on it, and which one may be beside it", () => {
  const metrics = metricsRegistry();
  buildMetrics(metrics, { major: "1", minor: "36", gitVersion: "v1.36.0+coracle0.1.0", gitCommit: "", gitTreeState: "", buildDate: "", goVersion: "", compiler: "", platform: "" });
  expect(metrics.render()).toContain('version_info{binary="1.36.0",component="kube",emulation="1.36",min_compat="1.35"} 1');
});

test("when the process began is told by the clock as it is now, and the same each time while nobody sets it", () => {
  let aheadMs = 0;
  const metrics = metricsRegistry();
  processMetrics(metrics, { nowMs: () => Date.now() + aheadMs });
  const told = (): number => Number(/^process_start_time_seconds (\S+)$/m.exec(metrics.render())![1]);
  const first = told();
  aheadMs = 50;
  expect(told()).toBe(first);
  aheadMs = 56 * 365 * 86_400_000;
  expect(Math.round(told() - first)).toBe(Math.round(aheadMs / 1000));
});

test.skipIf(process.platform !== "linux")("how much memory it has mapped is told in bytes, however large the machine's pages are", () => {
  const metrics = metricsRegistry();
  processMetrics(metrics, { nowMs: Date.now });
  const told = Number(/^process_virtual_memory_bytes (\S+)$/m.exec(metrics.render())![1]);
  const pages = Number(readFileSync("/proc/self/statm", "utf8").split(" ")[0]), pageBytes = Number(execFileSync("getconf", ["PAGESIZE"], { encoding: "utf8" }));
  expect(told / (pages * pageBytes)).toBeCloseTo(1, 1);
});
