import { expect, test } from "vitest";
import type { Pod } from "../api/gen/core.v1.ts";
import { isAvailable, nextAvailableInMs } from "./pod-state.ts";

const NOW_MS = Date.parse("2026-01-01T00:00:30Z");
const ready = (since: string) => ({ status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: since }] } }) as Pod;

test.each([
  ["for long enough", "2026-01-01T00:00:00Z", true, undefined],
  ["since a moment ago", "2026-01-01T00:00:25Z", false, 5_000],
  ["by a clock that is a little ahead", "2026-01-01T00:01:00Z", false, 40_000],
  ["by a clock that was ten years ahead: nobody waits for them", "2036-01-01T00:00:00Z", true, undefined],
  ["since nobody knows: no time makes them available", "", false, undefined],
])("ready %s", (_, since, available, inMs) => {
  const pod = ready(since);
  expect([isAvailable(pod, 10, NOW_MS), nextAvailableInMs([pod], 10, NOW_MS)]).toEqual([available, inMs]);
  expect([isAvailable(pod, 0, NOW_MS), nextAvailableInMs([pod], 0, NOW_MS)]).toEqual([true, undefined]);
});
