import { expect, test } from "vitest";
import { looksLikeOther } from "./yaml-scalars.ts";
import { writeYaml, YamlTextError } from "./yaml-writer.ts";

const WORDS = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore";

test.each<[what: string, value: unknown, text: string]>([
  ["a long text is folded at the first space after eighty characters", { a: `${WORDS} ${WORDS}` }, `a: lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt
  ut labore lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod
  tempor incididunt ut labore
`],
  ["one in quotes, too, and nowhere between two spaces", { a: [`${WORDS}: ${WORDS.replaceAll(" ", "  ")}`, `${"x".repeat(90)} \t y`] }, `a:
- 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt
  ut labore: ${WORDS.replaceAll(" ", "  ")}'
- "${"x".repeat(90)}
  \\t y"
`],
  ["keys come in the order people count in, letters last", { k10: 1, k2: 1, K: 1, "k-1": 1, "k.1": 1, "1": 1, a: 1 }, `"1": 1\nK: 1\na: 1\nk-1: 1\nk.1: 1\nk2: 1\nk10: 1\n`],
  ["a long key stands after a question mark", { ["k".repeat(129)]: ["v"], b: { "": 1 } }, `b:\n  "": 1\n? ${"k".repeat(129)}\n: - v\n`],
  ["lists in lists, and what is empty", [[1, []], [{ a: {}, b: [[]] }]], "- - 1\n  - []\n- - a: {}\n    b:\n    - []\n"],
  ["several lines, with how they begin and end", ["a\nb", "a\n", "a\n\n", " a\nb", "\n", "a \nb", "a\tb\nc"], `- |-
  a
  b
- |
  a
- |+
  a

- |2-
   a
  b
- |2+

- "a \\nb"
- "a\\tb\\nc"
`],
  ["what no printer has", ["a\0", "\x1b", "a\u00a0b", "a\u2028b", "x\ufeff", "😀", "a😀 b"], `- "a\\0"\n- "\\e"\n- a\u00a0b\n- 'a\u2028  b'\n- "x\\uFEFF"\n- "\\U0001F600"\n- "a\\U0001F600 b"\n`],
  ["the end of a line that only YAML knows is a space", { a: "x \u0085 y", b: "x\u0085\u0085y" }, "a: x y\nb: |-\n  x\n  y\n"],
  ["numbers", [1, -0, 1.5, 1e21, 1e-7, 1234567.5, 123456.5, 1e19, 2 ** 63, 2 ** 64], "- 1\n- 0\n- 1.5\n- 1e+21\n- 1e-07\n- 1.2345675e+06\n- 123456.5\n- 10000000000000000000\n- 9223372036854776000\n- 1.8446744073709552e+19\n"],
])("%s", (_what, value, text) => expect(writeYaml(value)).toBe(text));

test.each(["a\x7f", "a\x80", "\uffff"])("what YAML's reader does not take is refused: %j", (text) => {
  expect(() => writeYaml({ a: text })).toThrow(new YamlTextError("yaml: control characters are not allowed"));
});

test("texts that would be read as something else are quoted, and no others", () => {
  const others = ["~", "Null", "y", "NO", "off", ".inf", "+.Inf", ".NaN", "1", "-0", "+1", "1.", ".5", "1e3", "0x1f", "0o17", "0b11", "010", "08", "1_000", "12:30:45", "2026-1-2", "2026-01-02 03:04:05", "2026-01-02t03:04:05.5+01:00", "18446744073709551616"];
  const texts = ["nul", "tRue", ".", "1,000", "0xg", "0b12", "1:60", "2026-13-01", "2026-02-29", "1e400", "e5", "1e", "<<", "=", "_1", "1.2.3", "+", "2026-01-02T03:04:05"];
  expect(others.filter((text) => !looksLikeOther(text))).toEqual([]);
  expect(texts.filter(looksLikeOther)).toEqual([]);
});
