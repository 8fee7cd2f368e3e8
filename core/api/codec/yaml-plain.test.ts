import { expect, test } from "vitest";
import { mulberry32 } from "../../../test/mulberry32.ts";
import { readPlainYaml } from "./yaml-plain.ts";
import { parseYaml } from "./yaml.ts";

/** By the reader of all of YAML, which a directive is left to. */
const whole = (text: string) => parseYaml(`%YAML 1.1\n---\n${text}`);
const plain = (text: string) => readPlainYaml(text, (scalar) => (scalar.startsWith("---") ? scalar : whole(scalar)));
const shown = (value: unknown) => JSON.stringify(value, (_, item: unknown) => (typeof item === "bigint" ? `${item}n` : item));

const MANIFEST = `# what it is
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web   # of the shop
  labels: {app: web, "tier": 'front'}
  annotations:
    'a/b': "c\\u00e9\\n: #"
    text: |
      first
        second

      third
    stripped: |-
      x
    kept: |+
      y

spec:
  replicas: 3
  paused: no
  ratio: 1.5
  octal: 0644
  day: 2026-01-01
  address: 10.0.0.1
  sentence: All of it, at 50% (or so) - it's "well" quoted
  nothing:
  none: ~
  template:
    spec:
      containers:
      - name: c
        image: registry.example/x:1
        args: [--a=b, "-c", 7, true, [], {}]
        ports:
          - containerPort: 80
          -
            containerPort: 81
      - name: d
        command:
        - - nested
          - deep: yes
        - http://x/y#z
`;

test("a manifest is read as by the reader of all of YAML", () => {
  const value = plain(MANIFEST);
  expect(value).toEqual(whole(MANIFEST));
  expect(value).toMatchObject({ metadata: { annotations: { text: "first\n  second\n\nthird\n", stripped: "x", kept: "y\n\n" } }, spec: { paused: false, octal: 420, sentence: `All of it, at 50% (or so) - it's "well" quoted` } });
  expect(plain(`---\n${MANIFEST}---\na: &b\n`)).toEqual(value);
});

test.each([
  "a: &x 1", "a: *x", "a: !!str 1", "? a", "a: >\n  x\n", "a: b\n  c", "- a\n  b", "a: \"b\n  c\"", "a: [b,\n  c]", "a: 1\na: 2", "a: b: c", "a: 'b' c", "on: x", "1: x", "<<: x", "a:\tb", "a: |2\n    x\n", "a: |\n  x", "a: @b", "a: {b: c d}",
  "a: 1\n b: 2", "  a: 1\n b: 2", "- a\nb: c", "a\n", "", "--- a\n", "%YAML 1.1\n---\na: 1", "a: 1\r\n", "a: 1\n... b: 2\n", "a: [b", "a: \"\\x41\"", "a: -", "a: \"\\ud800\"",
])("what is not surely plain is left to others: %j", (text) => expect(plain(text)).toBeUndefined());

test("whatever manifests are turned into, what is read is what the reader of all of YAML reads", () => {
  const random = mulberry32(11), below = (count: number) => Math.floor(random() * count);
  const bits = [" ", "  ", "\n", ":", ": ", "-", "- ", "#", " #", "'", '"', "|", "|-", "|+", ">", "{", "}", "[", "]", ",", "&a", "*a", "!", "? ", "~", "null", "yes", "0", "1e3", "e5", ".5", "\t", "...", "---", "<<", "=", "%", "@", "é", "\\", "x", "0o7", "0x1", "\n\n", "\n  ", "\n- "];
  const lines = MANIFEST.split("\n");
  let read = 0;
  for (let i = 0; i < 1500; i++) {
    const start = below(lines.length);
    let text = lines.slice(start, start + 2 + below(8)).join("\n");
    for (let changes = 1 + below(3); changes > 0; changes--) {
      const at = below(text.length + 1);
      text = `${text.slice(0, at)}${below(3) === 0 ? "" : bits[below(bits.length)]}${text.slice(at + below(3))}`;
    }
    const value = text.includes("---") ? undefined : plain(text);
    if (value === undefined) continue;
    read++;
    expect(shown(value), text).toBe(shown(whole(text)));
  }
  expect(read).toBeGreaterThan(100);
});
