import { expect, test } from "vitest";
import { WriteLimit } from "./write-limit.ts";

test("an object is written six times in a minute at most, each by itself", () => {
  const limit = new WriteLimit();
  const took = (name: string, seconds: readonly number[]): number => seconds.filter((second) => limit.take(name, second * 1000)).length;
  expect(took("a", [0, 1, 2, 3, 4, 5, 6, 59])).toBe(6);
  expect(took("b", [59])).toBe(1);
  expect(took("a", [60.5, 60.6])).toBe(1); // the first is more than a minute ago
  limit.keep(new Set(["b"]));
  expect(took("a", [60.7])).toBe(1);
});
