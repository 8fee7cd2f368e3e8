import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../../api/gen/policy.v1.ts";
import { EVENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS } from "../../client/resources.ts";
import { disruptionControllers } from "./disruption.ts";
import { expectedPods, failSafe, planBudget, staleDisruptionInMs } from "./plan.ts";

const budget = (spec: object, status?: object) => stored<PodDisruptionBudget>("policy/v1", "PodDisruptionBudget", "ns/b", { metadata: { generation: 2 }, spec, status });
const pod = (name: string, { ready = true, ...rest }: { ready?: boolean; metadata?: object } = {}) =>
  stored<Pod>("v1", "Pod", `ns/${name}`, { spec: { containers: [] }, status: { phase: "Running", conditions: [{ type: "Ready", status: ready ? "True" : "False" }] }, ...rest });
const NOW = Date.parse("2026-07-01T12:00:00Z");

test.each([
  ["1 of 3 may be missing", { maxUnavailable: 1 }, 3, { expectedPods: 3, desiredHealthy: 2 }],
  ["a percentage is rounded up", { maxUnavailable: "30%" }, 7, { expectedPods: 7, desiredHealthy: 4 }],
  ["more than there are", { maxUnavailable: 9 }, 3, { expectedPods: 3, desiredHealthy: 0 }],
  ["at least 2", { minAvailable: 2 }, 3, { expectedPods: 3, desiredHealthy: 2 }],
  ["at least half, rounded up", { minAvailable: "50%" }, 7, { expectedPods: 7, desiredHealthy: 4 }],
  ["nothing said", {}, 3, { expectedPods: 0, desiredHealthy: 0 }],
] as const)("%s", (_, spec, scale, expected) => expect(expectedPods(budget(spec), scale)).toEqual(expected));

test.each([
  ["all healthy", [pod("a"), pod("b"), pod("c")], {}, { currentHealthy: 3, disruptionsAllowed: 1 }],
  ["one is not ready", [pod("a"), pod("b"), pod("c", { ready: false })], {}, { currentHealthy: 2, disruptionsAllowed: 0 }],
  ["one is going", [pod("a"), pod("b"), pod("c", { metadata: { deletionTimestamp: "2026-07-01T12:00:30Z" } })], {}, { currentHealthy: 2, disruptionsAllowed: 0 }],
  ["an eviction not seen yet", [pod("a"), pod("b"), pod("c")], { a: "2026-07-01T11:59:00Z" }, { currentHealthy: 2, disruptionsAllowed: 0, disruptedPods: { a: "2026-07-01T11:59:00Z" } }],
  ["an eviction that came to nothing", [pod("a"), pod("b"), pod("c")], { a: "2026-07-01T11:57:59Z" }, { currentHealthy: 3, disruptionsAllowed: 1 }],
  ["an eviction by a clock that was far ahead", [pod("a"), pod("b"), pod("c")], { a: "2036-07-01T11:59:00Z" }, { currentHealthy: 3, disruptionsAllowed: 1 }],
  ["an eviction of a pod that is gone", [pod("a"), pod("b")], { x: "2026-07-01T11:59:59Z" }, { currentHealthy: 2, disruptionsAllowed: 0 }],
] as const)("status: %s", (_, pods, disruptedPods, wanted) => {
  const { status } = planBudget(budget({}, { disruptedPods }), { pods, expected: { expectedPods: 3, desiredHealthy: 2 }, nowMs: NOW });
  const allowed = wanted.disruptionsAllowed > 0;
  expect(status).toEqual({
    expectedPods: 3, desiredHealthy: 2, observedGeneration: 2, ...wanted,
    conditions: [{ type: "DisruptionAllowed", status: allowed ? "True" : "False", reason: allowed ? "SufficientPods" : "InsufficientPods", message: "", observedGeneration: 2, lastTransitionTime: "2026-07-01T12:00:00Z" }],
  });
});

test("a pod that was to be disrupted and was not", () => {
  const told = (since: string, reason = "EvictionByEvictionAPI") => ({ ...pod("a"), status: { phase: "Running", conditions: [{ type: "DisruptionTarget", status: "True", reason, lastTransitionTime: since }] } }) as Pod;
  expect(staleDisruptionInMs(told("2026-07-01T11:59:00Z"), NOW)).toBe(60_000);
  expect(staleDisruptionInMs(told("2026-07-01T11:50:00Z"), NOW)).toBe(0);
  expect(staleDisruptionInMs(told("2036-07-01T11:50:00Z"), NOW)).toBe(0); // told by a clock that was far ahead
  expect(staleDisruptionInMs(told("2026-07-01T11:50:00Z", "TerminationByKubelet"), NOW)).toBe(undefined);
});

