import { expect, test } from "vitest";
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { refusalOf, shortfalls } from "./admission.ts";
import { podsToPreempt } from "./preemption.ts";

function pod(name: string, cpu: string, more: { readonly memory?: string; readonly limits?: boolean; readonly priority?: number } = {}): Pod {
  const { memory, limits = false, priority = 0 } = more;
  const requests = { ...(cpu === "" ? {} : { cpu }), ...(memory === undefined ? {} : { memory }) };
  return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "d", uid: name, resourceVersion: "", creationTimestamp: "" }, spec: { priority, containers: [{ name: "c", resources: limits ? { requests, limits: requests } : { requests } }] } };
}

const critical = pod("critical", "1", { priority: 2_000_000_000 });
const chosen = (others: readonly Pod[], cpu: number): string => podsToPreempt(critical, others, [{ resource: "cpu", amount: cpu }]).map(({ metadata }) => metadata.name).join();
const guaranteed = pod("guaranteed", "1", { memory: "1Gi", limits: true });

test.each<[string, readonly Pod[], number, string]>([
  ["the one that is just enough", [pod("large", "2"), pod("small", "100m"), pod("right", "500m")], 500, "right"],
  ["as few as possible", [pod("a", "200m"), pod("b", "300m"), pod("c", "450m"), pod("d", "100m")], 500, "c,d"],
  ["of two that are equal the smaller", [pod("fat", "500m", { memory: "1Gi" }), pod("thin", "500m", { memory: "1Mi" })], 500, "thin"],
  ["of two that are alike the later", [pod("early", "500m"), pod("late", "500m")], 500, "late"],
  ["guaranteed pods last", [guaranteed, pod("burstable", "500m")], 500, "burstable"],
  ["guaranteed pods if nothing else is enough", [guaranteed, pod("burstable", "500m")], 1_200, "burstable,guaranteed"],
  ["no critical pod", [pod("also", "1", { priority: 2_000_001_000 }), pod("plain", "1")], 500, "plain"],
])("room is made by %s", (_, others, cpu, names) => expect(chosen(others, cpu)).toBe(names));

test("nobody is driven out in vain", () => {
  expect(() => chosen([pod("a", "200m")], 500)).toThrow("preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 300), ]");
});

test("a place for one more pod is somebody's place", () => {
  expect(podsToPreempt(critical, [pod("best effort", ""), pod("burstable", "1")], [{ resource: "pods", amount: 1 }]).map(({ metadata }) => metadata.name)).toEqual(["best effort"]);
});

test("all that is missing is told, and a pod that room is made for is still looked at otherwise", () => {
  const facts = { os: "linux" as const, pod: critical, others: [pod("a", "1500m"), pod("b", "")], node: { metadata: { name: "n", uid: "", resourceVersion: "", creationTimestamp: "" }, spec: { taints: [{ key: "x", effect: "NoExecute" as const }] } }, allocatable: { cpu: "2", pods: "2" }, pressures: [], allowedUnsafeSysctls: [] };
  expect(shortfalls(facts)).toEqual([{ resource: "pods", amount: 1 }, { resource: "cpu", amount: 500 }]);
  expect([refusalOf(facts)?.reason, refusalOf(facts, { resources: false })?.reason]).toEqual(["OutOfpods", "TaintToleration"]);
});

test("a host port that a sidecar has is taken", () => {
  const ports = [{ containerPort: 80, hostPort: 80 }];
  const other = pod("a", "");
  const sidecar: Pod = { ...other, spec: { ...other.spec, initContainers: [{ name: "s", restartPolicy: "Always", ports }] } };
  const wants: Pod = { ...pod("b", ""), spec: { containers: [{ name: "c", ports }] } };
  const facts = { os: "linux" as const, pod: wants, node: { metadata: { name: "n", uid: "", resourceVersion: "", creationTimestamp: "" }, spec: {} }, allocatable: { pods: "9" }, pressures: [], allowedUnsafeSysctls: [] };
  expect([refusalOf({ ...facts, others: [other] }), refusalOf({ ...facts, others: [sidecar] })?.message]).toEqual([undefined, "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"]);
});
