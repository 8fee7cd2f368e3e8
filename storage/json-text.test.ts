import { expect, test } from "vitest";
import { parseValueText, valueText } from "./json-text.ts";

test("integers of 64 bits keep their digits; what is larger comes back as the float it was written from", () => {
  for (const value of [{ a: 2n ** 63n - 1n }, { a: -(2n ** 63n) }, { a: [2n ** 53n + 1n, 1.5, "9007199254740993"] }, { a: 1e20 }, { a: 2 ** 63 }, { a: -1e19 }])
    expect(parseValueText(valueText(value))).toStrictEqual(value);
});
