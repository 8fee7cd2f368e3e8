import { expect, test } from "vitest";
import { breather } from "./breather.ts";

test("work goes on until its slice is used up; then what waits has its turn", async () => {
  let nowMs = 0;
  const breathe = breather({ uptimeMs: () => nowMs });
  nowMs += 5;
  expect(breathe()).toBeUndefined();
  nowMs += 5;
  let others = 0;
  setImmediate(() => { others++; });
  await breathe();
  expect(others).toBe(1);
  expect(breathe()).toBeUndefined();
});
