/**
 * Which pods to add or remove, and what the status says of them. No I/O: everything it knows is in its arguments.
 *
 * Source: kubernetes v1.36 pkg/controller/replicaset/{replica_set,replica_set_utils}.go
 */
import type { ReplicaSet } from "../../api/gen/apps.v1.ts";
import type { Pod, ReplicationController } from "../../api/gen/core.v1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { selectorFromSet } from "../../api/meta/label-selector.ts";
import { parseTime } from "../../api/meta/time.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { withCondition, withoutCondition } from "../conditions.ts";
import { isAvailable, isReady } from "../pod-state.ts";
import { deletionOrder } from "./deletion-order.ts";

export type Replicated = ReplicaSet | ReplicationController;
export type ReplicatedStatus = NonNullable<ReplicaSet["status"]>;

export interface Plan { readonly create: number; readonly remove: readonly Readonly<Pod>[] }

/** Pods added or removed per reconcile, so one huge ReplicaSet cannot flood the API server. */
const BURST_MAX = 500; // kubernetes v1.36 pkg/controller/replicaset/replica_set.go BurstReplicas

/** `active` are the owned pods that count as replicas; `related` those of all ReplicaSets of the same Deployment, which decide on crowded nodes. */
export function planReplicas(replicas: number, active: readonly Readonly<Pod>[], related: readonly Readonly<Pod>[], nowMs: number): Plan {
  const missing = replicas - active.length;
  if (missing >= 0) return { create: Math.min(missing, BURST_MAX), remove: [] };
  const excess = Math.min(-missing, BURST_MAX);
  const ordered = excess < active.length ? deletionOrder(active, related, nowMs) : active;
  return { create: 0, remove: ordered.slice(0, excess) };
}

/** How many times as old as the youngest of all that are ready each of those is that goes, in whole numbers; of those that are not ready nothing is said. */
export function ageRatios(remove: readonly Readonly<Pod>[], active: readonly Readonly<Pod>[], nowMs: number): number[] {
  if (remove.length === active.length) return []; // nobody was chosen
  const ageMs = ({ metadata }: Readonly<Pod>): number => nowMs - (parseTime(metadata.creationTimestamp) ?? 0);
  const youngestMs = Math.min(...active.filter(isReady).map(ageMs));
  return youngestMs === 0 ? [] : remove.filter(isReady).map((pod) => Math.trunc(ageMs(pod) / youngestMs));
}

interface Observed {
  readonly active: readonly Readonly<Pod>[];
  readonly terminating: readonly Readonly<Pod>[] | undefined; // undefined: this kind does not report them
  /** What went wrong when creating or deleting, if anything. */
  readonly failure: string | undefined;
  readonly nowMs: number;
}

export function replicaStatus({ spec, status, metadata }: Readonly<Replicated>, { active, terminating, failure, nowMs }: Observed): ReplicatedStatus {
  const template = selectorFromSet(spec.template?.metadata?.labels);
  const ready = active.filter(isReady);
  const minReadySeconds = spec.minReadySeconds ?? 0;
  let conditions = status?.conditions ?? [];
  if (failure === undefined) conditions = withoutCondition(conditions, "ReplicaFailure");
  else if (findCondition(conditions, "ReplicaFailure") === undefined) {
    const difference = active.length - (spec.replicas ?? 1);
    const reason = difference < 0 ? "FailedCreate" : difference > 0 ? "FailedDelete" : "";
    conditions = withCondition(conditions, { type: "ReplicaFailure", status: "True", lastTransitionTime: timestamp(nowMs), reason, message: failure });
  }
  return {
    replicas: active.length,
    fullyLabeledReplicas: active.filter((pod) => template.matches(pod.metadata.labels)).length,
    readyReplicas: ready.length,
    availableReplicas: ready.filter((pod) => isAvailable(pod, minReadySeconds, nowMs)).length,
    ...(terminating === undefined ? {} : { terminatingReplicas: terminating.length }),
    observedGeneration: metadata.generation ?? 0,
    ...(conditions.length > 0 ? { conditions: [...conditions] } : {}),
  };
}
