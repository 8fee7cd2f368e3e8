import { expect, test } from "vitest";
import type { Node, Pod, PodSpec } from "../api/gen/core.v1.ts";
import { place } from "./place.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";
import { podRequests } from "./pod-requests.ts";
import { Snapshot } from "./snapshot.ts";

const random = { next: () => 0, uuid: () => "", bytes: () => new Uint8Array() };

function node(name: string, { cpu = "2", taints, labels = {}, unschedulable }: { cpu?: string; taints?: Node["spec"]["taints"]; labels?: Record<string, string>; unschedulable?: boolean } = {}): Node {
  const allocatable = { cpu, memory: "4Gi", pods: "110" };
  return { apiVersion: "v1", kind: "Node", metadata: meta(name, labels), spec: { taints, unschedulable }, status: { allocatable, capacity: allocatable } } as Node;
}

function pod(name: string, spec: Partial<PodSpec> = {}, cpu = "500m"): Pod {
  const containers = [{ name: "c", image: "i", resources: { requests: { cpu } }, ...(spec.containers?.[0] ?? {}) }];
  return { apiVersion: "v1", kind: "Pod", metadata: { ...meta(name, {}), namespace: "default" }, spec: { ...spec, containers } } as Pod;
}

function meta(name: string, labels: Record<string, string>) {
  return { name, uid: name, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z", labels };
}

function placed(wanted: Pod, nodes: readonly Node[], running: readonly [Pod, string][] = []) {
  const snapshot = new Snapshot();
  for (const one of nodes) snapshot.setNode(one);
  for (const [one, on] of running) snapshot.setPod({ ...one, spec: { ...one.spec, nodeName: on } });
  const result = place({ pod: wanted, requests: podRequests(wanted) }, snapshot.nodes(), DEFAULT_PROFILE, random);
  return result.type === "node" ? result.node : result.message;
}

test("the emptier node wins", () => {
  expect(placed(pod("p"), [node("a"), node("b")], [[pod("x"), "a"]])).toBe("b");
});

test("a node that was told to keep out is passed over, and each reason is counted", () => {
  const dedicated = [{ key: "dedicated", value: "db", effect: "NoSchedule" as const }];
  expect(placed(pod("p", {}, "3"), [node("a"), node("b", { taints: dedicated }), node("c", { unschedulable: true })])).toBe(
    "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. " +
    "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod., 2 Preemption is not helpful for scheduling.",
  );
  expect(placed(pod("p", { tolerations: [{ key: "dedicated", operator: "Exists" }] }), [node("b", { taints: dedicated })])).toBe("b");
});

test.each([
  { nodeSelector: { disk: "ssd" } },
  { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "In" as const, values: ["ssd"] }] }] } } } },
  { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" as const, values: ["b"] }] }] } } } },
])("labels and fields of nodes: %j", (spec) => {
  expect(placed(pod("p", spec), [node("a"), node("b", { labels: { disk: "ssd" } })])).toBe("b");
});

test("two pods cannot have the same host port", () => {
  const web = { containers: [{ name: "c", image: "i", ports: [{ containerPort: 80, hostPort: 80, protocol: "TCP" as const }] }] };
  expect(placed(pod("p", web), [node("a")], [[pod("x", web), "a"]])).toMatch("1 node(s) didn't have free ports for the requested pod ports");
});

test("sidecars count with what runs after them, other init containers only while they run", () => {
  const init = (cpu: string, restartPolicy?: "Always") => ({ name: cpu, image: "i", resources: { requests: { cpu } }, ...(restartPolicy && { restartPolicy }) });
  expect(podRequests(pod("p", { initContainers: [init("1")] }))["cpu"]).toBe(1000);
  expect(podRequests(pod("p", { initContainers: [init("300m", "Always"), init("1")] }))["cpu"]).toBe(1300);
  expect(podRequests(pod("p", { initContainers: [init("300m", "Always")] }))["cpu"]).toBe(800);
});

test("no nodes at all", () => {
  expect(placed(pod("p"), [])).toBe("no nodes available to schedule pods");
});
