/**
 * What a StatefulSet does next. No I/O.
 *
 *   ordered     one step at a time: the lowest pod that is missing or broken, then, from the top, one too many; nothing while any is not available
 *   parallel    all of that at once
 *   update      from the top, as many as may be unavailable, down to the partition; without MaxUnavailableStatefulSet one
 *
 * Source: kubernetes v1.36 pkg/controller/statefulset/stateful_set_control.go
 */
import type { StatefulSet, StatefulSetStatus } from "../../api/gen/apps.v1.ts";
import type { Pod, PodTemplateSpec } from "../../api/gen/core.v1.ts";
import { scaleIntOrPercent } from "../../api/meta/int-or-string.ts";
import { isDeleting } from "../../api/meta/object-meta.ts";
import type { NewPod } from "../pod-control.ts";
import { isAvailable, isReady, isTerminal } from "../pod-state.ts";
import { firstOrdinal, isWanted, ordinalOf, repaired, replicasOf, revisionOf, statefulPod } from "./pods.ts";

type P = Readonly<Pod>;

export interface Revision { readonly name: string; readonly template: Readonly<PodTemplateSpec> }

export interface World {
  readonly set: Readonly<StatefulSet>;
  readonly current: Revision;
  readonly update: Revision;
  readonly pods: readonly P[];
  readonly nowMs: number;
  /** An update may take several pods away at once. */
  readonly several?: boolean | undefined;
}

export type Step =
  | { readonly do: "create"; readonly pod: NewPod; readonly ordinal: number }
  | { readonly do: "delete"; readonly pod: P }
  /** Its claims are missing, it cannot start. */
  | { readonly do: "provide"; readonly pod: P }
  | { readonly do: "repair"; readonly pod: P; readonly next: Pod };

/** Pods made per round, as of a ReplicaSet. Upstream plans all that are missing, which of two thousand millions no memory holds. */
const MISSING_MAX = 500;

export function isParallel({ spec }: Readonly<StatefulSet>): boolean { return spec.podManagementPolicy === "Parallel"; }

export function planSteps(world: World): Step[] {
  const { set, pods, nowMs } = world;
  const ordered = !isParallel(set);
  const available = (pod: P): boolean => isAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs);
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(pod), pod]));
  const condemned = pods.filter((pod) => !isWanted(set, pod)).toSorted((a, b) => ordinalOf(b) - ordinalOf(a));
  const steps: Step[] = [];

  for (const ordinal of ordinalsToLookAt(set, byOrdinal)) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) {
      steps.push({ do: "create", ordinal, pod: newPod(world, ordinal) });
      if (ordered) return steps;
      continue;
    }
    if (isTerminal(pod)) {
      if (!isDeleting(pod)) steps.push({ do: "delete", pod });
      if (ordered) return steps;
      continue;
    }
    if ((pod.status?.phase ?? "Pending") === "Pending") steps.push({ do: "provide", pod });
    if (ordered && (isDeleting(pod) || !isReady(pod) || !available(pod))) return steps;
    const next = repaired(set, pod);
    if (next !== undefined) steps.push({ do: "repair", pod, next });
  }

  const unwell = [...pods].toSorted((a, b) => ordinalOf(a) - ordinalOf(b)).find((pod) => isDeleting(pod) || !available(pod));
  for (const pod of condemned) {
    if (isDeleting(pod)) {
      if (ordered) return steps;
      continue;
    }
    // One that is not well waits for the others to be so, unless it is itself the one they all wait for.
    if (ordered && (!isReady(pod) || !available(pod)) && pod !== unwell) return steps;
    steps.push({ do: "delete", pod });
    if (ordered) return steps;
  }
  return [...steps, ...planUpdate(world)];
}

