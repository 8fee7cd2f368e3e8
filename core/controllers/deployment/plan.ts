/**
 * How large each ReplicaSet of a Deployment should be next. No I/O: everything it knows is in its arguments.
 *
 *   scaling    all active sets grow or shrink in proportion when spec.replicas changes in the middle of a rollout
 *   rolling    the new set grows within maxSurge; else old sets shrink within maxUnavailable, those with unavailable pods first
 *   recreate   old sets to zero, then the new one to full size
 *
 * Source: kubernetes v1.36 pkg/controller/deployment/{sync,rolling}.go, util/deployment_util.go
 */
import type { Deployment, ReplicaSet } from "../../api/gen/apps.v1.ts";
import type { PodTemplateSpec } from "../../api/gen/core.v1.ts";
import { scaleIntOrPercent } from "../../api/meta/int-or-string.ts";
import { annotationsOf, isDeleting } from "../../api/meta/object-meta.ts";
import type { CompleteTemplate } from "../deps.ts";
import { canonical } from "../template-hash.ts";
import { DESIRED_REPLICAS, MAX_REPLICAS, revisionOfSet } from "./revision.ts";

export const HASH_LABEL = "pod-template-hash";

type Set = Readonly<ReplicaSet>;
/** A set and the size it should have. */
export interface Resize { readonly set: Set; readonly to: number }

export const replicasOf = (object: { readonly spec: { readonly replicas?: number | undefined } }): number => object.spec.replicas ?? 1;
export const isActiveSet = (set: Set): boolean => replicasOf(set) > 0;
const sum = (sets: readonly Set[], of: (set: Set) => number): number => sets.reduce((total, set) => total + of(set), 0);
/** A set that has been told to shrink may still count pods that are on their way out: they serve nobody for long. */
const available = (set: Set): number => Math.min(set.status?.availableReplicas ?? 0, replicasOf(set));

/** Oldest first; of the same second, by name. */
function byAge(a: Set, b: Set): number {
  const [at, bt] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  return at === bt ? (a.metadata.name < b.metadata.name ? -1 : 1) : at < bt ? -1 : 1;
}

/** Equal but for the hash label, which is ours. */
export function sameTemplate(a: Readonly<PodTemplateSpec> | undefined, b: Readonly<PodTemplateSpec> | undefined): boolean {
  const bare = (template: Readonly<PodTemplateSpec> | undefined): string => {
    const { [HASH_LABEL]: _, ...labels } = template?.metadata?.labels ?? {};
    return canonical({ ...template, metadata: { ...template?.metadata, labels } });
  };
  return bare(a) === bare(b);
}

/** The set that has the Deployment's template (of several, which can be after a change of our own, the oldest), be it but for defaults, and all the others. */
export function splitSets(deployment: Readonly<Deployment>, sets: readonly Set[], complete?: CompleteTemplate): { readonly current: Set | undefined; readonly old: readonly Set[] } {
  const sorted = sets.toSorted(byAge);
  const { template } = deployment.spec;
  const current = sorted.find((set) => sameTemplate(set.spec.template, template)) ?? (complete && sorted.find((set) => set.spec.template && sameTemplate(complete(set.spec.template), complete(template))));
  return { current, old: sorted.filter((set) => set !== current) };
}

export function isRolling(deployment: Readonly<Deployment>): boolean { return (deployment.spec.strategy?.type ?? "RollingUpdate") === "RollingUpdate"; }

/** How many pods may be too many and too few during a rollout. */
export function fenceposts(deployment: Readonly<Deployment>): { readonly maxSurge: number; readonly maxUnavailable: number } {
  if (!isRolling(deployment)) return { maxSurge: 0, maxUnavailable: 0 };
  const total = replicasOf(deployment);
  const { maxSurge = 0, maxUnavailable = 0 } = deployment.spec.strategy?.rollingUpdate ?? {};
  const surge = scaleIntOrPercent(maxSurge, { total, roundUp: true });
  const unavailable = scaleIntOrPercent(maxUnavailable, { total, roundUp: false });
  // Both 0 would be a rollout that cannot move; rounding can bring it about.
  return { maxSurge: surge, maxUnavailable: total === 0 ? 0 : Math.min(total, surge === 0 && unavailable === 0 ? 1 : unavailable) };
}

/** spec.replicas is not what the active sets were last scaled for. */
export function isScalingEvent(deployment: Readonly<Deployment>, sets: readonly Set[]): boolean {
  return sets.filter(isActiveSet).some((set) => {
    const desired = countAnnotation(set, DESIRED_REPLICAS);
    return desired !== undefined && desired !== replicasOf(deployment);
  });
}

function countAnnotation(set: Set, name: string): number | undefined {
  const text = annotationsOf(set)[name] ?? "";
  return /^\d{1,10}$/.test(text) && Number(text) < 2 ** 31 ? Number(text) : undefined;
}

/** The size for a new set: as much as maxSurge leaves room for. */
export function currentSize(deployment: Readonly<Deployment>, sets: readonly Set[], current: Set | undefined): number {
  const desired = replicasOf(deployment);
  if (!isRolling(deployment)) return desired;
  const have = current === undefined ? 0 : replicasOf(current);
  const room = desired + fenceposts(deployment).maxSurge - sum(sets, replicasOf);
  return room <= 0 ? have : have + Math.min(room, desired - have);
}

