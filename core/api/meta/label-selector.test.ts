import { expect, test } from "vitest";
import { growth } from "../../../test/reads.ts";
import { formatFieldErrors } from "./field-error.ts";
import type { LabelOperator } from "./label-requirement.ts";
import { LabelSelector, labelSelector, parseLabelSelector, validateLabelSelector } from "./label-selector.ts";

test.each([
  ["", "", { a: "1" }, true],
  ["app=web", "app=web", { app: "web" }, true], ["app==web", "app==web", { app: "db" }, false], ["app!=web", "app!=web", {}, true],
  ["app in (web, db),tier!=cache,!canary", "app in (db,web),!canary,tier!=cache", { app: "db" }, true],
  ["app in (web)", "app in (web)", {}, false], ["app notin (web)", "app notin (web)", {}, true],
  ["app", "app", { app: "" }, true], ["!app", "!app", { app: "" }, false], ["app=", "app=", { app: "" }, true], ["a=,b=x", "a=,b=x", { a: "", b: "x" }, true],
  ["x in ()", "x in ()", { x: "" }, true], ["x in (a,,b)", "x in (,a,b)", { x: "" }, true], ["in in (in,notin)", "in in (in,notin)", { in: "notin" }, true],
  ["n>5", "n>5", { n: "10" }, true], ["n<5", "n<5", { n: "x" }, false], ["toString", "toString", {}, false], [" app = web , b ", "app=web,b", { app: "web", b: "" }, true],
])("%j prints as %j", (text, printed, labels, matches) => {
  const selector = parseLabelSelector(text);
  expect([selector.toString(), selector.matches(labels as Record<string, string>)]).toEqual([printed, matches]);
});

test.each([
  ["a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
  ["a,", "found '', expected: identifier after ','"],
  [",a", "found ',', expected: !, identifier, or 'end of string'"],
  ["a=b c", "found 'c', expected: ',' or 'end of string'"],
  ["!a=b", "found '=', expected: ',' or 'end of string'"],
  ["a in b", "unable to parse requirement: found 'b' expected: '('"],
  ["a in (b", "unable to parse requirement: found '', expected: ',' or ')'"],
  ["a=(", "unable to parse requirement: found '(', expected: identifier"],
  ["a>x", `unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`],
  ["-a=b", `unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an ` +
    `alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`],
  ["a=-b", `unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ` +
    `and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`],
])("%j is refused", (text, message) => {
  expect(() => parseLabelSelector(text)).toThrow(new Error(message));
});

test("no selector selects nothing, an empty one everything", () => {
  expect([labelSelector(undefined).matches({}), labelSelector({}).matches({}), labelSelector({}).empty]).toEqual([false, true, true]);
});

test("matchLabels and matchExpressions must all hold", () => {
  const selector = labelSelector({ matchLabels: { app: "web" }, matchExpressions: [{ key: "tier", operator: "NotIn", values: ["cache"] }, { key: "beta", operator: "DoesNotExist" }] });
  expect([{ app: "web" }, { app: "web", tier: "cache" }, { app: "web", beta: "" }].map((labels) => selector.matches(labels as never))).toEqual([true, false, false]);
  expect(selector.toString()).toBe("app=web,!beta,tier notin (cache)");
});

test("validation names the field", () => {
  const errors = validateLabelSelector({ matchExpressions: [{ key: "a", operator: "In" }, { key: "a", operator: "Exists", values: ["b"] }, { key: "a", operator: "Near", values: [] }] }, "spec.selector");
  expect(formatFieldErrors(errors)).toBe("[spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn', " +
    "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist', " +
    'spec.selector.matchExpressions[2].operator: Invalid value: "Near": not a valid selector operator]');
});

/** Forty requirements that every label meets, so that it is a large one. */
const MANY = Array.from({ length: 40 }, (_, i) => `!many-${i}`).join(",");

test.each([
  ["app=web", { app: "web" }, true], ["app=web", { app: "db" }, false], ["app=web", {}, false], ["app=web,app=db", { app: "web" }, false], ["app in (web,db),app in (db,x)", { app: "db" }, true],
  ["app in (web,db),app!=db", { app: "db" }, false], ["app!=web", {}, true], ["app!=web", { app: "web" }, false], ["app notin (web,db)", { app: "x" }, true], ["app,!app", { app: "" }, false], ["app,!app", {}, false],
  ["app", { app: "" }, true], ["!app", { app: "" }, false], ["app=", { app: "" }, true], ["n>5,n>7", { n: "6" }, false], ["n>5,n>7", { n: "8" }, true], ["n<5,n<7", { n: "6" }, false], ["n>5", { n: "x" }, false], ["n>5", {}, false],
  ["toString", {}, false], ["app", { app: 5 }, false], ["app=web,tier", { app: "web" }, false], ["app=web,tier", { app: "web", tier: "", other: "" }, true],
])("%j among many requirements: of %j", (text, labels, matches) => {
  const filler = Array.from({ length: 70 }, (_, i) => `!other-${i}`).join(",");
  for (const all of [text, `${MANY},${text}`, `${MANY},${filler},${text}`]) expect(parseLabelSelector(all).matches(labels as never)).toBe(matches);
});

test.each<readonly [LabelOperator, readonly string[]]>([["!", []], ["!=", ["x"]]])("a large selector (%s) is asked of many objects without being gone through for each", (operator, values) => {
  expect(growth((n, reads) => {
    const selector = new LabelSelector(reads.of(Array.from({ length: n }, (_, i) => ({ key: `key-${i}`, operator, values }))));
    for (let i = 0; i < n; i++) expect(selector.matches({ app: "web" })).toBe(true);
  })).toBeLessThan(3);
});

test("of one label as many values as a query holds are looked up", () => {
  expect(growth((n, reads) => {
    const values = Array.from({ length: n }, (_, i) => `value-${i}`);
    let looks = 0;
    const counted = new Proxy(values, { get: (from, field) => { looks++; return Reflect.get(from, field) as unknown; } });
    const selector = new LabelSelector([{ key: "app", operator: "notin", values: counted }]);
    for (let i = 0; i < n; i++) expect(selector.matches({ app: "web" })).toBe(true);
    reads.count += looks;
  })).toBeLessThan(3);
});

test("a selector that stays as it is is read once, one that may change each time", () => {
  const stored = Object.freeze({ matchLabels: Object.freeze({ app: "web" }) });
  expect(labelSelector(stored)).toBe(labelSelector(stored));
  const draft = { matchLabels: { app: "web" } };
  expect(labelSelector(draft).matches({ app: "db" })).toBe(false);
  draft.matchLabels.app = "db";
  expect(labelSelector(draft).matches({ app: "db" })).toBe(true);
});
