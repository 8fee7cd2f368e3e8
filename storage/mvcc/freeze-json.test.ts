import { expect, test } from "vitest";
import { freezeJson } from "./freeze-json.ts";

const spec = () => ({ containers: Array.from({ length: 20 }, (_, i) => ({ name: `c${i}`, image: "web:1", env: [{ name: "A", value: String(i) }] })) });

test("a part that was frozen before is as large as it was, and stays the very same", () => {
  const [first, again] = [freezeJson({ kind: "Pod", spec: spec() }, { arrays: false }), freezeJson({ kind: "Pod", spec: spec() }, { arrays: false })];
  expect(again.size).toBe(first.size);
  const next = freezeJson({ kind: "Pod", spec: first.value["spec"]!, status: { phase: "Running" } }, { arrays: false });
  expect(next.value["spec"]).toBe(first.value["spec"]);
  expect(next.size).toBe(freezeJson({ kind: "Pod", spec: spec(), status: { phase: "Running" } }, { arrays: false }).size);
  const text = JSON.stringify(next.value).length;
  expect(Math.abs(next.size - text) / text).toBeLessThan(0.2);
});

test("what JSON cannot say is dropped or replaced, and what is none is refused", () => {
  const { value } = freezeJson({ a: undefined, b: -0, c: ["\ud800", undefined], d: { e: 2n ** 62n } } as never, { arrays: true });
  expect(value).toStrictEqual({ b: 0, c: ["\ufffd", null], d: { e: 2n ** 62n } });
  expect([Object.isFrozen(value), Object.isFrozen(value["c"]), Object.isFrozen(value["d"])]).toEqual([true, true, true]);
  for (const [bad, told] of [[new Date(), "no JSON object: Date"], [Number.NaN, "no JSON number: NaN"], [2n ** 64n, "no integer of 64 bits"], [() => 1, "no JSON value: function"]] as const)
    expect(() => freezeJson({ bad } as never, { arrays: false })).toThrow(told);
});
