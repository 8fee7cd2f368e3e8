import { expect, test } from "vitest";
import { encodeYaml, parseStrictYaml, parseYaml, readYaml } from "./yaml.ts";

const yamlDuplicates = (text: string): readonly string[] => readYaml(text).duplicates;

test.each([
  ["yes", true], ["y", true], ["off", false], ["'y'", "y"], ["~", null], ["010", 8], ["0o17", 15], ["0x1f", 31], ["1_000", 1000], ["1e3", 1000], ["22:22", "22:22"],
  ["2026-01-02", "2026-01-02"], ["1234567890123456789", 1234567890123456789n], ["!!binary aGVsbG8=", "hello"], ["{a: [1, b]}", { a: [1, "b"] }],
  [".", "."], ["{.: {}}", { ".": {} }], [".5", 0.5], ["1.", 1],
])("%s is read as kubectl reads it", (text, expected) => {
  expect(parseYaml(`value: ${text}`)).toEqual({ value: expected });
});

test("merge keys, keys that are no strings, several documents", () => {
  expect(parseYaml("a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\ntrue: e\n1: f")).toEqual({ a: { b: 1 }, c: { b: 1, d: 2 }, true: "e", 1: "f" });
  expect(parseYaml("# only a comment\n---\na: 1\n---\nb: 2\n")).toEqual({ a: 1 });
  expect(parseYaml("")).toBeNull();
});

test.each([
  ["once their value has been read, by its line, after those within it", "a: {b: 1}\na:\n  b: 1\n  b:\n    2\n", ["5: key \"b\"", "3: key \"a\""]],
  ["on one line in the same order", "a: {b: {c: 1, c: 2}, b: 3}\n", ["1: key \"c\"", "1: key \"b\""]],
  ["that are numbers and booleans as Go prints them", "{1: a, 1: b, yes: c, true: d, 1.5: e, 1.5: f, '1': g}\n", ["1: key 1", "1: key true", "1: key 1.5"]],
  ["in what is merged", "{a: 2, <<: {a: 1, b: 1}, b: 3}\n", ["1: key \"a\"", "1: key \"b\""]],
  ["again at each alias", "a: &x {k: v, k: w}\nb: *x\nb: *x\n", ["1: key \"k\"", "1: key \"k\"", "1: key \"k\"", "3: key \"b\""]],
])("duplicates are told %s", (_, text, told) => {
  expect(yamlDuplicates(text)).toEqual([`yaml: unmarshal errors:\n${told.map((line) => `  line ${line} already set in map`).join("\n")}`]);
});

test("duplicates are named with their line, and broken text is an error", () => {
  expect(yamlDuplicates("a: 1\na: 2\nb:\n  c: 1\n  c: 2")).toEqual([`yaml: unmarshal errors:\n  line 2: key "a" already set in map\n  line 5: key "c" already set in map`]);
  expect(() => parseStrictYaml("a: 1\na: 2")).toThrow('strict decoding error: yaml: unmarshal errors:\n  line 2: key "a" already set in map');
  expect(() => parseStrictYaml('{"a": 1, "a": 2}')).toThrow("already set in map");
  expect(parseStrictYaml("a: 1")).toEqual({ a: 1 });
  expect(() => parseYaml("a:\n\t- b")).toThrow("yaml: line 2: found character that cannot start any token");
  expect(() => parseYaml(`a: &a [x,x,x,x,x,x,x,x,x]\n${[..."bcdefgh"].map((key, i) => `${key}: &${key} [${Array(9).fill(`*${"abcdefgh"[i]}`).join()}]`).join("\n")}`)).toThrow();
  expect(() => parseYaml("a: .inf")).toThrow("unsupported value: +Inf");
});

test("within brackets and quotes indentation does not matter", () => {
  expect(parseYaml('a:\n    b: [x,\n  "y\nz"\n  ]\n    c: {\nd: \'e\n f\',\ng}\nh: 1\n')).toEqual({ a: { b: ["x", "y z"], c: { d: "e f", g: null } }, h: 1 });
  expect(parseYaml("a:\n- {x: 1,\nz: 2}\n- 2")).toEqual({ a: [{ x: 1, z: 2 }, 2] });
  expect(() => parseYaml("a: 'x\n---\nb: 1")).toThrow("yaml: ");
});

