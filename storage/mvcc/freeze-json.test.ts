import { expect, test } from "vitest";
import type { Value } from "../store.ts";
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

const names = (n: number, value: unknown): object => Object.fromEntries(Array.from({ length: n }, (_, i) => [`only-${i}`, value]));
const lease = (i: number): Value => ({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: `node-${i}`, namespace: "kube-node-lease", uid: `3f1c${i}`, labels: { zone: "a" } }, spec: { holderIdentity: `node-${i}`, leaseDurationSeconds: 40 } });

test("of what all objects of a kind have the names take little: they share them", () => {
  const [first, next] = [freezeJson(lease(1), { arrays: false }), freezeJson(lease(2), { arrays: false })];
  expect(next.size).toBe(first.size);
  expect(next.memory).toBeLessThanOrEqual(first.memory);
});

test("names that are used stay usual, whatever others were met first, or come by the thousand", () => {
  const words = (prefix: string, n: number): object => Object.fromEntries(Array.from({ length: n }, (_, i) => [`${prefix}-${i}`, { type: "string" }]));
  const podLike = (): Value => ({ kind: "Podlike", metadata: { uid: "1" }, status: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`status${i}`, { state: i }])) });
  const memory = (value: Value): number => freezeJson(value, { arrays: false }).memory;
  for (let i = 0; i < 20; i++) memory({ spec: words(`field-${i}`, 500) }); // definitions of other kinds
  memory(podLike());
  const usual = memory(podLike());
  expect(usual).toBeLessThan(ROW + 85 * 120);
  memory({ data: words("key", 35_000) });
  expect(memory(podLike())).toBe(usual);
});

/** What each row takes, whatever is in it. */
const ROW = 1200;

test.each<[string, Value, number, number]>([
  ["text", { data: { a: "x".repeat(100_000) } }, 0, 2],
  ["text whose characters are two bytes", { data: { a: "\u4e16".repeat(100_000) } }, 4, 6],
  ["brackets", { spec: { all: Array.from({ length: 10_000 }, () => []) } }, 20, 35],
  ["names that nothing else has", { data: names(10_000, "") }, 6, 16],
  ["who owns them", { metadata: { managedFields: [{ fieldsV1: names(10_000, {}) }] } }, 10, 20],
  ["objects each of a name of its own", { spec: { all: Array.from({ length: 10_000 }, (_, i) => ({ [`one-${i}`]: 0 })) } }, 15, 40],
])("%s take so many times as much memory as their JSON is long", (_, value, least, most) => {
  freezeJson({ data: names(5_000, "") }, { arrays: false }); // no name is a usual one any more
  const { memory, size } = freezeJson(value, { arrays: false });
  expect(memory / size).toBeGreaterThan(least);
  expect(memory / size).toBeLessThan(most);
});
