import { expect, test } from "vitest";
import { isNearInteger } from "./numbers.ts";

test("a number is as good as whole when it is off by less than a thousand-millionth, whichever side of it", () => {
  expect([0, -0, 1, -3, 2 ** 53 - 1, 2.000000001, 1.999999999, -1.999999999, 123456789.12].map(isNearInteger)).toEqual([true, true, true, true, true, true, true, true, true]);
  expect([2 ** 53, Infinity, NaN, 0.5, 1e-12, 0.9999, 123456789.12345679, 2.00000001].map(isNearInteger)).toEqual([false, false, false, false, false, false, false, false]);
});
