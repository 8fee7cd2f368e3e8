import { expect, test } from "vitest";
import type { Lease } from "../../api/gen/coordination.v1.ts";
import type { Node, Pod, Taint, Toleration } from "../../api/gen/core.v1.ts";
import { staysForMs } from "../tainteviction/tainteviction.ts";
import { evictionFor, healthAfter, isSilent, scheduleTaints, taintsPerSecond, unknownConditions, zoneState } from "./plan.ts";

const T0 = Date.parse("2026-01-01T00:00:00Z");
function node({ ready, heartbeat = "2026-01-01T00:00:00Z", taints = [], unschedulable = false, more = [] }: { ready?: string; heartbeat?: string; taints?: Taint[]; unschedulable?: boolean; more?: { type: string; status: string }[] } = {}): Node {
  return {
    apiVersion: "v1", kind: "Node", metadata: { name: "n", uid: "u", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" }, spec: { taints, unschedulable },
    status: { conditions: [...(ready === undefined ? [] : [{ type: "Ready", status: ready, lastHeartbeatTime: heartbeat, lastTransitionTime: heartbeat }]), ...more] },
  };
}
const lease = (renewTime: string) => ({ spec: { renewTime } }) as Lease;

test("a node lives as long as its lease or its status moves, by our clock", () => {
  const up = (watchedMs: number, nowMs = T0 + watchedMs) => ({ watchedMs, nowMs });
  const first = healthAfter(undefined, node({ ready: "True" }), lease("2020-01-01T00:00:00Z"), up(0)); // its clock is six years late
  expect(isSilent(first, node({ ready: "True" }), 50_000)).toBe(false);
  expect(isSilent(first, node({ ready: "True" }), 50_001)).toBe(true);
  const renewed = healthAfter(first, node({ ready: "True" }), lease("2020-01-01T00:00:10Z"), up(40_000, 0)); // ours was set back by decades
  expect([isSilent(renewed, node({ ready: "True" }), 90_000), isSilent(renewed, node({ ready: "True" }), 90_001)]).toEqual([false, true]);
  expect(healthAfter(renewed, node({ ready: "True" }), lease("2020-01-01T00:00:10Z"), up(80_000))).toBe(renewed);
  expect(healthAfter(renewed, node({ ready: "True" }), lease("2018-01-01T00:00:00Z"), up(80_000)).seenMs).toBe(80_000); // the node's own was
  const posted = healthAfter(renewed, node({ ready: "True", heartbeat: "x" }), lease("2020-01-01T00:00:10Z"), up(80_000));
  expect(posted.seenMs).toBe(80_000);
  const unborn = healthAfter(undefined, node(), undefined, up(5_000, T0 + 10_000));
  expect([isSilent(unborn, node(), 55_000), isSilent(unborn, node(), 55_001)]).toEqual([false, true]);
  const unborn2036 = healthAfter(undefined, node(), undefined, up(5_000, T0 - 10 * 365 * 86_400_000)); // made by a clock ten years ahead
  expect(isSilent(unborn2036, node(), 65_001)).toBe(true);
});

test("a silent node's conditions become unknown, once", () => {
  const conditions = unknownConditions(node({ ready: "True", more: [{ type: "DiskPressure", status: "Unknown" }, { type: "NetworkUnavailable", status: "False" }] }), T0);
  expect(conditions.map(({ type, status, reason }) => [type, status, reason])).toEqual([
    ["Ready", "Unknown", "NodeStatusUnknown"], ["DiskPressure", "Unknown", undefined], ["NetworkUnavailable", "False", undefined], ["MemoryPressure", "Unknown", "NodeStatusNeverUpdated"], ["PIDPressure", "Unknown", "NodeStatusNeverUpdated"],
  ]);
  const silent = { ...node(), status: { conditions: [...conditions] } };
  expect(unknownConditions(silent, T0 + 1)).toBe(silent.status.conditions);
});

const own = { key: "example.com/own", effect: "NoSchedule" } as const;
const taint = (name: string, effect: Taint["effect"]): Taint => ({ key: `node.kubernetes.io/${name}`, effect });
test.each([
  { name: "ready", of: node({ ready: "True", taints: [own] }), keys: undefined },
  { name: "not ready", of: node({ ready: "False", taints: [own] }), keys: [own.key, "node.kubernetes.io/not-ready"] },
  { name: "from not ready to unreachable", of: node({ ready: "Unknown", taints: [taint("not-ready", "NoSchedule")] }), keys: ["node.kubernetes.io/unreachable"] },
  { name: "under pressure and cordoned", of: node({ ready: "True", more: [{ type: "DiskPressure", status: "True" }], unschedulable: true }), keys: ["node.kubernetes.io/disk-pressure", "node.kubernetes.io/unschedulable"] },
  { name: "well again", of: node({ ready: "True", taints: [taint("memory-pressure", "NoSchedule"), taint("not-ready", "NoExecute")] }), keys: ["node.kubernetes.io/not-ready"] },
])("NoSchedule taints: $name", ({ of, keys }) => expect(scheduleTaints(of, T0)?.map(({ key }) => key)).toEqual(keys));

test.each([
  { ready: "True", taints: [], step: "nothing", keys: [] },
  { ready: "True", taints: [taint("not-ready", "NoExecute"), own], step: "set", keys: [own.key] },
  { ready: "False", taints: [own], step: "taint", keys: [own.key, "node.kubernetes.io/not-ready"] },
  { ready: "Unknown", taints: [taint("not-ready", "NoExecute")], step: "set", keys: ["node.kubernetes.io/unreachable"] },
  { ready: "Unknown", taints: [taint("unreachable", "NoExecute")], step: "nothing", keys: [] },
])("NoExecute taints: Ready=$ready with $taints.length taints → $step", ({ ready, taints, step, keys }) => {
  const eviction = evictionFor(node({ ready, taints }), ready, T0);
  expect([eviction.do, eviction.do === "nothing" ? [] : eviction.taints.map(({ key }) => key)]).toEqual([step, keys]);
});

test.each([[3, 0, "Normal"], [2, 2, "Normal"], [2, 3, "PartialDisruption"], [0, 1, "FullDisruption"], [0, 0, "Normal"]])("a zone with %i ready and %i not: %s", (ready, notReady, state) => {
  expect(zoneState(ready, notReady)).toBe(state);
});

test("small zones that are mostly down are left alone", () => expect([taintsPerSecond("PartialDisruption", 50), taintsPerSecond("PartialDisruption", 51), taintsPerSecond("Normal", 3)]).toEqual([0, 0.01, 0.1]));

const unreachable = taint("unreachable", "NoExecute");
test.each<[string, Toleration[], number]>([
  ["none", [], 0],
  ["for a while", [{ key: unreachable.key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }], 300_000],
  ["for ever", [{ operator: "Exists" }], Number.POSITIVE_INFINITY],
  ["another value", [{ key: unreachable.key, value: "x", effect: "NoExecute" }], 0],
  ["an empty value is a value", [{ key: unreachable.key, operator: "Equal" }], Number.POSITIVE_INFINITY],
  ["negative", [{ operator: "Exists", tolerationSeconds: -1 }], 0],
  ["longer than a double tells", [{ operator: "Exists", tolerationSeconds: (2n ** 63n - 1n) as unknown as number }], 2 ** 63 * 1000],
])("a pod tolerates: %s", (_, tolerations, ms) => expect(staysForMs({ spec: { tolerations } } as Pod, [unreachable])).toBe(ms));

test.each<[value: string, ms: number]>([["951", Number.POSITIVE_INFINITY], ["950", 60_000], ["0951", 0], ["gold", 0]])("a pod tolerates numbers: %s", (value, ms) => {
  const tolerations: Toleration[] = [{ key: "sla", operator: "Gt", value: "950" }, { key: "sla", operator: "Lt", value: "951", tolerationSeconds: 60 }];
  expect(staysForMs({ spec: { tolerations } } as Pod, [{ key: "sla", value, effect: "NoExecute" }])).toBe(ms);
});

test("an administrator may set what a silent node and a disturbed zone are", () => {
  expect([zoneState(5, 5), zoneState(5, 5, { unhealthyShare: 0.5 })]).toEqual(["Normal", "PartialDisruption"]);
  expect([taintsPerSecond("PartialDisruption", 10), taintsPerSecond("PartialDisruption", 10, { rate: 1, rateSecondary: 0.5, largeZone: 9 })]).toEqual([0, 0.5]);
});
