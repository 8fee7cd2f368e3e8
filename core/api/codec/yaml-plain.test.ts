import { expect, test } from "vitest";
import { parseYaml } from "./yaml.ts";
import { plainYaml } from "./yaml-plain.ts";

test.each([
  "a: 1\n", "---\na: b c\n", "a:\n  b: yes\n  c: 010\n\n# d\n  e: ~\nf:\n", "- a\n-\n- b: 1\n  c:\n  - 2\n  -   d: x\n      e: y\n-\n  f: g\n", "a:\n- 1\nb: []\nc: {} # none\n",
  "a: 'it''s' # x\n\"b\\n\": \"\\u00e9: \\\"\"\n'c: d': e#f\n", "a: |\n  x\n   y\n\n  # z\nb: |-\n    u\n\n- ", "a: |\n  x\n   y\n\n  # z\nb: |-\n    u\n\nc: |+\n  v\n\n", "- |\n x\n- y\n", "a: 22:22\nb: http://x\nc: -1\nd: -x\n",
  "__proto__: 1\na: .5\n", "",
])("lines are read as the other reader reads them: %j", (text) => {
  const plain = plainYaml(text);
  if (text.endsWith("- ") || text === "") expect(plain).toBeUndefined();
  else expect(plain).toEqual(parseYaml(text));
});

test.each([
  "a: [1]\n", "a: {b: 1}\n", "a: &x 1\n", "a: *x\n", "a: !!str 1\n", "? a\n", "a: >\n  b\n", "a: |2\n   b\n", "a: b\n  c\n", "a: 'b\n  c'\n", "<<: 1\n", "a: 1\na: 2\n", "1: a\n", "a: b: c\n", "a: 1\n---\nb: 2\n", "a: 1\n...\n", "a:\tb\n", "a: .inf\n",
  "a: 1234567890123456789\n", "a: \"\\ud83d\\ude00\"\n", "a: \"\\x41\"\n", "a: 1", "a\n b: 1\n", "a: |\n b\n  c\n d\n\te\n", "a: | \n\n", "a: |\n   \n  b\n", "a # b: c\n", `${"k".repeat(2000)}: 1\n`, "- - a\n", "%YAML 1.1\n", "\ufeffa: 1\n", "a: x\u2028y\n",
  `${Array.from({ length: 600 }, (_, i) => `${" ".repeat(i)}a:\n`).join("")}`,
])("what has more to it is left to the other reader: %j", (text) => expect(plainYaml(text)).toBeUndefined());
