import { expect, test } from "vitest";
import type { DaemonSet } from "../../api/gen/apps.v1.ts";
import type { Node, Pod, Taint } from "../../api/gen/core.v1.ts";
import { daemonStatus, planPlacement, planRolling } from "./plan.ts";
import { daemonPod, fitOf } from "./pods.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");
const set = (more: Partial<DaemonSet["spec"]> = {}, spec: Partial<NonNullable<DaemonSet["spec"]["template"]["spec"]>> = {}): DaemonSet => ({
  apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "d", namespace: "default", uid: "d", resourceVersion: "1", creationTimestamp: "", generation: 1 },
  spec: { template: { metadata: { labels: { app: "d" } }, spec: { containers: [], ...spec } }, updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }, ...more },
});
const node = (name: string, labels: Record<string, string> = {}, taints: Taint[] = []): Node => ({ apiVersion: "v1", kind: "Node", metadata: { name, labels, uid: name, resourceVersion: "1", creationTimestamp: "" }, spec: { taints } });
let age = 0;
const pod = (nodeName: string, { hash = "new", ready = true, phase = "Running" as const, deleting = false }: { hash?: string; ready?: boolean; phase?: "Running" | "Failed"; deleting?: boolean } = {}): Pod => ({
  apiVersion: "v1", kind: "Pod",
  metadata: { name: `${nodeName}-${hash}-${age}`, uid: `${age++}`, resourceVersion: "1", creationTimestamp: `2026-01-01T00:00:${String(age % 60).padStart(2, "0")}Z`, labels: { "controller-revision-hash": hash }, ...(deleting ? { deletionTimestamp: "x" } : {}) },
  spec: { nodeName, containers: [] }, status: { phase, conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
});
const world = (nodes: Node[], pods: Pod[], of = set()) => ({ set: of, hash: "new", nodes, pods, nowMs: NOW });
const names = (pods: readonly Readonly<Pod>[]) => pods.map(({ spec, metadata }) => `${spec.nodeName}:${metadata.labels?.["controller-revision-hash"]}`);

const noSchedule = (key: string): Taint => ({ key, effect: "NoSchedule" });
test.each([
  ["any node", set(), node("a"), true, true],
  ["its selector", set({}, { nodeSelector: { os: "linux" } }), node("a", { os: "windows" }), false, false],
  ["another node's name", set({}, { nodeName: "b" }), node("a"), false, false],
  ["pressure is tolerated", set(), node("a", {}, [noSchedule("node.kubernetes.io/disk-pressure"), { key: "node.kubernetes.io/unreachable", effect: "NoExecute" }]), true, true],
  ["a taint of somebody's", set(), node("a", {}, [noSchedule("own")]), false, true],
  ["a number that is tolerated", set({}, { tolerations: [{ key: "sla", operator: "Gt", value: "900" }] }), node("a", {}, [{ key: "sla", value: "950", effect: "NoExecute" }]), true, true],
  ["one that is not", set({}, { tolerations: [{ key: "sla", operator: "Gt", value: "950", effect: "NoSchedule" }] }), node("a", {}, [{ key: "sla", value: "950", effect: "NoSchedule" }]), false, true],
  ["one that drives out", set(), node("a", {}, [{ key: "own", effect: "NoExecute" }]), false, false],
  ["no network, host network", set({}, { hostNetwork: true }), node("a", {}, [noSchedule("node.kubernetes.io/network-unavailable")]), true, true],
  ["no network", set(), node("a", {}, [noSchedule("node.kubernetes.io/network-unavailable")]), false, true],
  ["required affinity", set({}, { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: "cpu", operator: "Gt", values: ["3"] }] }] } } } }), node("a", { cpu: "4" }), true, true],
  ["a number that is too large is none", set({}, { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: "cpu", operator: "Lt", values: ["9223372036854775808"] }] }] } } } }), node("a", { cpu: "4" }), false, false],
])("fits: %s", (_, of, on, shouldRun, mayStay) => expect(fitOf(of, on)).toEqual({ shouldRun, mayStay }));

test("pods are made where they are missing, removed where they are too many or wrong", () => {
  const extra = [pod("twice"), pod("twice")];
  const plan = planPlacement(world([node("empty"), node("twice"), node("tainted", {}, [{ key: "own", effect: "NoExecute" }]), node("kept", {}, [noSchedule("own")])],
    [...extra, pod("tainted"), pod("kept"), pod("tainted", { deleting: true }), pod("gone")]));
  expect([plan.create, names(plan.remove)]).toEqual([["empty"], ["twice:new", "tainted:new"]]);
  expect(plan.remove[0]).toBe(extra[1]);
  const broken = planPlacement(world([node("a")], [pod("a", { phase: "Failed" })]));
  expect([broken.create, broken.remove, broken.failed.length]).toEqual([[], [], 1]);
});

