import { expect, test, vi } from "vitest";
import { DYN, INT, listOf } from "./check/type.ts";
import { compile, evaluate } from "./compile.ts";
import { kubernetesEnvironment } from "./kubernetes.ts";
import { valueOf } from "./schema/schema-value.ts";
import { fromJson } from "./value/json.ts";
import { List, type Mapping } from "./value/value.ts";

const environment = kubernetesEnvironment().with({ variables: { x: DYN } });
const TOO_DEEP = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
const TOO_HIGH = "ERROR: <input>:-1:0: max recursion depth exceeded";

/** How deep each may stand in itself, and what is said of one deeper. */
test.each<[string, (depth: number) => string, number, string]>([
  ["parentheses", (n) => `${"(".repeat(n)}1${")".repeat(n)}`, 249, TOO_DEEP],
  ["lists", (n) => `${"[".repeat(n)}1${"]".repeat(n)}`, 249, TOO_DEEP],
  ["calls", (n) => `${"string(".repeat(n)}'a'${")".repeat(n)}`, 249, TOO_DEEP],
  ["negations", (n) => `${"!(".repeat(n)}true${")".repeat(n)}`, 249, TOO_DEEP],
  ["alternatives", (n) => `${"false ? 1 : ".repeat(n)}1`, 249, TOO_DEEP],
  ["keys", (n) => `${"x[".repeat(n)}0${"]".repeat(n)}`, 249, TOO_DEEP],
  ["macros", (n) => `${"[1].all(q, ".repeat(n)}true${")".repeat(n)}`, 249, TOO_DEEP],
  ["what stands on the right of a sum", (n) => `${"1 + (".repeat(n)}1${")".repeat(n)}`, 124, TOO_DEEP],
  ["what stands on the right of a relation", (n) => `${"1 in [".repeat(n)}1${"]".repeat(n)}`, 124, TOO_DEEP],
  ["summands", (n) => `1${" + 1".repeat(n)}`, 250, TOO_HIGH],
  ["fields", (n) => `x${".a".repeat(n)}`, 250, TOO_HIGH],
  ["methods", (n) => `x${".size()".repeat(n)}`, 250, TOO_HIGH],
])("%s", (_, nested, deepest, problem) => {
  const limited = (depth: number) => compile(nested(depth), environment).problem?.includes("exceeded");
  expect(limited(deepest) ?? false).toBe(false);
  expect(compile(nested(deepest + 1), environment).problem).toBe(problem);
});

test("terms of && and || are not limited; signs are, by nothing", () => {
  for (const text of [`true${" && true".repeat(2000)}`, `false${" || true".repeat(2000)}`, `${"!".repeat(3001)}false`]) {
    const compiled = compile(text, environment);
    expect(compiled.problem === undefined && evaluate(compiled, {}).value).toBe(true);
  }
});

test("an expression is no longer than 100,000 characters", () => {
  expect(compile(`'${"é".repeat(99_998)}'`, environment).problem).toBeUndefined();
  expect(compile(`'${"é".repeat(99_999)}'`, environment).problem).toBe("ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000");
});

test("what macros make of a text, and how many types one is made of, has an end, and is there soon for each text", () => {
  const copied = (times: number): string => `optional.of(1)${".optMap(y, y)".repeat(times)}.hasValue()`, doubled = (times: number): string => `[1]${".map(y, {y: y})".repeat(times)}.size() == 1`;
  for (const text of [copied(6), doubled(7), `${"{1: ".repeat(249)}1${"}".repeat(249)}.size() == 1`, `${"1 == 1 && ".repeat(9000)}true`]) {
    const compiled = compile(text, environment);
    expect(compiled.problem === undefined && evaluate(compiled, {}).value).toBe(true);
  }
  expect(compile(copied(200), environment).problem).toBe("ERROR: <input>:-1:0: expression node count exceeds limit: 22000");
  expect(compile(doubled(80), environment).problem).toBe("ERROR: <input>:-1:0: type size exceeds limit: 512");
});

test("what an evaluation may cost", () => {
  const compiled = compile("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(a, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(b, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(c, a + b + c))).size() == 10", environment);
  if (compiled.problem !== undefined) throw new Error(compiled.problem);
  expect(evaluate(compiled, {}, { costLimit: 1000 })).toMatchObject({ value: { message: "operation cancelled: actual cost limit exceeded" }, exceeded: true });
  expect(evaluate(compiled, {}, { costLimit: 100_000 })).toMatchObject({ value: true, exceeded: false });
});

test("lists within lists that a few of them make are not gone through for nothing, nor for ever", () => {
  const run = (text: string) => {
    const compiled = compile(text, environment);
    if (compiled.problem !== undefined) throw new Error(compiled.problem);
    return evaluate(compiled, { x: "x" }, { costLimit: 1_000_000 });
  };
  const doubled = (times: number): string => `[x]${".map(a, [a, a])".repeat(times)}`;
  for (const text of [`D == D`, `D in [D]`, `"%s".format([D]) != ""`, `[D, D].distinct().size() == 1`, `{"a": D} == {"a": D}`, `{"a": D, "b": D}.transformMap(k, v, [v, v]).size() == 2`]) {
    expect(run(text.replaceAll("D", doubled(9)))).toMatchObject({ value: true, exceeded: false });
    expect(run(text.replaceAll("D", doubled(60)))).toMatchObject({ value: { message: "operation cancelled: actual cost limit exceeded" }, exceeded: true });
  }
  expect(run(`D == D`.replaceAll("D", `[x]${".map(a, [optional.of(optional.of(a)), optional.of(optional.of(a))])".repeat(40)}`))).toMatchObject({ exceeded: true });
  expect(run(`lists.range(100).all(i, lists.range(100).all(j, dyn(${doubled(14)}) != i + j))`)).toMatchObject({ exceeded: true });
});

