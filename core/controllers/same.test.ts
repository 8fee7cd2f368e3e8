import { expect, test } from "vitest";
import { sameToApi } from "./same.ts";
import { canonical } from "./template-hash.ts";

test("as canonical texts are equal, so are the values", () => {
  const values: readonly unknown[] = [
    {}, { a: undefined }, { a: null }, { a: [] }, { a: {} }, { a: 0 }, { a: "" }, { a: false }, { a: 1, b: 2 }, { b: 2, a: 1 }, { a: [1, 2] }, { a: [2, 1] }, { a: [{ b: [] }] }, { a: [{}] },
    { a: { b: { c: "d" } } }, { a: { b: { c: "d", e: null } } }, { a: { b: { c: "x" } } }, [1, [2]], [1, 2], "a", 1, true, { constructor: "x" }, { toString: null },
  ];
  for (const a of values) for (const b of values) expect([a, b, sameToApi({ v: a }, { v: b })]).toEqual([a, b, canonical({ v: a }) === canonical({ v: b })]);
});

test("a whole number that no double holds is told from its neighbour", () => {
  expect(canonical({ terminationGracePeriodSeconds: 9223372036854775807n })).toBe(`{"terminationGracePeriodSeconds":9223372036854775807}`);
});
