import { expect, test } from "vitest";
import type { ReplicaSet } from "../../api/gen/apps.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { deletionOrder, jobDeletionOrder } from "./deletion-order.ts";
import { ageRatios, planReplicas, replicaStatus } from "./plan.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");
const running = pod("running", { nodeName: "n1", phase: "Running", ready: "2026-01-01T00:00:00Z" });
const fresh = pod("fresh", { nodeName: "n1", phase: "Running", ready: "2026-01-01T23:59:50Z" });
const starting = pod("starting", { nodeName: "n1", phase: "Pending" });
const unplaced = pod("unplaced", { phase: "Pending" });
const cheap = pod("cheap", { nodeName: "n1", phase: "Running", ready: "2026-01-01T00:00:00Z", cost: "-5" });
const badCost = pod("bad-cost", { nodeName: "n1", phase: "Running", ready: "2026-01-01T00:00:00Z", cost: "+7" });
const crowded = pod("crowded", { nodeName: "n2", phase: "Running", ready: "2026-01-01T00:00:00Z" });
const restarting = pod("restarting", { nodeName: "n1", phase: "Running", ready: "2026-01-01T00:00:00Z", restarts: 3 });

test.each([
  { replicas: 2, active: [],                            create: 2,   remove: [] },
  { replicas: 1, active: [running, starting],           create: 0,   remove: ["starting"] },
  { replicas: 1, active: [running, starting, unplaced], create: 0,   remove: ["unplaced", "starting"] },
  { replicas: 0, active: [running, starting],           create: 0,   remove: ["running", "starting"] },
  { replicas: 9999, active: [],                         create: 500, remove: [] },
])("$replicas replicas", ({ replicas, active, create, remove }) => {
  const plan = planReplicas(replicas, active, [], NOW);
  expect(plan.create).toBe(create);
  expect(plan.remove.map(({ metadata }) => metadata.name)).toEqual([...remove]);
});

test("the cheapest to lose goes first, whatever the order they come in", () => {
  const related = [running, crowded, pod("other", { nodeName: "n2", phase: "Running" }), pod("another", { nodeName: "n2", phase: "Running" })];
  const expected = ["unplaced", "starting", "cheap", "crowded", "fresh", "restarting"];
  const all = [running, fresh, starting, unplaced, cheap, crowded, restarting];
  for (const pods of [all, all.toReversed(), all.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))])
    expect(deletionOrder(pods, related, NOW).map(({ metadata }) => metadata.name)).toEqual([...expected, "running"]);
  expect(deletionOrder([badCost, cheap], [], NOW)[0]).toBe(cheap);
});

test("of a Job the youngest goes first to the second, whatever it is said to cost", () => {
  const aged = (name: string, at: string, more: Partial<Options> = {}) => pod(name, { nodeName: "n1", phase: "Running", ready: at, ...more });
  const pods = [aged("b", "2026-01-01T23:00:01Z"), aged("a", "2026-01-01T23:00:00Z"), aged("c", "2026-01-01T23:00:02Z"), aged("cheap", "2026-01-01T22:00:00Z", { cost: "-5" }), aged("restarted", "2026-01-01T22:00:00Z", { restarts: 1 })];
  expect(jobDeletionOrder([...pods, starting]).map(({ metadata }) => metadata.name)).toEqual(["starting", "c", "b", "a", "restarted", "cheap"]);
});

test("the status counts what is ready long enough and tells what failed until it works again", () => {
  const set: ReplicaSet = {
    apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "web", uid: "u", resourceVersion: "1", creationTimestamp: "", generation: 4 },
    spec: { replicas: 5, minReadySeconds: 60, template: { metadata: { labels: { app: "web" } } } },
  };
  const labelled = { ...running, metadata: { ...running.metadata, labels: { app: "web", more: "x" } } };
  const status = replicaStatus(set, { active: [labelled, fresh, starting], terminating: [crowded], failure: "quota", nowMs: NOW });
  expect(status).toEqual({
    replicas: 3, fullyLabeledReplicas: 1, readyReplicas: 2, availableReplicas: 1, terminatingReplicas: 1, observedGeneration: 4,
    conditions: [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate", message: "quota", lastTransitionTime: "2026-01-02T00:00:00Z" }],
  });
  expect(replicaStatus({ ...set, status }, { active: [], terminating: [], failure: undefined, nowMs: NOW }).conditions).toBeUndefined();
});

test("those that go are as many times as old as the youngest that is ready", () => {
  const born = (name: string, creationTimestamp: string, more: Partial<Options> = {}): Pod => {
    const one = pod(name, { nodeName: "n1", phase: "Running", ready: creationTimestamp, ...more });
    return { ...one, metadata: { ...one.metadata, creationTimestamp } };
  };
  const [old, young, younger] = [born("old", "2026-01-01T23:58:30Z"), born("young", "2026-01-01T23:59:00Z"), born("younger", "2026-01-01T23:59:40Z")];
  const starting = pod("starting", { nodeName: "n1", phase: "Pending" });
  expect(ageRatios([younger, young, starting], [old, young, younger, starting], NOW)).toEqual([1, 3]);
  expect(ageRatios([old], [old, young, younger], NOW)).toEqual([4]);
  expect(ageRatios([old, young], [old, young], NOW)).toEqual([]);
  expect(ageRatios([starting], [old, starting], NOW)).toEqual([]);
});

interface Options { nodeName?: string; phase: "Pending" | "Running"; ready?: string; cost?: string; restarts?: number }
function pod(name: string, { nodeName, phase, ready, cost, restarts = 0 }: Options): Pod {
  return {
    apiVersion: "v1", kind: "Pod",
    metadata: { name, namespace: "default", uid: name, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z", ...(cost === undefined ? {} : { annotations: { "controller.kubernetes.io/pod-deletion-cost": cost } }) },
    spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
    status: {
      phase, containerStatuses: [{ name: "c", ready: true, restartCount: restarts, image: "", imageID: "" }],
      ...(ready === undefined ? {} : { conditions: [{ type: "Ready", status: "True", lastTransitionTime: ready }] }),
    },
  };
}
