/**
 * Which pods would have to go so that a group of pods gets off that does not as things are: of lower priority, anywhere in the cluster, as few and as unimportant as can be, and none that a disruption
 * budget protects if there is another way. Pods of a group whose disruptionMode says so go together or not at all. No I/O.
 *
 * There where the feature gate WorkloadAwarePreemption is on.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/preemption/{podgrouppreemption,types}.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../api/gen/policy.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { Budgets } from "./budgets.ts";
import { priorityOf } from "./evaluation.ts";
import type { LiveNode, PlacedPod } from "./node-info.ts";
import { groupOf, type PodGroups } from "./pod-groups.ts";
import { startOf } from "./preempt.ts";

/** Who goes, or stays, as one. */
export interface Unit {
  readonly pods: readonly PlacedPod[];
  readonly priority: number;
  /** Of a group, whether they go together or not. */
  readonly isGrouped: boolean;
  readonly startMs: number;
}

/** What PodGroups were given; without one they are as important as pods without. */
export function groupPriority({ spec }: Readonly<PodGroup>): number { return spec.priority ?? 0; }

/** All there are, on any of the nodes. */
export function unitsOn(nodes: readonly LiveNode[], groups: Pick<PodGroups, "podGroup">): Unit[] {
  const together = new Map<string, { readonly podGroup: Readonly<PodGroup>; readonly pods: PlacedPod[] }>(); // by uid of the group
  const units: Unit[] = [];
  for (const { pods } of nodes) {
    for (const placed of pods.values()) {
      const group = groupOf(placed.pod), podGroup = group === undefined ? undefined : groups.podGroup(group);
      if (podGroup?.spec.disruptionMode !== "PodGroup") units.push(unitOf([placed], priorityOf(placed)));
      else if (together.has(podGroup.metadata.uid)) together.get(podGroup.metadata.uid)!.pods.push(placed);
      else together.set(podGroup.metadata.uid, { podGroup, pods: [placed] });
    }
  }
  return [...units, ...[...together.values()].map(({ podGroup, pods }) => unitOf(pods, groupPriority(podGroup)))];
}

function unitOf(pods: readonly PlacedPod[], priority: number): Unit {
  return { pods, priority, isGrouped: pods[0]!.pod.spec.schedulingGroup !== undefined, startMs: Math.min(...pods.map(({ pod }) => startOf(pod))) };
}

/** The one that has to stay rather: of higher priority; of a group; of the larger group; who has run longer. */
export function moreImportant(a: Unit, b: Unit): number {
  const size = (unit: Unit): number => (unit.isGrouped ? unit.pods.length : 0);
  return b.priority - a.priority || Number(b.isGrouped) - Number(a.isGrouped) || size(b) - size(a) || (a.startMs === b.startMs ? 0 : a.startMs - b.startMs);
}

/** In which order it is asked whether they can stay: first those that a budget protects. */
export function inOrderOfMercy(units: readonly Unit[], budgets: readonly Readonly<PodDisruptionBudget>[]): Unit[] {
  const left = new Budgets(budgets).left();
  const { violating = [], harmless = [] } = Object.groupBy(units.toSorted(moreImportant), ({ pods }) => (pods.some(({ pod }) => left.forbids(pod)) ? "violating" : "harmless"));
  return [...violating, ...harmless];
}

/** Why the group may have nobody go, or who may have to. */
export function whoMayGo(podGroup: Readonly<PodGroup>, pods: readonly Readonly<Pod>[], units: readonly Unit[]): { readonly refused: string } | { readonly units: readonly Unit[] } {
  if (pods.some(({ spec }) => spec.preemptionPolicy === "Never")) return { refused: "not eligible due to preemptionPolicy=Never." };
  const lower = units.filter(({ priority }) => priority < groupPriority(podGroup));
  return lower.length === 0 ? { refused: "No preemption victims found for incoming preemptor" } : { units: lower };
}
