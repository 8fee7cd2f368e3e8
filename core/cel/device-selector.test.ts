import { expect, test } from "vitest";
import { compileDeviceSelector, deviceEnvironment, isTooComplex, type SelectableDevice } from "./device-selector.ts";

const device: SelectableDevice = {
  driver: "gpu.example.com",
  attributes: { model: { string: "a100" }, "gpu.example.com/cores": { int: 7 }, "other.example.com/fast": { bool: true }, driverVersion: { version: "1.2.3" } },
  capacity: { memory: { value: "40Gi" } },
};

test.each([
  [`device.driver == "gpu.example.com"`, true],
  [`device.attributes["gpu.example.com"].model == "a100" && device.attributes["gpu.example.com"].cores > 6`, true],
  [`device.attributes["other.example.com"].fast`, true],
  [`device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("39Gi"))`, true],
  [`device.attributes["gpu.example.com"].driverVersion.isLessThan(semver("2.0.0"))`, true],
  [`cel.bind(gpu, device.attributes["gpu.example.com"], gpu.cores == 7 && gpu.model == "b")`, false],
  [`has(device.attributes["nobody.example.com"].model)`, false],
  [`"nobody.example.com" in device.attributes || "nobody.example.com" in device.capacity`, false],
  [`"gpu.example.com" in device.attributes && "gpu.example.com" in device.capacity`, true],
  [`device.allowMultipleAllocations`, false],
])("%s", (expression, expected) => {
  const selector = compileDeviceSelector(expression);
  expect("problem" in selector ? selector.problem : selector.matches(device)).toBe(expected);
});

test("what cannot be compiled, and what fails, is said", () => {
  expect(compileDeviceSelector("device.driver")).toEqual({ problem: "must evaluate to bool or the unknown type, not string" });
  expect(compileDeviceSelector("device.model")).toMatchObject({ problem: expect.stringContaining("compilation failed: ERROR: <input>:1:7: undefined field 'model'") });
  const selector = compileDeviceSelector(`device.attributes["gpu.example.com"].missing == "x"`);
  expect(() => "matches" in selector && selector.matches(device)).toThrow("no such key: missing");
});

test.each([
  [`true`, 0n],
  [`device.driver == "gpu.example.com"`, 4n],
  [`device.attributes["gpu.example.com"].model == "a100"`, 5n],
  [`cel.bind(gpu, device.attributes["gpu.example.com"], gpu.name)`, 15n],
  [`device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Ki"))`, 6n],
  [`device.attributes.exists_one(x, x == "gpu.example.com")`, 164n],
  [`device.attributes["gpu.example.com"].exists_one(x, x == "services")`, 133n],
  [`device.attributes["gpu.example.com"].services.matches("[^a]?sym")`, 18n],
  [`device.allowMultipleAllocations == true`, 3n],
])("%s costs at most", (expression, cost) => expect(compileDeviceSelector(expression)).toMatchObject({ maxCost: cost }));

test("what costs too much is told beforehand", () => {
  const over = (depth: number, inner: string): string => (depth === 0 ? inner : `device.attributes["a.b"].exists(k${depth}, ${over(depth - 1, inner)})`);
  const isComplex = (expression: string): boolean => { const selector = compileDeviceSelector(expression); return "problem" in selector || isTooComplex(selector); };
  expect([3, 4].map((depth) => isComplex(over(depth, "k1 == k2")))).toEqual([false, true]);
});

const LISTS = deviceEnvironment(true);
const listed: SelectableDevice = { driver: "d.io", attributes: { l: { strings: ["a", "b"] }, i: { ints: [1, 2] }, y: { bools: [true] }, v: { versions: ["1.0.0", "2.0.0"] }, one: { string: "a" }, on: { bool: true } } };

test.each<[string, boolean]>([
  [`device.attributes["d.io"].l.includes("a") && !device.attributes["d.io"].l.includes("c")`, true], [`device.attributes["d.io"].one.includes("a") && !device.attributes["d.io"].one.includes("b")`, true],
  [`device.attributes["d.io"].i.exists(x, x > 1) && 2 in device.attributes["d.io"].i && size(device.attributes["d.io"].i) == 2`, true], [`device.attributes["d.io"].v.all(v, v.isLessThan(semver("3.0.0")))`, true],
  [`device.attributes["d.io"].l == ["a", "b"]`, true], [`device.attributes["d.io"].y.includes(true)`, true], [`device.attributes["d.io"].on`, true], [`[1].includes(2) || "abc".includes("a")`, false],
])("where attributes may be lists: %s", (expression, expected) => {
  const selector = compileDeviceSelector(expression, LISTS);
  expect("problem" in selector ? selector.problem : selector.matches(listed)).toBe(expected);
});

