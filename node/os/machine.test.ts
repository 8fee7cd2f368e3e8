import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { throttlePaths } from "./machine.ts";

test("where processors tell how hot they are, as far as they do", () => {
  const root = mkdtempSync(join(tmpdir(), "cpu-"));
  try {
    for (const path of ["cpu0/thermal_throttle", "cpu11/thermal_throttle", "cpu1", "cpufreq/thermal_throttle"]) mkdirSync(join(root, path), { recursive: true });
    expect(throttlePaths(root).toSorted()).toEqual([`${root}/cpu0/thermal_throttle`, `${root}/cpu11/thermal_throttle`]);
    expect(throttlePaths(join(root, "none"))).toEqual([]);
  } finally {
    rmSync(root, { recursive: true });
  }
});
