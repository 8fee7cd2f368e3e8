import { expect, test } from "vitest";
import { stored } from "../../../test/static-informer.ts";
import type { ResourceQuota } from "../../api/gen/core.v1.ts";
import { keyOf } from "../../api/meta/object-meta.ts";
import { amountsOf, listOf } from "../../api/quota/amounts.ts";
import { withRaises } from "./plan.ts";
import { RecentRaises } from "./recent-raises.ts";

const quota = (used?: object) => stored<ResourceQuota>("v1", "ResourceQuota", "ns/q", (used ? { status: { used } } : {}) as never);
const KEY = keyOf(quota());

test("what was added comes on top until it is seen, or will not come any more; counts are not made all the time", () => {
  let nowMs = 0;
  const recent = new RecentRaises({ uptimeMs: () => nowMs });
  const at = (ms: number, used: object, old: object | undefined): void => { nowMs = ms; recent.note({ object: quota(used), old: quota(old), deleted: false }); };
  const taken = () => listOf(recent.take(KEY));
  recent.note({ object: quota(), deleted: false });
  expect(recent.leftMs(KEY)).toBe(2_000); // what was added before it was seen is not known
  at(100, { pods: "0", cpu: "7" }, undefined); // the first count
  nowMs = 2_000;
  expect(recent.leftMs(KEY)).toBe(0);
  expect(taken()).toEqual({});
  nowMs = 2_100;
  expect(recent.leftMs(KEY)).toBe(150);

  at(3_000, { pods: "1", cpu: "6" }, { pods: "0", cpu: "7" });
  at(4_000, { pods: "3", cpu: "7500m" }, { pods: "1", cpu: "6" });
  expect(taken()).toEqual({ pods: "3", cpu: "1500m" });
  recent.appeared(KEY, amountsOf({ pods: "2", cpu: "500m", secrets: "1" }));
  expect(taken()).toEqual({ pods: "1", cpu: "1" });
  nowMs = 5_000; // the first has been seen in the meantime
  expect(taken()).toEqual({ pods: "1", cpu: "1" });
  nowMs = 6_000;
  expect(taken()).toEqual({});
  at(7_000, { pods: "4" }, { pods: "3" });
  recent.appeared(KEY, amountsOf({ pods: "9" }));
  expect(taken()).toEqual({});
  recent.note({ object: quota(), deleted: true });
  expect(recent.leftMs(KEY)).toBe(0);
});

test("with what was added on top it is no more than was noted, unless more is there", () => {
  const noted = amountsOf({ pods: "9", cpu: "1", secrets: "2" });
  const result = withRaises(amountsOf({ pods: "3", cpu: "900m", secrets: "4", services: "1" }), { raised: amountsOf({ pods: "2", cpu: "500m", secrets: "1", services: "1" }), noted });
  expect(listOf(result)).toEqual({ pods: "5", cpu: "1", secrets: "4", services: "1" });
});
