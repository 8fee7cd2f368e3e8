import { expect, test } from "vitest";
import { goNumber } from "./go-float.ts";

test.each<[number | bigint, string]>([
  [0, "0"], [1_000_000, "1000000"], [2 ** 60, "1152921504606846976"], [-(2 ** 63), "-9223372036854775808"], [9007199254740993n, "9007199254740993"],
  [2 ** 63, "9.223372036854776e+18"], [1e21, "1e+21"], [1.5, "1.5"], [123456789.5, "1.234567895e+08"], [1e-4, "0.0001"], [0.00001, "1e-05"], [1e-7, "1e-07"],
])("%p is shown as %s", (value, text) => { expect(goNumber(value)).toBe(text); });
