/**
 * Finds who has to go so that a group of pods gets off (pod-group-victims.ts says who may): all of them are thought away, then back one after the other, and each time it is asked whether the group
 * still gets off. In the end all are where they were.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/preemption/podgrouppreemption.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../api/gen/policy.v1.ts";
import { type ObjectKey, splitKey } from "../api/meta/object-meta.ts";
import type { GroupVerdict } from "./pod-group-verdict.ts";
import { inOrderOfMercy, moreImportant, type Unit, unitsOn, whoMayGo } from "./pod-group-victims.ts";
import type { PodGroups } from "./pod-groups.ts";
import type { Snapshot } from "./snapshot.ts";

/** Who has to go, anywhere in the cluster; or why nobody does, as that does not help; or why it could not be found out. */
export type Victims = { readonly pods: readonly Readonly<Pod>[] } | { readonly refused: string } | { readonly error: string };

export interface VictimSearch {
  readonly group: ObjectKey;
  /** The group's pods that wait. */
  readonly pods: readonly Readonly<Pod>[];
  readonly signal: AbortSignal;
  /** Whether the group would get off as the snapshot is now. Others get their turn before it is answered. */
  verdict(): Promise<GroupVerdict>;
}

/** Once `signal` has aborted the answer is worth nothing. */
export async function findVictims({ group, pods, signal, verdict }: VictimSearch, { snapshot, groups, budgets }: {
  readonly snapshot: Pick<Snapshot, "nodes" | "setAside" | "putBack">;
  readonly groups: Pick<PodGroups, "podGroup">;
  readonly budgets: () => Iterable<Readonly<PodDisruptionBudget>>;
}): Promise<Victims> {
  const podGroup = groups.podGroup(group);
  if (!podGroup) return { error: `failed to get pod group object: podgroup.scheduling.k8s.io ${JSON.stringify(splitKey(group).name)} not found` };
  if (podGroup.spec.schedulingConstraints?.topology?.length) return { refused: "workload aware preemption is not supported for pod groups with scheduling constraints" };
  const may = whoMayGo(podGroup, pods, unitsOn(snapshot.nodes(), groups));
  if ("refused" in may) return may;
  const away = (unit: Unit): void => unit.pods.forEach(({ pod }) => snapshot.setAside(pod.metadata.uid));
  const back = (unit: Unit): void => unit.pods.forEach(({ pod }) => snapshot.putBack(pod.metadata.uid));
  try {
    may.units.forEach(away);
    const alone = await verdict();
    if (alone.type !== "scheduled") return alone.type === "error" ? { error: alone.message } : { refused: alone.message };
    const victims: Unit[] = [];
    for (const unit of inOrderOfMercy(may.units, [...budgets()])) {
      if (signal.aborted) return { refused: "" };
      back(unit);
      if ((await verdict()).type === "scheduled") continue;
      away(unit);
      victims.push(unit);
    }
    return { pods: victims.sort(moreImportant).flatMap((unit) => unit.pods.map(({ pod }) => pod)) };
  } finally {
    may.units.forEach(back);
  }
}