/** In order, those that have a pod and the first of those that lack one: what is made brings the next round. */
function ordinalsToLookAt(set: Readonly<StatefulSet>, byOrdinal: ReadonlyMap<number, P>): number[] {
  const first = firstOrdinal(set), end = first + replicasOf(set);
  const missing: number[] = [];
  for (let ordinal = first; ordinal < end && missing.length < MISSING_MAX; ordinal++) if (!byOrdinal.has(ordinal)) missing.push(ordinal);
  return [...missing, ...[...byOrdinal.keys()].filter((ordinal) => ordinal >= first && ordinal < end)].sort((a, b) => a - b);
}

/** Below the partition, or while an update without one is under way, a pod is made again as it was. */
function newPod({ set, current, update }: World, ordinal: number): NewPod {
  const rolling = set.spec.updateStrategy?.rollingUpdate;
  const isRolling = (set.spec.updateStrategy?.type ?? "RollingUpdate") === "RollingUpdate";
  const old = rolling === undefined ? isRolling && ordinal < firstOrdinal(set) + (set.status?.currentReplicas ?? 0) : ordinal < firstOrdinal(set) + (rolling.partition ?? 0);
  const { name, template } = old ? current : update;
  return statefulPod(set, template, { ordinal, revision: name });
}

function planUpdate(world: World): Step[] {
  const { set, update, pods, several = false } = world;
  if (set.spec.updateStrategy?.type === "OnDelete") return [];
  const { partition = 0 } = set.spec.updateStrategy?.rollingUpdate ?? {};
  const members = pods.filter((pod) => isWanted(set, pod));
  const fromTop = members.filter((pod) => ordinalOf(pod) - firstOrdinal(set) >= partition).toSorted((a, b) => ordinalOf(b) - ordinalOf(a));
  const isOld = (pod: P): boolean => revisionOf(pod) !== update.name && !isDeleting(pod);
  if (!several) {
    // The highest that is of another revision, as soon as all above it serve. A broken one is replaced like any other.
    const next = fromTop.find((pod) => isOld(pod) || !serves(world, pod));
    return next !== undefined && isOld(next) && members.length === replicasOf(set) ? [{ do: "delete", pod: next }] : [];
  }
  const room = Math.max(0, unavailableMax(set) - unavailable(world));
  return fromTop.filter(isOld).slice(0, room).map((pod) => ({ do: "delete", pod }));
}

/** How many may be missing at once of an update. */
export function unavailableMax(set: Readonly<StatefulSet>): number {
  const { maxUnavailable = 1 } = set.spec.updateStrategy?.rollingUpdate ?? {};
  return Math.max(1, scaleIntOrPercent(maxUnavailable, { total: replicasOf(set), roundUp: false }));
}

/** How many that are wanted are missing or do not serve. */
export function unavailable(world: World): number {
  return replicasOf(world.set) - world.pods.filter((pod) => isWanted(world.set, pod) && serves(world, pod)).length;
}

function serves({ set, nowMs }: World, pod: P): boolean { return !isDeleting(pod) && isAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs); }

export function statefulStatus({ set, current, update, pods, nowMs }: World, collisionCount: number): StatefulSetStatus {
  const minReadySeconds = set.spec.minReadySeconds ?? 0;
  const ready = pods.filter((pod) => pod.status?.phase === "Running" && isReady(pod));
  const live = pods.filter((pod) => !isDeleting(pod));
  const status: StatefulSetStatus = {
    observedGeneration: set.metadata.generation ?? 0, collisionCount, currentRevision: current.name, updateRevision: update.name,
    replicas: pods.length, readyReplicas: ready.length, availableReplicas: ready.filter((pod) => isAvailable(pod, minReadySeconds, nowMs)).length,
    currentReplicas: live.filter((pod) => revisionOf(pod) === current.name).length, updatedReplicas: live.filter((pod) => revisionOf(pod) === update.name).length,
    ...(set.status?.conditions === undefined ? {} : { conditions: [...set.status.conditions] }),
  };
  const wanted = replicasOf(set);
  const done = set.spec.updateStrategy?.type !== "OnDelete" && status.updatedReplicas === wanted && status.readyReplicas === wanted && status.replicas === wanted;
  return done ? { ...status, currentReplicas: status.updatedReplicas, currentRevision: update.name } : status;
}
