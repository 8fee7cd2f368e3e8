/** Cases: kubernetes v1.36 pkg/scheduler/framework/plugins/gangscheduling/gangscheduling_test.go TestGangSchedulingFlow, backend/cache/podgroupstate_test.go */
import { expect, test } from "vitest";
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import { pod } from "../../test/scheduling-cluster.ts";
import { stored } from "../../test/static-informer.ts";
import { PodGroups } from "./pod-groups.ts";

const gang = (name: string, minCount: number): PodGroup => stored("scheduling.k8s.io/v1alpha2", "PodGroup", `ns1/${name}`, { spec: { schedulingPolicy: { gang: { minCount } } } });
const basic: PodGroup = stored("scheduling.k8s.io/v1alpha2", "PodGroup", "ns1/pg3", { spec: { schedulingPolicy: { basic: {} } } });
const of = (name: string, group: string | undefined, namespace = "ns1"): Pod => pod(name, { namespace, ...(group && { schedulingGroup: { podGroupName: group } }) });
const ALL = [gang("pg1", 3), gang("pg2", 4), basic];
const [p1, p2, p3, p4, p5] = [of("p1", "pg1"), of("p2", "pg1"), of("p3", "pg1"), of("p4", "pg2"), of("p5", "pg2")] as const;

function groupsOf(podGroups: readonly PodGroup[], pods: readonly Pod[], placed: readonly Pod[] = []): PodGroups {
  const groups = new PodGroups({ podGroup: (key) => podGroups.find((one) => keyOf(one) === key), isPlaced: (one) => placed.includes(one as Pod) });
  for (const one of pods) groups.set(one);
  return groups;
}

test.each<[string, Pod, readonly Pod[], readonly PodGroup[], string | undefined]>([
  ["it is of no group", of("alone", undefined), [], ALL, undefined],
  ["its group is basic", of("basic", "pg3"), [], ALL, undefined],
  ["there is no PodGroup", p1, [p2, p3, p4, p5], [], 'waiting for pods\'s pod group "pg1" to appear in scheduling queue'],
  ["the PodGroup is another namespace's", of("p1", "pg1", "ns2"), [p2, p3], ALL, 'waiting for pods\'s pod group "pg1" to appear in scheduling queue'],
  ["the quorum is not met", p1, [p2, p4, p5], ALL, "waiting for minCount pods from a gang to appear in scheduling queue"],
  ["the quorum is met", p1, [p2, p3, p4, p5], ALL, undefined],
])("whether a pod is held back: %s", (_name, one, others, podGroups, why) => expect(groupsOf(podGroups, [one, ...others]).heldBack(one)).toBe(why));

test.each<[string, Pod, readonly Pod[], readonly PodGroup[], ReturnType<PodGroups["permitted"]>]>([
  ["it is of no group", of("alone", undefined), [], ALL, undefined],
  ["its group is basic", of("basic", "pg3"), [], ALL, undefined],
  ["too few of its gang have a place", p1, [p2, p4, p5], ALL, "wait"],
  ["it is the last that was missing", p1, [p2, p3, p4, p5], ALL, undefined],
  ["the PodGroup is gone", p1, [p2, p3], [], { error: 'running Permit plugin "GangScheduling": failed to get podGroup ns1/pg1: podgroup.scheduling.k8s.io "pg1" not found' }],
])("whether a pod may be bound: %s", (_name, one, placed, podGroups, permit) => expect(groupsOf(podGroups, [p1, p2, p3, p4, p5, one], [one, ...placed]).permitted(one)).toEqual(permit));

test("pods of a group are those that are there; it is told how far it is", () => {
  const groups = groupsOf(ALL, [p1, p2, p4], [p2]);
  expect([groups.set(p3), groups.set({ ...p3, status: {} }), groups.set(of("alone", undefined))]).toEqual([true, false, false]);
  expect(groups.keysOf(keyOf(ALL[0]!))).toEqual(["ns1/p1", "ns1/p2", "ns1/p3"]);
  groups.delete(p1);
  expect([groups.keysOf(keyOf(ALL[0]!)), groups.placed(keyOf(ALL[0]!))]).toEqual([["ns1/p2", "ns1/p3"], 1]);
  expect(groups.standing(p2)).toEqual({ name: "pg1", minCount: 3, pods: 2, placed: 1, heldBack: "waiting for minCount pods from a gang to appear in scheduling queue" });
  for (const one of [p2, p3]) groups.delete(one);
  expect(groups.members(keyOf(ALL[0]!))).toEqual([]);
  expect(groups.standing(of("alone", undefined))).toBeUndefined();
});