test("a dash before a bracket or a comma is a text", () => {
  expect(parseYaml("command: [tar, xf, -]\nargs: [-, {a: -}, -x]\nb: {c: -,d: 1}\n")).toEqual({ command: ["tar", "xf", "-"], args: ["-", { a: "-" }, "-x"], b: { c: "-", d: 1 } });
  for (const text of ["[- ]", "[- a]", "{a: - }"]) expect(() => parseYaml(text)).toThrow("yaml: ");
});

test("a text that ends within a block scalar ends it without a line break", () => {
  expect([parseYaml("a: |\n  x\nb: |+ # c\n  y"), parseYaml(">2\n   x\n  y"), parseYaml("- |\n  x\n  "), parseYaml("a: |\n  x\n# end"), parseYaml("a: |-\n  x")]).toEqual(
    [{ a: "x\n", b: "y" }, " x\ny", ["x\n"], { a: "x\n" }, { a: "x" }]);
});

test("the point alone is a string, as managedFields have it", () => expect(encodeYaml({ "f:data": { ".": {}, "f:a": {} }, b: "1." })).toBe('b: "1."\nf:data:\n  .: {}\n  f:a: {}\n'));

test("written with sorted keys, and quoted where it might be misread", () => {
  const value = { b: ["x", "true", "1", "a: b", "- a", "2026-01-02", "multi\nline\n", "", "22:22", "1.2.3.4", "10Gi"], a: { y: 1, x: null, z: {}, w: [] } };
  expect(encodeYaml(value)).toBe(`a:
  w: []
  x: null
  "y": 1
  z: {}
b:
- x
- "true"
- "1"
- 'a: b'
- '- a'
- "2026-01-02"
- |
  multi
  line
- ""
- "22:22"
- 1.2.3.4
- 10Gi
`);
  expect(parseYaml(encodeYaml(value))).toEqual(value);
});

test.each([
  `{"a":[1,1.0,1e3,12345678901234567,99999999999999999999],"b":{"yes":"no","x/y":"\\u003c\\n","1":null},"c":"a: b # c"}`,
  `\n  {"a":\t"<<"}`, `{"<<":{"b":1},"a":2}`, `{"a":1,"a":2}`, `{"a":"x\u2028y"}`, `{"a":true,"b":[]} `,
])("JSON reads as the YAML it is: %s", (text) => {
  expect(parseYaml(text)).toEqual(parseYaml(`---\n${text}`));
  expect(yamlDuplicates(text).length).toBe(yamlDuplicates(`---\n${text}`).length);
});

test.each([
  ["\"", "yaml: found unexpected end of stream"], ["a: 'x", "yaml: found unexpected end of stream"], ["@a", "yaml: found character that cannot start any token"], ["a: @b", "yaml: found character that cannot start any token"],
  ["a: b: c", "yaml: mapping values are not allowed in this context"], ["metadata:\n name: n\n  x: y\n", "yaml: line 3: mapping values are not allowed in this context"], ["- a\n b: c", "yaml: line 2: mapping values are not allowed in this context"],
  ["*a", "yaml: unknown anchor 'a' referenced"], ["<<: 1e3\n", "yaml: map merge requires map or sequence of maps as the value"], ["a: - - b", "yaml: block sequence entries are not allowed in this context"],
  ["x: 1\na: - b\n", "yaml: line 2: block sequence entries are not allowed in this context"], ["[,]", "yaml: did not find expected node content"], ["x: 1\ny: [1,,2]\n", "yaml: line 1: did not find expected node content"],
  ["[1,\n", "yaml: line 1: did not find expected node content"], ["x: 1\nz: 3\ny: [1\n", "yaml: line 3: did not find expected ',' or ']'"], ["a: {b: 1] \n", "yaml: did not find expected ',' or '}'"],
  ["x: 1\na: {b: 1]\nc: 2\n", "yaml: line 1: did not find expected ',' or '}'"],
])("%j is refused in go-yaml's words", (text, message) => expect(() => parseYaml(text)).toThrow(new RegExp(`^${RegExp.escape(message)}$`)));

