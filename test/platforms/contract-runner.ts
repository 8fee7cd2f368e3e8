/** Stands in for `vitest` where a contract suite is compiled into a program (executables.ts): tests are collected, then run one after another. */
import { isDeepStrictEqual } from "node:util";

const tests: { readonly name: string; readonly body: () => unknown }[] = [];
const scope: string[] = [];

export function describe(name: string, body: () => void): void {
  scope.push(name);
  body();
  scope.pop();
}

export function test(name: string, body: () => unknown): void { tests.push({ name: [...scope, name].join(" > "), body }); }

/** The matchers contract suites use; another one is an error at its first use. */
export function expect(actual: unknown, about = "") {
  function check(holds: boolean, what: string, expected: unknown): void {
    if (!holds) throw new Error(`${about} expected ${Bun.inspect(actual)} ${what} ${Bun.inspect(expected)}`.trim());
  }
  return {
    toBe: (expected: unknown) => check(Object.is(actual, expected), "to be", expected),
    toBeUndefined: () => check(actual === undefined, "to be", undefined),
    toBeInstanceOf: (expected: new (...args: never[]) => unknown) => check(actual instanceof expected, "to be an instance of", expected.name),
    toBeGreaterThan: (expected: number) => check((actual as number) > expected, "to be greater than", expected),
    toBeGreaterThanOrEqual: (expected: number) => check((actual as number) >= expected, "to be at least", expected),
    toHaveLength: (expected: number) => check((actual as ArrayLike<unknown>).length === expected, "to have length", expected),
    toEqual: (expected: unknown) => check(isDeepStrictEqual(plain(actual), plain(expected)), "to equal", expected),
  };
}

/** Without members that are undefined, as vitest's toEqual compares. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined).map(([name, member]) => [name, plain(member)]));
}

export async function runTests(): Promise<{ readonly passed: number; readonly failed: number }> {
  let failed = 0;
  for (const { name, body } of tests) {
    try {
      await body();
      console.log(`ok    ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAIL  ${name}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
  return { passed: tests.length - failed, failed };
}
