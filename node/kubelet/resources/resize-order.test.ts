import { expect, test } from "vitest";
import type { Node, Pod } from "../../../core/api/gen/core.v1.ts";
import { refusalOf } from "../admission.ts";
import { othersBefore, type ResizeWish } from "./resize-order.ts";

const pod = (uid: string, milliCpu: number, more: object = {}): Pod => ({ metadata: { name: uid, uid }, spec: { containers: [{ name: "c", resources: { requests: { cpu: `${milliCpu}m` } } }], ...more } }) as unknown as Pod;
const wish = (uid: string, { from = 100, to = 700, sinceMs = 0, priority = 0, qosClass = "Burstable" } = {}): ResizeWish =>
  ({ pod: { ...pod(uid, to, { priority }), status: { qosClass } } as Pod, granted: pod(uid, from), sinceMs });

/** Of all who wait, in whatever order they ask, those to whom 1000m are given. */
function given(waiting: readonly ResizeWish[]): string[] {
  const fits = ({ pod }: ResizeWish, others: readonly Pod[]) => refusalOf({ os: "linux", pod, others, node: { metadata: { name: "n" }, spec: {} } as Node, allocatable: { cpu: "1", memory: "1Gi", pods: "9" }, allowedUnsafeSysctls: [], pressures: [] }) === undefined;
  return waiting.filter((one) => {
    const others = waiting.filter((other) => other !== one);
    return fits(one, othersBefore(one, { waiting: others, others: others.map(({ granted }) => granted), fits }));
  }).map(({ pod }) => pod.metadata.name);
}

test.each([
  ["by priority", [wish("late", { priority: 5, sinceMs: 9 }), wish("guaranteed", { qosClass: "Guaranteed" })], ["late"]],
  ["Guaranteed before Burstable", [wish("burstable"), wish("guaranteed", { qosClass: "Guaranteed", sinceMs: 9 })], ["guaranteed"]],
  ["who has waited longer; one that is new is last", [{ ...wish("new"), sinceMs: undefined }, wish("b", { sinceMs: 2 }), wish("a", { sinceMs: 1 })], ["a"]],
  ["one that gives back is not in line", [wish("first", { priority: 5 }), wish("less", { from: 300, to: 200, sinceMs: 9 })], ["first", "less"]],
  ["what is too much for the first is left to the next", [wish("much", { to: 2000, priority: 5 }), wish("next")], ["next"]],
] as const)("room is given %s", (_, waiting, expected) => {
  expect(given(waiting)).toEqual(expected);
  expect(given(waiting.toReversed()).sort()).toEqual([...expected].sort());
});