test("JSON that YAML refuses is refused", () => {
  expect(parseYaml(`{"a":1e999}`)).toEqual({ a: "1e999" });
  expect(() => parseYaml(`{"a":1`)).toThrow("yaml: line 1: did not find expected ',' or '}'");
  for (const text of ["{", "[1,", `{"a":`]) expect(() => parseYaml(text)).toThrow("yaml: line 1: did not find expected node content");
});

test("what a client sends is read in a moment, or not at all: nobody is served meanwhile", () => {
  const text = `${"1:".repeat(200_000)}x`;
  expect(readYaml(`a: ${text}`).value).toEqual({ a: text }); // no number, which is seen without looking for one from each of its digits on
  expect(readYaml(`a: 1\n${"---\nb: 2\n".repeat(100_000)}`).value).toEqual({ a: 1 });
  expect(readYaml(`a: 1\n--- @\n`).value).toEqual({ a: 1 }); // what comes after it may be anything
  expect(() => readYaml(`a: &x 1\nb: [${"*x,".repeat(100_000)}]`)).toThrow("yaml: document contains excessive aliasing");
  expect(readYaml(`a: [${'"*x",'.repeat(10_001)}]`).value).toEqual({ a: Array(10_001).fill("*x") });
  expect(readYaml(`a: "${"x".repeat(1024 * 1024)}"\n`).value).toEqual({ a: "x".repeat(1024 * 1024) });
  expect(() => readYaml(`a: ["${"x".repeat(1024 * 1024)}"]`)).toThrow("yaml: document is longer than 1048576 characters: send JSON instead");
  expect(() => readYaml(`a: [${"[],".repeat(300_000)}]`)).toThrow("yaml: document has more than 500000 tokens: send JSON instead");
  const names = Array.from({ length: 1000 }, (_, i) => `&a${i} x, *a${i}`).join(), nested = (depth: number, inner: string): string => `a: ${"[".repeat(depth)}${inner}${"]".repeat(depth)}\n`;
  expect((readYaml(nested(900, names)).value as { a: unknown[] }).a.flat(900)).toEqual(Array(2000).fill("x")); // what an alias stands for is looked for once
  for (const inner of ["x", names]) expect(() => readYaml(nested(5000, inner))).toThrow("yaml: exceeded max depth");
  const list = Array.from({ length: 30_000 }, (_, i) => `  key-${i}: value ${i}\n`).join("");
  expect(Object.keys((readYaml(`data:\n${list}`).value as { data: object }).data)).toHaveLength(30_000);
  expect(readYaml(`{"a": "${"x".repeat(1024 * 1024)}"}`).value).toEqual({ a: "x".repeat(1024 * 1024) });
  expect(parseYaml(`a: "${"x".repeat(1024 * 1024)}"`)).toEqual({ a: "x".repeat(1024 * 1024) }); // of a file
});

test.each<[text: string, value: unknown]>([
  ["0X1f", 31], ["-0XA", -10], ["0O17", 15], ["0B11", 3], ["0o4_", 4], ["-_3", -3], ["+_.3", 0.3], ["-2e_8", -200_000_000], ["0_", 0], ["017", 15], ["08", 8], ["-0b11", -3],
  [".98_", ".98_"], ["0b_", "0b_"], ["0x_", "0x_"], ["0x1g", "0x1g"], ["1__0", 10], ["18446744073709551615", Number("18446744073709551615")], ["-9223372036854775809", Number("-9223372036854775809")], ["0".repeat(200), 0],
  ["!!float 1", 1], ["!!float 0x10", 16], ["!!float '2.5'", 2.5],
])("as go-yaml reads it: %s", (text, value) => expect(parseYaml(`a: ${text}`)).toEqual({ a: value }));

