/**
 * Pods that belong together: those whose spec.schedulingGroup names one PodGroup. Which there are, how many of them count on a node, and what the plugin GangScheduling makes of that:
 *
 *   heldBack   PreEnqueue: a pod is not tried before its PodGroup exists and, of a gang, before there are minCount pods
 *   permitted  Permit: a pod of a gang may be bound once minCount of them have a place
 *
 * There where the feature gate GenericWorkload is on; GangScheduling switches the plugin on. Pods that have ended do not count.
 *
 * Source: kubernetes v1.36 pkg/scheduler/backend/cache/podgroupstate.go, framework/plugins/gangscheduling/gangscheduling.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { keyOf, namespaceOf, type ObjectKey, objectKey } from "../api/meta/object-meta.ts";

/** The plugin that makes gangs start as a whole, or not at all. */
export const GANG_SCHEDULING = "GangScheduling";

/** The PodGroup that the pod names; undefined: it stands alone. */
export function groupOf(pod: Readonly<Pod>): ObjectKey | undefined {
  const name = pod.spec.schedulingGroup?.podGroupName;
  return name ? objectKey(namespaceOf(pod), name) : undefined;
}

/** Undefined: it may be bound. "wait": not before others have a place, too. */
export type Permit = undefined | "wait" | { readonly error: string };

/** Why a pod of a gang may not be bound yet, as Permit says it. Source: gangscheduling.go Permit, framework/runtime/framework.go RunPermitPlugins */
export const WAITS_FOR_OTHERS = "waiting for minCount pods from a gang to be scheduled, one or more plugins asked to wait and no plugin rejected pod";

interface Deps {
  podGroup(key: ObjectKey): Readonly<PodGroup> | undefined;
  /** Whether it counts on a node, be it bound or only decided on. */
  isPlaced(pod: Readonly<Pod>): boolean;
}

/** How far a group is. */
export interface GroupStanding {
  readonly name: string;
  /** Of a gang; absent: each of its pods is bound by itself, or there is no such PodGroup. */
  readonly minCount?: number;
  readonly pods: number;
  readonly placed: number;
  /** Why its pods are not tried yet. */
  readonly heldBack?: string;
  /** What was found out about it last. */
  readonly scheduled?: { readonly status: string; readonly reason: string; readonly message: string };
}

export class PodGroups {
  readonly #deps: Deps;
  /** Those that others are being told to go for: their pods are not tried meanwhile. */
  readonly isCleared = new Set<ObjectKey>();
  readonly #members = new Map<ObjectKey, Map<string, Readonly<Pod>>>(); // by group, then by uid

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** It is there, as it is now. True: it was not before. */
  set(pod: Readonly<Pod>): boolean {
    const group = groupOf(pod);
    if (group === undefined) return false;
    let members = this.#members.get(group);
    if (!members) this.#members.set(group, (members = new Map()));
    const isNew = !members.has(pod.metadata.uid);
    members.set(pod.metadata.uid, pod);
    return isNew;
  }

  /** It is gone, or has ended. */
  delete(pod: Readonly<Pod>): void {
    const group = groupOf(pod), members = group && this.#members.get(group);
    if (!members?.delete(pod.metadata.uid) || members.size > 0) return;
    this.#members.delete(group!);
  }

  podGroup(group: ObjectKey): Readonly<PodGroup> | undefined { return this.#deps.podGroup(group); }

  members(group: ObjectKey): readonly Readonly<Pod>[] { return [...(this.#members.get(group)?.values() ?? [])]; }

  keysOf(group: ObjectKey): ObjectKey[] { return this.members(group).map(keyOf); }

  /** How many of the group count on a node. */
  placed(group: ObjectKey): number {
    let count = 0;
    for (const pod of this.#members.get(group)?.values() ?? []) if (this.#deps.isPlaced(pod)) count++;
    return count;
  }

  /** Why the pod is not to be tried yet. */
  heldBack(pod: Readonly<Pod>): string | undefined {
    const group = groupOf(pod);
    if (group === undefined) return undefined;
    const podGroup = this.#deps.podGroup(group);
    if (!podGroup) return `waiting for pods's pod group ${JSON.stringify(pod.spec.schedulingGroup!.podGroupName)} to appear in scheduling queue`;
    const { gang } = podGroup.spec.schedulingPolicy;
    return gang && this.#size(group) < gang.minCount ? "waiting for minCount pods from a gang to appear in scheduling queue" : undefined;
  }

  /** Of a pod that counts on a node already. */
  permitted(pod: Readonly<Pod>): Permit {
    const group = groupOf(pod);
    if (group === undefined) return undefined;
    const podGroup = this.#deps.podGroup(group);
    const name = pod.spec.schedulingGroup!.podGroupName!;
    if (!podGroup) return { error: `running Permit plugin "${GANG_SCHEDULING}": failed to get podGroup ${namespaceOf(pod)}/${name}: podgroup.scheduling.k8s.io ${JSON.stringify(name)} not found` };
    const { gang } = podGroup.spec.schedulingPolicy;
    return gang && this.placed(group) < gang.minCount ? "wait" : undefined;
  }

  standing(pod: Readonly<Pod>): GroupStanding | undefined {
    const group = groupOf(pod);
    if (group === undefined) return undefined;
    const podGroup = this.#deps.podGroup(group), heldBack = this.heldBack(pod);
    const minCount = podGroup?.spec.schedulingPolicy.gang?.minCount;
    const condition = podGroup?.status?.conditions?.find(({ type }) => type === "PodGroupScheduled");
    return {
      name: pod.spec.schedulingGroup!.podGroupName!, ...(minCount !== undefined && { minCount }), pods: this.#size(group), placed: this.placed(group), ...(heldBack !== undefined && { heldBack }),
      ...(condition && { scheduled: { status: condition.status, reason: condition.reason ?? "", message: condition.message ?? "" } }),
    };
  }

  #size(group: ObjectKey): number { return this.#members.get(group)?.size ?? 0; }
}
