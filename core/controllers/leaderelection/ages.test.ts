import { expect, test } from "vitest";
import { objectKey } from "../../api/meta/object-meta.ts";
import { Ages } from "./ages.ts";

test("what was there before us is as old as it says, what comes after is as old as we have known it, whatever clocks say", () => {
  const clock = { now: Date.parse("2026-05-01T12:00:00Z"), up: 5_000, nowMs: () => clock.now, uptimeMs: () => clock.up };
  const ages = new Ages(clock), a = objectKey("n", "a"), b = objectKey("n", "b");
  ages.note(a, "2026-05-01T11:59:50.000000Z");
  ages.note(b, undefined);
  expect([ages.ofMs(a), ages.ofMs(b), ages.ofMs(objectKey("n", "c"))]).toEqual([10_000, Infinity, Infinity]);
  [clock.now, clock.up] = [0, 6_000]; // it was set back
  ages.note(a, "2026-05-01T11:59:50.000000Z");
  ages.note(b, "2026-05-01T10:00:00.000000Z"); // by a clock that is behind
  expect([ages.ofMs(a), ages.ofMs(b)]).toEqual([11_000, 0]);
  clock.up = 7_000;
  ages.note(a, "1970-01-01T00:00:00.000000Z");
  expect([ages.ofMs(a), ages.ofMs(b)]).toEqual([0, 1_000]);
  ages.forget(a);
  expect(ages.ofMs(a)).toBe(Infinity);
});
