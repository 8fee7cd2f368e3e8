import { expect, test } from "vitest";
import { ByText, textOf } from "./by-text.ts";

test("a text is found again; those that have not been put for longest go", () => {
  const known = new ByText<number>(2);
  known.put("a", 1);
  known.put("b", 2);
  known.put("a", 1);
  known.put("c", 3);
  expect(["a", "b", "c"].map((text) => known.get(text))).toEqual([1, undefined, 3]);
});

test.each([{ a: "xyz", b: [1, null, { c: true }] }, ["", "\n\"", 12.5], {}, { long: "x".repeat(50), "": [[], {}] }])("the text of %j is told up to its length and no further", (value) => {
  const text = JSON.stringify(value);
  expect(textOf(value)).toBe(text);
  expect(textOf(value, text.length)).toBe(text);
  for (let max = 0; max < text.length; max++) expect(textOf(value, max)).toBeUndefined();
});

test("what JSON.stringify does not know has no text", () => {
  expect(textOf({ big: 1n })).toBeUndefined();
});
