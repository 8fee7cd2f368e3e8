import { expect, test } from "vitest";
import { compileDeviceSelector, isTooComplex, type SelectableDevice } from "./device-selector.ts";

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