test("where a surge is allowed a pod on its way out does not keep its successor waiting", () => {
  const surging = set({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } });
  const planned = (of: DaemonSet, pods: Pod[]) => planPlacement(world([node("a"), node("kept", {}, [noSchedule("own")])], pods, of)).create;
  const going = [pod("a", { deleting: true }), pod("kept", { deleting: true })];
  expect([planned(surging, going), planned(surging, [...going, pod("a")]), planned(set(), going)]).toEqual([["a"], [], []]);
});

test.each<[string, Pod[], string[]]>([
  ["the old one while the new one is not ready", [pod("a", { hash: "old" }), pod("a", { ready: false })], []],
  ["not the old one, which is not ready", [pod("a", { hash: "old", ready: false }), pod("a", { ready: false })], ["a:old"]],
  ["the new one alone, once it is ready", [pod("a", { hash: "old" }), pod("a")], ["a:old"]],
  ["one of each, of more", [pod("a", { hash: "old" }), pod("a", { hash: "old" }), pod("a", { ready: false }), pod("a", { ready: false })], ["a:old", "a:new"]],
  ["one, of two new ones", [pod("a"), pod("a")], ["a:new"]], ["one, of two old ones", [pod("a", { hash: "old" }), pod("a", { hash: "old" })], ["a:old"]],
])("of several on one node, where a surge is allowed, stays %s", (_, pods, removed) => {
  const surging = set({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } });
  expect(names(planPlacement(world([node("a")], pods, surging)).remove)).toEqual(removed);
});

test.each([
  { name: "one at a time", pods: [pod("a", { hash: "old" }), pod("b", { hash: "old" }), pod("c")], of: set(), create: [], remove: 1 },
  { name: "none while one is missing", pods: [pod("a", { hash: "old" }), pod("b", { hash: "old" })], of: set(), create: [], remove: 0 },
  { name: "those that serve nobody, always", pods: [pod("a", { hash: "old", ready: false }), pod("b", { hash: "old", ready: false }), pod("c", { hash: "old" })], of: set(), create: [], remove: 2 },
  { name: "never, on delete", pods: [pod("a", { hash: "old" }), pod("b", { hash: "old" }), pod("c")], of: set({ updateStrategy: { type: "OnDelete" } }), create: [], remove: 0 },
  { name: "surge: the new one first", pods: [pod("a", { hash: "old" }), pod("b", { hash: "old" }), pod("c")], of: set({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }), create: ["a"], remove: 0 },
  { name: "surge: then the old one", pods: [pod("a", { hash: "old" }), pod("a"), pod("b", { hash: "old" }), pod("c")], of: set({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }), create: ["b"], remove: 1 },
])("rolling: $name", ({ pods, of, create, remove }) => {
  const plan = planRolling(world([node("a"), node("b"), node("c")], pods, of));
  expect([plan.create, plan.remove.length]).toEqual([create, remove]);
});

test("the status counts nodes, not pods", () => {
  const status = daemonStatus(world([node("a"), node("b"), node("c"), node("wrong", {}, [noSchedule("own")])], [pod("a"), pod("a", { hash: "old" }), pod("b", { hash: "old", ready: false }), pod("wrong")]));
  expect(status).toMatchObject({ desiredNumberScheduled: 3, currentNumberScheduled: 2, numberReady: 1, numberAvailable: 1, numberUnavailable: 2, updatedNumberScheduled: 1, numberMisscheduled: 1 });
});

test("a daemon pod is bound to its node by affinity alone", () => {
  const made = daemonPod({ ...set(), metadata: { ...set().metadata, annotations: { "deprecated.daemonset.template.generation": "3" } } }, "n1", "h");
  expect(made.metadata.labels).toEqual({ app: "d", "controller-revision-hash": "h", "pod-template-generation": "3" });
  expect(made.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms).toEqual([{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }] }]);
  expect(made.spec.tolerations?.map(({ key }) => key?.split("/")[1])).toEqual(["not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"]);
});

test("tolerations that a template has of those every daemon has stay where they are, for ever", () => {
  const given = [{ key: "node.kubernetes.io/unreachable", operator: "Exists" as const, effect: "NoExecute" as const, tolerationSeconds: 5 }, { key: "own", operator: "Exists" as const }];
  const { tolerations = [] } = daemonPod(set({}, { tolerations: given }), "n1", "h").spec;
  expect(tolerations.map(({ key }) => key?.split("/").at(-1))).toEqual(["unreachable", "own", "not-ready", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"]);
  expect(tolerations[0]?.tolerationSeconds).toBeUndefined();
});