test.each<[text: string, key: string]>([
  ["1.1", "1.1"], ["16777217.0", "1.6777216e+07"], ["0.1234567891", "0.12345679"], ["1.5e300", ".inf"], ["-.inf", "-.inf"], [".nan", ".nan"], ["-9223372036854775808", "-9223372036854775808"], ["!!binary aGk=", "hi"], ["True", "true"],
])("as a key, upstream reads %s as %s", (text, key) => expect(parseYaml(`{${text}: a}`)).toEqual({ [key]: "a" }));

test.each<[text: string, problem: string]>([
  ["null: 1", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1"], ["~: ~", "unsupported map key of type: %!s(<nil>), key: <nil>, value: <nil>"],
  [`null: "a\\"b"`, `unsupported map key of type: %!s(<nil>), key: <nil>, value: "a\\"b"`], ["null: [1.5, yes, null]", "unsupported map key of type: %!s(<nil>), key: <nil>, value: []interface {}{1.5, true, interface {}(nil)}"],
  ["null: {2: {}, 1: [x]}", `unsupported map key of type: %!s(<nil>), key: <nil>, value: map[interface {}]interface {}{1:[]interface {}{"x"}, 2:map[interface {}]interface {}{}}`],
  ["18446744073709551615: a", `unsupported map key of type: uint64, key: 0xffffffffffffffff, value: "a"`],
  ["? [a]\n: b", `yaml: invalid map key: []interface {}{"a"}`], ["? {a: b}\n: c", `yaml: invalid map key: map[interface {}]interface {}{"a":"b"}`],
  ["a: &q [*q]", "yaml: anchor 'q' value contains itself"], ["a: &q {b: &r {c: *q}}", "yaml: anchor 'q' value contains itself"],
])("what is no key, and what has no end, is refused in upstream's words: %s", (text, problem) => {
  for (const read of [parseYaml, readYaml]) expect(() => read(text)).toThrow(new RegExp(`^${RegExp.escape(problem)}$`));
});

test("of anchors of one name the last before an alias is meant, also within another of that name", () => {
  expect(readYaml("a: &q [&q x, *q]\nb: *q\nc: &q z\nd: *q\nd: *q\n")).toEqual({ value: { a: ["x", "x"], b: "x", c: "z", d: "z" }, duplicates: ['yaml: unmarshal errors:\n  line 5: key "d" already set in map'] });
});

test("what is no number and said to be one is refused; floats as keys are written as Go writes them", () => {
  expect(() => parseYaml("a: !!float x")).toThrow(/^yaml: cannot decode !!str `x` as a !!float$/);
  expect(() => parseYaml("a: !!float .inf")).toThrow("json: unsupported value: +Inf");
  expect(parseYaml("1E+6: 1\n1.50: 2\n0X8: 3\n")).toEqual({ "1e+06": 1, "1.5": 2, 8: 3 });
});

test.each([
  ["brackets", "[".repeat(20_000)], ["braces", "{a: ".repeat(20_000)], ["dashes", "- ".repeat(20_000)], ["keys that are maps", "? ".repeat(20_000)],
])("a text that nests without end is refused at once, however it ends: %s", (_, text) => {
  expect(() => readYaml(text)).toThrow("yaml: exceeded max depth"); // after many minutes, and with gigabytes, it was
});

test("what is said to be ordered is a list like any", () => {
  expect(parseYaml("a: !!omap\n- x: 1\n- x: 2\nb: !!pairs [c: 1, c: 2]")).toEqual({ a: [{ x: 1 }, { x: 2 }], b: [{ c: 1 }, { c: 2 }] });
});

test("what looks like a number and is none that a double holds is a text", () => {
  expect(parseYaml("a: e5\nb: [E10, -1e400, 1e3, 1_0.5e1]\nc: .e3\n")).toEqual({ a: "e5", b: ["E10", "-1e400", 1000, 105], c: ".e3" });
});
