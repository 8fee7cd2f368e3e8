import { expect, test } from "vitest";
import { tokenBucket } from "./token-bucket.ts";

test("as many at once as fit, then as many as come in", () => {
  let nowMs = 0;
  const take = tokenBucket({ perSecond: 10, burst: 2, clock: { uptimeMs: () => nowMs } });
  const after = (ms: number): boolean => { nowMs += ms; return take(); };
  expect([after(0), after(0), after(0), after(99), after(1), after(0), after(10_000), after(0), after(0)]).toEqual([true, true, false, false, true, false, true, true, false]);
});
