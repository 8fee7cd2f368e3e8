import { expect, test } from "vitest";
import type { Node, Pod } from "../api/gen/core.v1.ts";
import { node, pod, schedulingCluster } from "../../test/scheduling-cluster.ts";
import { explainScheduling } from "./explain.ts";
import { explanationTable } from "./explain-table.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";

function explained(wanted: Pod, nodes: readonly Node[], running: readonly (readonly [Pod, string])[] = []) {
  return explainScheduling(wanted, { cluster: schedulingCluster({ nodes, placed: running }), profile: DEFAULT_PROFILE, budgets: [] });
}

const tainted = { taints: [{ key: "dedicated", value: "db", effect: "NoSchedule" as const }] };

test("every filter is asked about every node, and the sentence is that of the event", () => {
  const wanted = pod("p", { cpu: "3", nodeSelector: { disk: "ssd" } });
  expect(explanationTable(explained(wanted, [node("b", tainted), node("a"), node("c", { labels: { disk: "ssd" } })]))).toBe(`\
Pod:        default/p
Scheduler:  default-scheduler
State:      Unschedulable
Why:        0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s).
Preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.

FILTER                 PASSED   REJECTED   WHY
NodeUnschedulable      3        0
NodeName               -        -
TaintToleration        2        1          1 node(s) had untolerated taint(s)
NodeAffinity           1        2          2 node(s) didn't match Pod's node affinity/selector
NodePorts              -        -
NodeResourcesFit       0        3          3 Insufficient cpu
VolumeRestrictions     -        -
NodeVolumeLimits       -        -
VolumeBinding          -        -
VolumeZone             -        -
PodTopologySpread      -        -
InterPodAffinity       -        -
DynamicResources       -        -
NodeDeclaredFeatures   -        -

NODE   VERDICT   SCORE   WHY
a      no        -       NodeAffinity: node(s) didn't match Pod's node affinity/selector
                         NodeResourcesFit: Insufficient cpu
b      no        -       TaintToleration: node(s) had untolerated taint(s)
                         NodeAffinity: node(s) didn't match Pod's node affinity/selector
                         NodeResourcesFit: Insufficient cpu
c      no        -       NodeResourcesFit: Insufficient cpu
`);
});

test("a pod that has a node is thought away, and the nodes are told apart by their scores", () => {
  const here = pod("p", { nodeName: "a" });
  const { state, message, nodes, candidates } = explained(here, [node("a"), node("b"), node("c", tainted)], [[pod("x"), "a"]]);
  expect({ state, message, candidates }).toEqual({ state: "Bound", message: "the pod is on node a; placed anew now, it would go to b", candidates: ["b"] });
  expect(nodes.map(({ name, fits }) => [name, fits])).toEqual([["b", true], ["a", true], ["c", false]]);
  const [best, second] = nodes;
  expect(best!.total).toBeGreaterThan(second!.total);
  expect(best!.total).toBe(best!.scores.reduce((sum, { score, weight }) => sum + score * weight, 0));
});

test("what fails on a node is told instead of failing", () => {
  const profile = { ...DEFAULT_PROFILE, filters: [{ name: "Broken", mayHelp: () => false, prepare: () => ({ reject: () => { throw new Error("out of order"); } }) }] };
  expect(explainScheduling(pod("p"), { cluster: schedulingCluster({ nodes: [node("a")] }), profile, budgets: [] })).toMatchObject({ state: "Unschedulable", message: "0/1 nodes are available: 1 out of order.", nodes: [{ rejectedBy: [{ filter: "error", reasons: ["out of order"] }] }] });
});

test("whom preemption would remove, what rules out all nodes, and what is nobody's business", () => {
  const low = pod("low", { cpu: "2", priority: 1 });
  expect(explained(pod("p", { cpu: "1", priority: 10 }), [node("a")], [[low, "a"]])).toMatchObject({ state: "Unschedulable", preemption: { node: "a", victims: ["default/low"] } });
  const refused = explained(pod("p", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "gone" } }] }), [node("a")]);
  expect(refused.message).toBe(`0/1 nodes are available: persistentvolumeclaim "gone" not found.`);
  expect(refused.filters.find(({ result }) => result === "refused")).toMatchObject({ name: "VolumeRestrictions", rejected: 1 });
  expect(explained(pod("p", { schedulingGates: [{ name: "g" }] }), [node("a")])).toMatchObject({ state: "Gated", message: "scheduling gates are closed: g", candidates: ["a"] });
  expect(explainScheduling(pod("p", { schedulerName: "mine" }), { cluster: schedulingCluster({}), profile: undefined, budgets: [] })).toMatchObject({ state: "OtherScheduler", nodes: [] });
});