test("a budget that cannot be worked out says of which version its controller had seen something", () => {
  const counts = { currentHealthy: 0, desiredHealthy: 0, expectedPods: 0, disruptionsAllowed: 0 };
  const seen = (status: object) => failSafe(budget({ maxUnavailable: 1 }, { ...counts, ...status }), "no", NOW).conditions?.[0]?.observedGeneration;
  expect([seen({}), seen({ observedGeneration: 1 })]).toEqual([undefined, 1]);
});

test("the status follows pods and their controller; pods without one are told of", () => withControllers(disruptionControllers, async (api, call) => {
  const [pods, sets, budgets] = [api.client.resource(PODS), api.client.resource(REPLICA_SETS), api.client.resource(POD_DISRUPTION_BUDGETS)];
  const set = await sets.create({ apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "web", namespace: "ns" }, spec: { replicas: 2, selector: {}, template: {} } } as never, call);
  await budgets.create({ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "web", namespace: "ns" }, spec: { maxUnavailable: 1, selector: { matchLabels: { app: "web" } } } }, call);
  const owner = (uid: string) => [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid, controller: true }];
  const make = (name: string, ownerReferences: object[]) => pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns", labels: { app: "web" }, ownerReferences }, spec: { containers: [] }, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } } as never, call);
  for (const name of ["a", "b"]) await make(name, owner(set.metadata.uid));
  await eventually(() => api.all(POD_DISRUPTION_BUDGETS)[0]?.status, (status) => status?.disruptionsAllowed === 1 && status.expectedPods === 2);
  await make("lost", owner("another"));
  const failed = await eventually(() => api.all(POD_DISRUPTION_BUDGETS)[0]?.status, (status) => status?.disruptionsAllowed === 0);
  expect(failed?.conditions?.[0]).toMatchObject({ reason: "SyncFailed", message: `found no controllers for pod "lost"` });
  await pods.delete({ metadata: { name: "lost", namespace: "ns" } }, {}, call);
  await make("bare", []);
  await eventually(() => api.all(EVENTS).find(({ reason }) => reason === "UnmanagedPods")?.message, (message) => message?.includes("(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},})") ?? false);
  await eventually(() => api.all(POD_DISRUPTION_BUDGETS)[0]?.status, (status) => status?.currentHealthy === 3 && status.conditions?.[0]?.reason === "SufficientPods");
}));

test("a ReplicaSet whose Deployment is gone says itself how many pods there should be", () => withControllers(disruptionControllers, async (api, call) => {
  const [pods, sets, budgets] = [api.client.resource(PODS), api.client.resource(REPLICA_SETS), api.client.resource(POD_DISRUPTION_BUDGETS)];
  const gone = { apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: "gone", controller: true };
  const set = await sets.create({ apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "web-1", namespace: "ns", ownerReferences: [gone] }, spec: { replicas: 2, selector: {}, template: {} } } as never, call);
  await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "ns", labels: { app: "web" }, ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", uid: set.metadata.uid, controller: true }] }, spec: { containers: [] }, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } } as never, call);
  await budgets.create({ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "web", namespace: "ns" }, spec: { maxUnavailable: 1, selector: { matchLabels: { app: "web" } } } }, call);
  const status = await eventually(() => api.all(POD_DISRUPTION_BUDGETS)[0]?.status, (one) => one?.conditions !== undefined);
  expect(status).toMatchObject({ expectedPods: 2, desiredHealthy: 1, currentHealthy: 1, conditions: [{ reason: "InsufficientPods" }] });
}));

test("a pod that two budgets are about is told which of them counts", () => withControllers(disruptionControllers, async (api, call) => {
  for (const name of ["one", "two"]) await api.client.resource(POD_DISRUPTION_BUDGETS).create({ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name, namespace: "ns" }, spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } } }, call);
  const pod = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "ns", labels: { app: "web" } }, spec: { containers: [] }, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } } as never, call);
  await eventually(() => api.all(POD_DISRUPTION_BUDGETS).filter(({ status }) => status?.currentHealthy === 1).length, (count) => count === 2);
  await api.client.resource(PODS).update({ ...pod, metadata: { ...pod.metadata, labels: { app: "web", tier: "front" } } }, call); // whenever it changes
  const told = await eventually(() => api.all(EVENTS).find(({ reason }) => reason === "MultiplePodDisruptionBudgets"), (event) => event !== undefined);
  expect([told?.type, told?.involvedObject.name, told?.message]).toEqual(["Warning", "a", expect.stringMatching(/^Pod "ns"\/"a" matches multiple PodDisruptionBudgets\. {2}Chose "(one|two)" arbitrarily\.$/)]);
}));
