import { expect, test } from "vitest";
import { warningHeaders } from "./warning-headers.ts";

const asUtf8 = (texts: readonly string[]): string[] => warningHeaders(texts).map((header) => Buffer.from(header, "latin1").toString());

test("warnings are told once each, quoted, in any language; none that would break the header", () => {
  expect(asUtf8(["a", "a", 'say "no" \\ 5', "", "two\nlines", "bell\u0007", "größer als ∞", "half \ud800"])).toEqual(['299 - "a"', '299 - "say \\"no\\" \\\\ 5"', '299 - "größer als ∞"']);
});

test("all that is told is whole up to 4096 characters; beyond that each has 256 at most, and 16 of those are told", () => {
  const long = (i: number): string => String(i).padEnd(2048, "x");
  expect(warningHeaders([long(1), long(2)]).map(({ length }) => length)).toEqual([2048 + 8, 2048 + 8]);
  expect(warningHeaders(Array.from({ length: 30 }, (_, i) => long(i))).map(({ length }) => length)).toEqual(Array(16).fill(256 + 8));
  expect(warningHeaders(Array.from({ length: 100 }, (_, i) => `${i}`.padEnd(50, "y")))).toHaveLength(82);
});