test("a range is stopped before it is made", () => {
  const run = (text: string, costLimit: number) => {
    const compiled = compile(text, environment);
    if (compiled.problem !== undefined) throw new Error(compiled.problem);
    return evaluate(compiled, {}, { costLimit });
  };
  expect(run("lists.range(9223372036854775807).size() > 0", 10_000_000)).toMatchObject({ value: { message: "operation cancelled: actual cost limit exceeded" }, exceeded: true });
  expect(run("lists.range(3) == [0, 1, 2] && lists.range(-1) == [] && lists.range(5)[4] == 4", 10_000)).toMatchObject({ value: true, exceeded: false });
});

test("an object with many fields is not listed each time that one of them is asked for", () => {
  let listed = 0;
  const counted = (json: object): object => new Proxy(json, { ownKeys: (target) => (listed++, Reflect.ownKeys(target)) });
  const spec = { spec: counted({ a: 1, b: 2, c: 3 }) };
  const many = kubernetesEnvironment().with({ variables: { x: DYN, y: DYN } });
  const compiled = compile("lists.range(100).all(i, 'a' in x.spec && 'a' in y.spec && x.spec.size() == 3 && y.spec.size() == 3 && optional.ofNonZeroValue(x.spec).hasValue())", many);
  if (compiled.problem !== undefined) throw new Error(compiled.problem);
  const schema = { type: "object", properties: { spec: { type: "object", additionalProperties: { type: "integer" } } } };
  expect(evaluate(compiled, { x: fromJson(spec), y: valueOf(spec, schema) }).value).toBe(true);
  expect(listed).toBe(2);
});

test("what takes as long as two lists are long, multiplied, is paid before it is done", () => {
  const within = environment.with({ variables: { l: listOf(INT) } });
  let looked = 0;
  class Counted extends List {
    override readonly size = 20_000;
    override at(index: number): bigint { looked++; return BigInt(index); }
  }
  const l = new Counted();
  for (const text of ["l.distinct().size() > 0", "sets.contains(l, l)", "sets.equivalent(x, l)", "sets.intersects(l.map(i, i - 20000), l)", "x.all(i, i in x)"]) {
    const compiled = compile(text, within);
    if (compiled.problem !== undefined) throw new Error(compiled.problem);
    looked = 0;
    expect(evaluate(compiled, { l, x: l }, { costLimit: 1_000_000 })).toMatchObject({ value: { message: "operation cancelled: actual cost limit exceeded" }, exceeded: true });
    expect(looked).toBeLessThan(20_000_000);
  }
});

test("what a format writes costs, too, and a text is read once", () => {
  const run = (text: string) => {
    const compiled = compile(text, environment);
    if (compiled.problem !== undefined) throw new Error(compiled.problem);
    return evaluate(compiled, { x: fromJson({ a: "b".repeat(100_000) }) }, { costLimit: 1_000_000 });
  };
  expect(run("'%f'.format([1e300]).size() == 408")).toMatchObject({ value: true, cost: 3 });
  expect(run("'%f %.0f %.1f %f'.format([-1234567.5, -123.0, 12.25, -999.0]) == '-1,234,567.500000 -123 12.2 -999.000000'")).toMatchObject({ value: true });
  for (const text of ["'%.60000e'.format([1.5]) != ''", "'%s'.format([x]) != ''", "'%x'.format([x.a]) != ''"]) {
    expect(run(text)).toMatchObject({ value: true, exceeded: false });
    expect(run(`lists.range(1000).all(i, ${text})`)).toMatchObject({ exceeded: true });
  }
  const span = valueOf({ d: "1 day" }, { type: "object", properties: { d: { type: "string", format: "duration" } } }) as Mapping;
  expect(span.find("d")).toBe(span.find("d"));
});

test("the hour in a zone is told without a formatter of dates, which would be made for each time and zone", () => {
  const compiled = compile("['Europe/Berlin', 'Asia/Kolkata', 'Nowhere/Land'].map(zone, lists.range(3).exists(i, timestamp(i * 10000000).getHours(zone) >= 0)).size()", environment);
  if (compiled.problem !== undefined) throw new Error(compiled.problem);
  const made = vi.spyOn(Intl, "DateTimeFormat");
  expect(evaluate(compiled, {}, { costLimit: 1_000_000 }).value).toEqual({ message: "unknown time zone Nowhere/Land" });
  expect(made).not.toHaveBeenCalled();
  made.mockRestore();
});

test.each(["a", "🎉"])("a long text is not read for nothing as often as a loop goes round: of %s", (letter) => {
  const compiled = (text: string) => {
    const found = compile(text, environment);
    if (found.problem !== undefined) throw new Error(found.problem);
    return (x: object) => evaluate(found, { x: fromJson(x) }, { costLimit: 1_000_000 });
  };
  const long = { a: letter.repeat(500_000), m: { b: 1 } };
  for (const text of ["x.a.size() == 500000", `x.a.charAt(400000) == '${letter}'`, `x.a.substring(499999) == '${letter}'`, "!(x.a in x.m)", "!(x.a in ['b'])", "{x.a: 1}.size() == 1", "!x.m[?x.a].hasValue()"]) {
    expect(compiled(text)(long)).toMatchObject({ value: true, exceeded: false });
    expect(compiled(`lists.range(1000).all(i, ${text})`)(long)).toMatchObject({ exceeded: true });
  }
  expect(compiled(`lists.range(1000).all(i, x.a.size() == 800)`)({ a: letter.repeat(800) })).toMatchObject({ value: true, exceeded: false });
});