/** When spec.replicas has changed, or the Deployment is paused: `touch` lists sets whose annotations must be brought up to date even if their size stays. */
export function planScale(deployment: Readonly<Deployment>, current: Set | undefined, old: readonly Set[]): { readonly resize: readonly Resize[]; readonly touch: boolean } {
  const desired = replicasOf(deployment);
  const all = current === undefined ? old : [...old, current];
  const active = all.filter(isActiveSet);
  const only = active.length === 1 ? active[0] : active.length === 0 ? current ?? old.toSorted(byAge).at(-1) : undefined;
  if (only !== undefined) return { resize: replicasOf(only) === desired ? [] : [{ set: only, to: desired }], touch: false };
  if (active.length === 0) return { resize: [], touch: false };

  const saturated = current !== undefined && replicasOf(current) === desired && countAnnotation(current, DESIRED_REPLICAS) === desired && available(current) === desired;
  if (saturated) return { resize: old.filter(isActiveSet).map((set) => ({ set, to: 0 })), touch: false };
  if (!isRolling(deployment)) return { resize: [], touch: false };

  const allowed = desired > 0 ? desired + fenceposts(deployment).maxSurge : 0;
  const toAdd = allowed - sum(active, replicasOf);
  // The largest takes what is left over; of equals, the newer one when growing and the older one when shrinking.
  const sorted = active.toSorted((a, b) => replicasOf(b) - replicasOf(a) || (toAdd > 0 ? byAge(b, a) : byAge(a, b)));
  let added = 0;
  const resize = sorted.map((set) => {
    const share = toAdd === 0 || toAdd === added ? 0 : clamp(fraction(deployment, set), toAdd - added);
    added += share;
    return { set, to: replicasOf(set) + share };
  });
  const [largest, ...rest] = resize;
  if (largest === undefined || toAdd === 0) return { resize, touch: true };
  return { resize: [{ ...largest, to: Math.max(0, largest.to + toAdd - added) }, ...rest], touch: true };
}

/** No further than `allowed`, in its direction. */
function clamp(share: number, allowed: number): number { return allowed > 0 ? Math.min(share, allowed) : Math.max(share, allowed); }

/** By how much a set changes if it keeps its share of the whole. */
function fraction(deployment: Readonly<Deployment>, set: Set): number {
  const desired = replicasOf(deployment);
  if (desired === 0) return -replicasOf(set);
  const before = countAnnotation(set, MAX_REPLICAS) || deployment.status?.replicas || 0;
  if (before === 0) return 0;
  return Math.round((replicasOf(set) * (desired + fenceposts(deployment).maxSurge)) / before) - replicasOf(set);
}

/** The next step of a rolling update; empty when nothing may move now. */
export function planRolling(deployment: Readonly<Deployment>, current: Set, old: readonly Set[]): Resize[] {
  const desired = replicasOf(deployment);
  const all = [...old, current];
  const size = replicasOf(current) > desired ? desired : currentSize(deployment, all, current);
  if (size !== replicasOf(current)) return [{ set: current, to: size }];

  const shrinking = old.filter(isActiveSet).toSorted(byAge);
  const minAvailable = desired - fenceposts(deployment).maxUnavailable;
  const unavailableOfCurrent = replicasOf(current) - available(current);
  const removableMax = sum(all, replicasOf) - minAvailable - unavailableOfCurrent;
  if (shrinking.length === 0 || removableMax <= 0) return [];

  const sizes = new Map(shrinking.map((set) => [set, replicasOf(set)]));
  let unhealthyLeft = removableMax; // pods that are not available can go first: nobody is served by them
  for (const set of shrinking) {
    const gone = Math.min(unhealthyLeft, Math.max(0, replicasOf(set) - available(set)));
    sizes.set(set, replicasOf(set) - gone);
    unhealthyLeft -= gone;
  }
  let healthyLeft = sum(all, available) - minAvailable;
  for (const set of shrinking) {
    if (healthyLeft <= 0) break;
    const gone = Math.min(sizes.get(set) ?? 0, healthyLeft);
    sizes.set(set, (sizes.get(set) ?? 0) - gone);
    healthyLeft -= gone;
  }
  return [...sizes].filter(([set, to]) => to !== replicasOf(set)).map(([set, to]) => ({ set, to }));
}

/** Old sets beyond the history limit, oldest revision first; only those that are empty and settled. */
export function planCleanup(deployment: Readonly<Deployment>, old: readonly Set[]): Set[] {
  const limit = deployment.spec.revisionHistoryLimit;
  if (limit === undefined || limit === 2 ** 31 - 1) return [];
  const alive = old.filter((set) => !isDeleting(set));
  const sorted = alive.toSorted((a, b) => Number(revisionOfSet(a) - revisionOfSet(b)) || byAge(a, b));
  return sorted.slice(0, Math.max(0, alive.length - limit))
    .filter((set) => (set.status?.replicas ?? 0) === 0 && replicasOf(set) === 0 && (set.metadata.generation ?? 0) <= (set.status?.observedGeneration ?? 0));
}
