import { expect, test } from "vitest";
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../api/gen/policy.v1.ts";
import { candidate, first, node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import { place } from "./place.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";
import { preempt } from "./preempt.ts";
import { resolvable } from "./rejection.ts";

type Placed = readonly (readonly [Pod, string])[];

function preempted(wanted: Pod, nodes: readonly string[], placed: Placed, budgets: readonly PodDisruptionBudget[] = []): string {
  const cluster = schedulingCluster({ nodes: nodes.map((name) => node(name)), placed });
  const before = JSON.stringify(cluster.nodes());
  const failure = place(candidate(wanted), cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 } });
  if (failure.type === "node") return `fits on ${failure.node}`;
  const result = preempt(candidate(wanted), failure, { cluster, budgets, random: first, enough: DEFAULT_PROFILE.preemption! });
  expect(JSON.stringify(cluster.nodes())).toBe(before);
  return result.type === "node" ? `${result.node}: ${result.victims.map(({ metadata }) => metadata.name).join(" ")}` : result.message;
}

function budget(app: string, disruptionsAllowed: number): PodDisruptionBudget {
  return stored("policy/v1", "PodDisruptionBudget", `default/${app}`, { spec: { selector: { matchLabels: { app } } }, status: { disruptionsAllowed } });
}

const at = (name: string, priority: number, cpu = "1", more: object = {}): Pod => pod(name, { priority, cpu, ...more });
const started = (startTime: string): object => ({ status: { startTime } });
const protectedPod = { labels: { app: "db" } };

test.each<[what: string, wanted: Pod, nodes: string[], placed: Placed, budgets: PodDisruptionBudget[], result: string]>([
  ["as few as are needed, the least important", at("p", 10), ["a"], [[at("x", 1), "a"], [at("y", 2), "a"]], [], "a: x"],
  ["all that are needed", at("p", 10, "2"), ["a"], [[at("x", 1), "a"], [at("y", 2), "a"]], [], "a: y x"],
  ["not of the same priority", at("p", 1), ["a"], [[at("x", 1, "2"), "a"]], [], "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."],
  ["not if it would not help", at("p", 10, "3"), ["a"], [[at("x", 1, "2"), "a"]], [], "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."],
  ["not if those who stay take too much", at("p", 10, "2"), ["a", "b"], [[at("x", 1), "a"], [at("y", 10), "a"], [at("z", 10, "2"), "b"]], [], "preemption: 0/2 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod."],
  ["not if it never wants to", pod("p", { priority: 10, preemptionPolicy: "Never" }), ["a"], [[at("x", 1, "2"), "a"]], [], "preemption: not eligible due to preemptionPolicy=Never."],
  ["the node with the lowest victim", at("p", 10, "2"), ["a", "b"], [[at("x", 2, "2"), "a"], [at("y", 1, "2"), "b"]], [], "b: y"],
  ["the node with the fewest victims", at("p", 10, "2"), ["a", "b"], [[at("x", 1), "a"], [at("x2", 1), "a"], [at("y", 1, "2"), "b"]], [], "b: y"],
  ["the node whose victim has run the shortest", at("p", 10, "2"), ["a", "b"], [[at("x", 1, "2", started("2026-01-01T00:00:00Z")), "a"], [at("y", 1, "2", started("2026-02-01T00:00:00Z")), "b"]], [], "b: y"],
  ["what a budget protects stays", at("p", 10), ["a"], [[at("x", 1, "1", protectedPod), "a"], [at("y", 2), "a"]], [budget("db", 0)], "a: y"],
  ["unless the budget allows it", at("p", 10), ["a"], [[at("x", 1, "1", protectedPod), "a"], [at("y", 2), "a"]], [budget("db", 1)], "a: x"],
  ["or there is no other way", at("p", 10, "2"), ["a"], [[at("x", 1, "2", protectedPod), "a"]], [budget("db", 0)], "a: x"],
  ["a node without a violation is better than one with lower victims", at("p", 10, "2"), ["a", "b"], [[at("x", 1, "2", protectedPod), "a"], [at("y", 2, "2"), "b"]], [budget("db", 0)], "b: y"],
])("%s", (_what, wanted, nodes, placed, budgets, result) => {
  expect(preempted(wanted, nodes, placed, budgets)).toBe(result);
});

test("a pod that keeps others away can be evicted; one elsewhere in the zone cannot", () => {
  const apart = { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: { matchLabels: { app: "web" } }, topologyKey: "kubernetes.io/hostname" }] } } };
  expect(preempted(pod("p", { priority: 10, labels: { app: "web" } }), ["a"], [[pod("x", { ...apart, priority: 1 }), "a"]])).toBe("a: x");
  expect(preempted(pod("p", { priority: 10, ...apart }), ["a"], [[pod("x", { labels: { app: "web" }, priority: 1 }), "a"], [pod("y", { labels: { app: "other" }, priority: 0 }), "a"]])).toBe("a: x");
});

test("evicting makes room under a topology spread", () => {
  const spread = { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "DoNotSchedule" as const, labelSelector: { matchLabels: { app: "web" } } }], labels: { app: "web" } };
  const placed: Placed = [[at("x", 1, "100m", { labels: { app: "web" } }), "a"], [at("full", 20, "2"), "b"]];
  expect(preempted(at("p", 10, "100m", spread), ["a", "b"], placed)).toBe("a: x");
});

test("while victims leave, nobody else is evicted", () => {
  const leaving = at("x", 1, "2", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, status: { conditions: [{ type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler" }] } });
  expect(preempted(pod("p", { priority: 10, cpu: "2", status: { nominatedNodeName: "a" } }), ["a", "b"], [[leaving, "a"], [at("y", 1, "2"), "b"]]))
    .toBe("preemption: not eligible due to a terminating pod on the nominated node.");
});

/** What comes of it when an extender has turned down `refused`, with or without a word, on which the filters would have the pod. */
function turnedDown(wanted: Pod, { refused, placed, silent = false }: { readonly refused: readonly string[]; readonly placed: Placed; readonly silent?: boolean }): unknown {
  const cluster = schedulingCluster({ nodes: refused.map((name) => node(name)), placed });
  const one = candidate(wanted);
  const { evaluation } = place(one, cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 } });
  const rejections = new Map(silent ? [] : refused.map((name) => [name, { filter: "Extender", ...resolvable("no") }] as const));
  return preempt(one, { type: "none", message: "", filters: new Set(["Extender"]), rejections, evaluation }, { cluster, budgets: [], random: first, enough: DEFAULT_PROFILE.preemption! });
}

test("where nobody would have to go, it is not known why preemption would not help, and a nomination stands", () => {
  const placed: Placed = [[at("x", 1), "a"], [at("y", 1), "b"]];
  const unknown = (message: string): unknown => ({ type: "none", message, keepNomination: true, isError: true });
  expect(turnedDown(at("p", 10), { refused: ["a"], placed })).toEqual(unknown('preemption: expected at least one victim pod on node "a"'));
  expect(turnedDown(at("p", 10), { refused: ["a", "b"], placed })).toEqual(unknown('preemption: [expected at least one victim pod on node "a", expected at least one victim pod on node "b"]'));
});

test("a pod does not wait for those who leave a node that an extender has turned down without a word", () => {
  const leaving = at("x", 1, "1", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, status: { conditions: [{ type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler" }] } });
  const wanted = at("p", 10, "1", { status: { nominatedNodeName: "a" } });
  expect(turnedDown(wanted, { refused: ["a"], placed: [[leaving, "a"]], silent: true })).toMatchObject({ keepNomination: false, message: "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling." });
});
