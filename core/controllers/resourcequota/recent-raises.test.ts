import { expect, test } from "vitest";
import { stored } from "../../../test/static-informer.ts";
import type { ResourceQuota } from "../../api/gen/core.v1.ts";
import { keyOf } from "../../api/meta/object-meta.ts";
import { amountsOf, listOf } from "../../api/quota/amounts.ts";
import { withRaises } from "./plan.ts";
import { RecentRaises } from "./recent-raises.ts";

const quota = (used?: object) => stored<ResourceQuota>("v1", "ResourceQuota", "ns/q", (used ? { status: { used } } : {}) as never);
const KEY = keyOf(quota());

test("a count that comes out lower waits until nothing is being added, but not for ever, and what was added last comes on top", () => {
  let nowMs = 0;
  const recent = new RecentRaises({ uptimeMs: () => nowMs });
  const at = (ms: number, used: object, old: object | undefined): void => { nowMs = ms; recent.note({ object: quota(used), old: quota(old), deleted: false }); };
  recent.note({ object: quota(), deleted: false });
  expect(recent.leftMs(KEY)).toBe(2_000); // what was added before it was seen is not known
  at(100, { pods: "0", services: "7" }, undefined); // the first count
  nowMs = 2_000;
  expect(recent.leftMs(KEY)).toBe(0);
  expect(recent.take(KEY).size).toBe(0);

  at(3_000, { pods: "1", services: "6" }, { pods: "0", services: "7" });
  expect(recent.leftMs(KEY)).toBe(2_000);
  at(4_500, { pods: "3" }, { pods: "1" });
  expect(recent.leftMs(KEY)).toBe(500);
  nowMs = 5_000;
  expect(recent.leftMs(KEY)).toBe(0);
  expect(listOf(recent.take(KEY))).toEqual({ pods: "2" });
  expect(recent.leftMs(KEY)).toBe(1_500);
  nowMs = 6_500;
  expect(recent.leftMs(KEY)).toBe(0);
  expect(recent.take(KEY).size).toBe(0);
  recent.note({ object: quota(), deleted: true });
  expect(recent.leftMs(KEY)).toBe(0);
});

test("with what was added on top it is no more than was noted, unless more is there", () => {
  const noted = amountsOf({ pods: "9", cpu: "1", secrets: "2" });
  const result = withRaises(amountsOf({ pods: "3", cpu: "900m", secrets: "4", services: "1" }), { raised: amountsOf({ pods: "2", cpu: "500m", secrets: "1", services: "1" }), noted });
  expect(listOf(result)).toEqual({ pods: "5", cpu: "1", secrets: "4", services: "1" });
});
