import { expect, test } from "vitest";
import type { PodDisruptionBudget } from "../api/gen/policy.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import { inOrderOfMercy, moreImportant, type Unit, unitsOn, whoMayGo } from "./pod-group-victims.ts";

const podGroup = (name: string, spec: Partial<PodGroup["spec"]> = {}): PodGroup => stored("scheduling.k8s.io/v1alpha2", "PodGroup", `default/${name}`, { spec: { schedulingPolicy: { basic: {} }, ...spec } });
const member = (group: string) => ({ schedulingGroup: { podGroupName: group } });
const started = (startTime: string) => ({ status: { startTime } });
const namesOf = (units: readonly Unit[]): string[] => units.map(({ pods }) => pods.map((one) => one.pod.metadata.name).join("+"));

const GROUPS: Readonly<Record<string, PodGroup>> = { whole: podGroup("whole", { disruptionMode: "PodGroup", priority: 10 }), large: podGroup("large", { disruptionMode: "PodGroup", priority: 10 }), each: podGroup("each", { priority: 500 }) };
const unitsOf = (...placed: Parameters<typeof schedulingCluster>[0]["placed"] & object) => unitsOn(schedulingCluster({ nodes: [node("a"), node("b")], placed }).snapshot.nodes(), { podGroup: (key) => GROUPS[key.split("/")[1]!] });

test("who stays rather: of higher priority, then pods of groups, then the larger group, then who has run longer", () => {
  const units = unitsOf(
    [pod("young", { priority: 10, ...started("2026-01-02T00:00:00Z") }), "a"], [pod("old", { priority: 10, ...started("2026-01-01T00:00:00Z") }), "b"], [pod("low", { priority: 9 }), "a"],
    [pod("w1", { priority: 1, ...member("whole") }), "a"], [pod("w2", { priority: 1, ...member("whole") }), "b"], [pod("l1", member("large")), "a"], [pod("l2", member("large")), "b"], [pod("l3", member("large")), "b"],
    [pod("e1", { priority: 10, ...member("each") }), "a"], [pod("lost", { priority: 10, ...member("gone") }), "a"],
  );
  expect(namesOf(units.toSorted(moreImportant))).toEqual(["l1+l2+l3", "w1+w2", "e1", "lost", "old", "young", "low"]);
});

test("those that a budget protects are asked first, with all that would go with them", () => {
  const budget = stored<PodDisruptionBudget>("policy/v1", "PodDisruptionBudget", "default/one", { spec: { selector: { matchLabels: { app: "x" } } }, status: { disruptionsAllowed: 1 } as PodDisruptionBudget["status"] });
  const labels = { app: "x" };
  const units = unitsOf([pod("high", { priority: 20 }), "a"], [pod("x1", { priority: 15, labels }), "a"], [pod("w1", { labels, ...member("whole") }), "a"], [pod("w2", member("whole")), "b"], [pod("x2", { priority: 3, labels }), "b"]);
  expect(namesOf(inOrderOfMercy(units, [budget]))).toEqual(["w1+w2", "x2", "high", "x1"]);
});

test("only who is less important than the PodGroup may go, whatever its pods are", () => {
  const units = unitsOf([pod("low", { priority: 9 }), "a"], [pod("same", { priority: 10 }), "a"]);
  const ours = [pod("p", { priority: 1000 })];
  expect([whoMayGo(GROUPS["whole"]!, ours, units), whoMayGo(podGroup("none"), ours, units)]).toEqual([{ units: [units[0]] }, { refused: "No preemption victims found for incoming preemptor" }]);
  expect(whoMayGo(GROUPS["whole"]!, [pod("p", { preemptionPolicy: "Never" })], units)).toEqual({ refused: "not eligible due to preemptionPolicy=Never." });
});