test("lists cost what they may hold, and are told from what is none", () => {
  const compiled = (expression: string) => compileDeviceSelector(expression, LISTS);
  const isComplex = (expression: string): boolean => { const selector = compiled(expression); return "problem" in selector || isTooComplex(selector); };
  const l = `device.attributes["x.io"].l`;
  expect([`${l}.includes("a")`, `${l}.exists(x, x == "a")`, `${l}.all(x, ${l}.all(y, x == y))`].map(isComplex)).toEqual([false, false, true]);
  expect(compiled(`${l}.includes()`)).toMatchObject({ problem: expect.stringContaining("compilation failed: ERROR: <input>:1:37: found no matching overload for 'includes' applied to 'dyn.()'") });
  const [long, without] = [compiled(`device.attributes["d.io"].l.includes("x")`), compileDeviceSelector(`device.attributes["d.io"].one == "a"`)];
  const device = (count: number): SelectableDevice => ({ driver: "d.io", attributes: { l: { strings: Array.from({ length: count }, (_, i) => String(i)) } } });
  expect("matches" in long && long.matches(device(48))).toBe(false);
  expect(() => "matches" in long && long.matches(device(49))).toThrow("'includes' function cannot be applied to lists longer than 48 values");
  expect(() => "matches" in without && without.matches(listed)).toThrow("attribute l: unsupported attribute value");
  expect(compileDeviceSelector(`${l}.includes("a")`)).toMatchObject({ problem: expect.stringContaining("undeclared reference to 'includes'") });
});

/** `[[…], […]]` or `l + l`, again and again. */
function doubled(levels: number, first: string, twice: (list: string) => string, ask: (list: string) => string): string {
  return Array.from({ length: levels }, (_, i) => `cel.bind(v${i + 1}, ${twice(`v${i}`)}, `).join("").concat(ask(`v${levels}`), ")".repeat(levels)).replace(/^/, `cel.bind(v0, ${first}, `).concat(")");
}
const nested = (list: string): string => `[${list}, ${list}]`, joined = (list: string): string => `${list} + ${list}`;

test.each<[string, (list: string) => string, (list: string) => string]>([
  ["[1]", nested, (list) => `${list} == ${list}`],
  ["[1]", nested, (list) => `${list} in [${list}]`],
  ["{'a': [1]}", (map) => `{'a': ${map}, 'b': ${map}}`, (map) => `${map} == ${map}`],
  ["[1]", joined, (list) => `2 in ${list}`],
  ["[1]", joined, (list) => `${list} == ${list}`],
  ["[1]", joined, (list) => `${list}.sum() == 1`],
])("of %s that was doubled forty times there is more than an expression may make", (first, twice, ask) => {
  const selector = compileDeviceSelector(doubled(40, first, twice, ask));
  expect(() => ("problem" in selector ? selector.problem : selector.matches(device))).toThrow("operation cancelled: actual cost limit exceeded");
});

test.each<[(list: string) => string, (list: string) => string]>([
  [nested, (list) => `size(${list}) == 2 && dyn([2]) != dyn(${list})`],
  [nested, (list) => `${list} == ${list} && !(${list} != ${list})`], [joined, (list) => `${list} == ${list} && size(${list}) == 2048 && ${list}[2047] == 2 && ${list}[2046] == 1`],
  [joined, (list) => `${list} != ${list} + [1] && !(3 in ${list}) && 2 in ${list} && ${list}.sum() == 3072`], [joined, (list) => `${list} + [1, 2] == [1, 2] + ${list} && ${list} + [1, 3] != [1, 2] + ${list}`],
])("of what was doubled ten times everything is looked at", (twice, ask) => {
  const selector = compileDeviceSelector(doubled(10, "[1, 2]", twice, ask));
  expect("problem" in selector ? selector.problem : selector.matches(device)).toBe(true);
});

test("an expression of another type is told so before what keeps it from being made ready", () => {
  expect(compileDeviceSelector("true ? device.attributes['d']['x'][timestamp(0)] : dyn(1)")).toEqual({ problem: "must evaluate to bool or the unknown type, not dyn" });
});
