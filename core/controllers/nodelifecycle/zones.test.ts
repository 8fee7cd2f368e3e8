import { expect, test } from "vitest";
import { stored } from "../../../test/static-informer.ts";
import type { Node } from "../../api/gen/core.v1.ts";
import { NODE_LIFECYCLE } from "./plan.ts";
import { Zones } from "./zones.ts";

const node = (name: string, zone: string, ready: "True" | "Unknown", isExcluded = false): Node => stored("v1", "Node", name, {
  metadata: { labels: { "topology.kubernetes.io/zone": zone, ...(isExcluded ? { "node.kubernetes.io/exclude-disruption": "" } : {}) } }, status: { conditions: [{ type: "Ready", status: ready }] },
});

test("nodes that do not count for their zone are tainted no faster than others, and say nothing of it", () => {
  const zones = new Zones(NODE_LIFECYCLE);
  const lone = node("lone", "a", "Unknown", true);
  zones.judge([lone], 0);
  expect([zones.areAllSilent, [...zones.counts()], [...zones.names()].length, zones.mayTaint(lone)]).toEqual([false, [], 1, true]);
  zones.take(lone);
  expect(zones.mayTaint(lone)).toBe(false);
  zones.judge([lone, node("b1", "b", "Unknown")], 9_000);
  expect([zones.areAllSilent, zones.mayTaint(lone)]).toEqual([true, false]);
  zones.judge([lone, node("b1", "b", "True")], 10_000);
  expect([zones.areAllSilent, zones.mayTaint(lone)]).toEqual([false, true]);
});

test.each([
  [0.1, 1, 1], [1, 1, 5], [1000, 1, 50],
])("at a rate of %d nodes a second %i is tainted at the first look, and %i at the next one that there is a token at", (rate, first, later) => {
  const zones = new Zones({ ...NODE_LIFECYCLE, rate, unhealthyShare: 1 });
  const silent = Array.from({ length: 99 }, (_, i) => node(`n${i}`, "a", "Unknown"));
  const tainted = (nowMs: number): number => {
    zones.judge([...silent, node("ready", "a", "True")], nowMs);
    return silent.filter((one) => zones.mayTaint(one) && (zones.take(one), true)).length;
  };
  expect([tainted(0), tainted(5_000 + (rate < 0.2 ? 5_000 : 0))]).toEqual([first, later]);
});
