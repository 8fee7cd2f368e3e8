import { expect, test } from "vitest";
import { goInteger, integerAfter, isLessInteger, parseGoInteger } from "./go-integer.ts";

test.each<[text: string, result: bigint | string]>([
  ["7", 7n], ["+07", 7n], ["-0", 0n], [`${"0".repeat(100)}1`, 1n], ["9223372036854775807", 2n ** 63n - 1n], ["-9223372036854775808", -(2n ** 63n)],
  ["", "invalid syntax"], ["x", "invalid syntax"], ["1_0", "invalid syntax"], [" 1", "invalid syntax"], ["9223372036854775808", "value out of range"], ["9".repeat(100), "value out of range"],
])("%s", (text, result) => {
  expect(goInteger(text)).toBe(typeof result === "bigint" ? result : undefined);
  if (typeof result === "bigint") expect(parseGoInteger(text)).toBe(result);
  else expect(() => parseGoInteger(text, "Atoi")).toThrow(`strconv.Atoi: parsing ${JSON.stringify(text)}: ${result}`);
});

test("numbers are compared to their last digit; what is none is neither less nor more", () => {
  const order = (a: string | undefined, b: string | undefined) => [isLessInteger(a, b), isLessInteger(b, a)];
  expect([order("9007199254740992", "9007199254740993"), order("-1", "+07"), order("1", "9223372036854775808"), order("1", ""), order("1", "1e3"), order("1", undefined)])
    .toEqual([[true, false], [true, false], [false, false], [false, false], [false, false], [false, false]]);
});

test("after an integer comes the next one, to the digit, and nothing after the largest", () => {
  const after = (integer: number | bigint): unknown => integerAfter(integer as number);
  expect([0, -1, 2 ** 53 - 2, 2 ** 53 - 1, 2n ** 53n, 2n ** 63n - 2n, 2n ** 63n - 1n, -(2n ** 63n), -(2n ** 53n)].map(after))
    .toEqual([1, 0, 2 ** 53 - 1, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n - 1n, -(2n ** 63n) + 1n, -(2 ** 53) + 1]);
});
