/** Cases: kubernetes v1.36 pkg/scheduler/framework/plugins/topologyaware/topology_placement_test.go, podgrouppodscount/podgroup_pods_count_test.go, noderesources/fit_test.go (placements) */
import { expect, test } from "vitest";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { candidate, node, pod, schedulingCluster } from "../../test/scheduling-cluster.ts";
import { stored } from "../../test/static-informer.ts";
import { placementScores, placementsOf } from "./pod-group-placements.ts";

const group = (key?: string): PodGroup => stored("scheduling.k8s.io/v1alpha2", "PodGroup", "default/pg", { spec: { schedulingPolicy: { gang: { minCount: 2 } }, ...(key && { schedulingConstraints: { topology: [{ key }] } }) } });
const cluster = schedulingCluster({ nodes: [node("a1", { labels: { rack: "a" } }), node("b1", { labels: { rack: "b" } }), node("a2", { labels: { rack: "a" } }), node("alone")] });
const placements = (podGroup: PodGroup, placed: Readonly<Record<string, string>> = {}) => {
  const found = placementsOf(podGroup, cluster.nodes(), { placed: Object.entries(placed).map(([key, on]) => ({ key, node: on })), node: (name) => cluster.node(name) });
  return "error" in found ? found.error : found.map(({ name, nodes }) => `${name}: ${nodes.map((one) => one.name).join(" ")}`);
};

test.each<[string, PodGroup, Readonly<Record<string, string>> | undefined, readonly string[] | string]>([
  ["without a constraint it is all nodes", group(), undefined, [": a1 b1 a2 alone"]],
  ["each domain is one", group("rack"), undefined, ["a: a1 a2", "b: b1"]],
  ["no node has the label", group("zone"), undefined, []],
  ["pods of it are in one already", group("rack"), { "default/p": "b1" }, ["b: b1"]],
  ["several are", group("rack"), { "default/p": "a1", "default/q": "a2" }, ["a: a1 a2"]],
  ["they are in two", group("rack"), { "default/p": "a1", "default/q": "b1" }, "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: a, b"],
  ["one is on a node without the label", group("rack"), { "default/p": "alone" }, "cannot determine domain for already scheduled pods: no topology domain found for pod default/p"],
  ["one is on a node that is gone", group("rack"), { "default/p": "gone" }, 'cannot determine domain for already scheduled pods: getting node for pod default/p: nodeinfo not found for node name "gone"'],
])("placements: %s", (_name, podGroup, placed, expected) => expect(placements(podGroup, placed)).toEqual(expected));

test("the placement is better that more pods of the group have a place in, and that is fuller", () => {
  const used = schedulingCluster({ nodes: [node("a", { cpu: "4" }), node("b", { cpu: "4" })], placed: [[pod("x", { cpu: "2" }), "b"]] });
  const [a, b] = used.nodes().map((one) => ({ name: one.name, nodes: [one] }));
  const proposed = (...names: string[]) => names.map((name) => candidate(pod(name, { cpu: "1" })));
  const scores = (rules: object, ofA: string[], ofB: string[], placed = 0) => placementScores([{ placement: a!, proposed: proposed(...ofA) }, { placement: b!, proposed: proposed(...ofB) }], { rules: { byTopology: true, podsWeight: 0, fitWeight: 0, resources: { cpu: 1 }, ...rules }, placed });
  expect(scores({ podsWeight: 1 }, ["p", "q", "r"], ["p"])).toEqual([100, 33]);
  expect(scores({ podsWeight: 2 }, ["p"], ["p", "q"], 2)).toEqual([150, 200]); // those that have a node make less of the difference
  expect(scores({ fitWeight: 1 }, ["p"], ["p"])).toEqual([25, 75]);
  expect(scores({ fitWeight: 3, podsWeight: 1 }, ["p", "q"], ["p"])).toEqual([250, 275]);
  expect(scores({ fitWeight: 1, resources: { "example.com/gpu": 1 } }, ["p"], ["p"])).toEqual([0, 0]);
});
