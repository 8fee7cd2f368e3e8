/**
 * What a Deployment's status says: counts, Available, Progressing, ReplicaFailure. No I/O.
 *
 * Source: kubernetes v1.36 pkg/controller/deployment/{sync,progress}.go, util/deployment_util.go (rules, reasons and messages)
 */
import type { Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet } from "../../api/gen/apps.v1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { parseTime } from "../../api/meta/time.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { withCondition, withoutCondition } from "../conditions.ts";
import { isFarAhead } from "../wrong-clock.ts";
import { fenceposts, replicasOf } from "./plan.ts";

type Set = Readonly<ReplicaSet>;
type Conditions = readonly DeploymentCondition[];

export function condition(nowMs: number, type: string, status: "True" | "False" | "Unknown", reason: string, message: string): DeploymentCondition {
  const now = timestamp(nowMs);
  return { type, status, lastUpdateTime: now, lastTransitionTime: now, reason, message };
}

export function hasProgressDeadline({ spec }: Readonly<Deployment>): boolean {
  return spec.progressDeadlineSeconds !== undefined && spec.progressDeadlineSeconds !== 2 ** 31 - 1;
}

/** Paused and resumed Deployments say so, and their deadline does not run. */
export function pausedConditions(deployment: Readonly<Deployment>, nowMs: number): Conditions {
  const conditions = deployment.status?.conditions ?? [];
  const progressing = findCondition(conditions, "Progressing");
  if (!hasProgressDeadline(deployment) || progressing?.reason === "ProgressDeadlineExceeded") return conditions;
  const saysPaused = progressing?.reason === "DeploymentPaused";
  if (deployment.spec.paused && !saysPaused) return withCondition(conditions, condition(nowMs, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"));
  if (!deployment.spec.paused && saysPaused) return withCondition(conditions, condition(nowMs, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed"));
  return conditions;
}

interface Observed { readonly current: Set | undefined; readonly old: readonly Set[]; readonly conditions: Conditions; readonly collisionCount: number | undefined; readonly nowMs: number }

export function countsStatus(deployment: Readonly<Deployment>, { current, old, conditions, collisionCount, nowMs }: Observed): DeploymentStatus {
  const sets = current === undefined ? old : [...old, current];
  const total = (of: (status: NonNullable<ReplicaSet["status"]>) => number | undefined): number => sets.reduce((sum, { status }) => sum + (status === undefined ? 0 : of(status) ?? 0), 0);
  const available = total((status) => status.availableReplicas);
  const terminating = sets.every(({ status }) => (status?.observedGeneration ?? 0) === 0 || status?.terminatingReplicas !== undefined);
  const enough = available >= replicasOf(deployment) - fenceposts(deployment).maxUnavailable;
  const availability = enough
    ? condition(nowMs, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    : condition(nowMs, "Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.");
  return {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: total((status) => status.replicas),
    updatedReplicas: current?.status?.replicas ?? 0,
    readyReplicas: total((status) => status.readyReplicas),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, sets.reduce((sum, set) => sum + replicasOf(set), 0) - available),
    ...(terminating ? { terminatingReplicas: total((status) => status.terminatingReplicas) } : {}),
    ...(collisionCount === undefined ? {} : { collisionCount }),
    conditions: withCondition(conditions, availability),
  };
}

/** The counts, and how the rollout goes. */
export function rolloutStatus(deployment: Readonly<Deployment>, observed: Observed): DeploymentStatus {
  const status = countsStatus(deployment, observed);
  let conditions: DeploymentCondition[] = status.conditions ?? [];
  const progressing = findCondition(observed.conditions, "Progressing");
  const completed = status.replicas === status.updatedReplicas && progressing?.reason === "NewReplicaSetAvailable";
  if (!hasProgressDeadline(deployment)) conditions = withoutCondition(conditions, "Progressing");
  else if (!completed) conditions = progressConditions(deployment, { ...status, conditions }, observed);

  const failure = replicaFailure(observed);
  conditions = failure === undefined ? withoutCondition(conditions, "ReplicaFailure") : withCondition(conditions, failure);
  return { ...status, conditions };
}

function progressConditions(deployment: Readonly<Deployment>, status: DeploymentStatus, { current, conditions: before, nowMs }: Observed): DeploymentCondition[] {
  const conditions = status.conditions ?? [];
  const subject = current === undefined ? `Deployment "${deployment.metadata.name}"` : `ReplicaSet "${current.metadata.name}"`;
  if (isComplete(deployment, status)) {
    return withCondition(conditions, condition(nowMs, "Progressing", "True", "NewReplicaSetAvailable", `${subject} has successfully progressed.`));
  }
  if (hasProgressed(deployment.status, status) || isFromAhead(findCondition(before, "Progressing"), nowMs)) {
    // Each progress restarts the deadline, which counts from lastUpdateTime: so the condition is renewed even if it says the same.
    const next = condition(nowMs, "Progressing", "True", "ReplicaSetUpdated", `${subject} is progressing.`);
    const old = findCondition(before, "Progressing");
    return [...withoutCondition(conditions, "Progressing"), old?.status === "True" ? { ...next, lastTransitionTime: old.lastTransitionTime } : next];
  }
  if (isTimedOut(deployment, conditions, nowMs)) {
    return withCondition(conditions, condition(nowMs, "Progressing", "False", "ProgressDeadlineExceeded", `${subject} has timed out progressing.`));
  }
  return conditions;
}

export function isComplete(deployment: Readonly<Deployment>, status: Readonly<DeploymentStatus> | undefined): boolean {
  const desired = replicasOf(deployment);
  const { updatedReplicas = 0, replicas = 0, availableReplicas = 0, observedGeneration = 0 } = status ?? {};
  return updatedReplicas === desired && replicas === desired && availableReplicas === desired && observedGeneration >= (deployment.metadata.generation ?? 0);
}

function hasProgressed(before: Readonly<DeploymentStatus> = {}, after: Readonly<DeploymentStatus>): boolean {
  const old = ({ replicas = 0, updatedReplicas = 0 }: Readonly<DeploymentStatus>): number => replicas - updatedReplicas;
  return (after.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) || old(after) < old(before)
    || (after.readyReplicas ?? 0) > (before.readyReplicas ?? 0) || (after.availableReplicas ?? 0) > (before.availableReplicas ?? 0);
}

/** A clock years ahead has said so: the deadline would not come for as long. */
function isFromAhead(progressing: DeploymentCondition | undefined, nowMs: number): boolean {
  return progressing !== undefined && progressing.reason !== "NewReplicaSetAvailable" && progressing.reason !== "ProgressDeadlineExceeded" && isFarAhead(parseTime(progressing.lastUpdateTime ?? "") ?? 0, nowMs);
}

function isTimedOut(deployment: Readonly<Deployment>, conditions: Conditions, nowMs: number): boolean {
  const progressing = findCondition(conditions, "Progressing");
  if (progressing === undefined || progressing.reason === "NewReplicaSetAvailable") return false;
  return progressing.reason === "ProgressDeadlineExceeded" || deadlineMs(deployment, progressing) < nowMs;
}

function deadlineMs({ spec }: Readonly<Deployment>, { lastUpdateTime }: DeploymentCondition): number {
  return (parseTime(lastUpdateTime ?? "") ?? 0) + (spec.progressDeadlineSeconds ?? 0) * 1000;
}

/** When to look again whether the rollout is stuck, if it runs. */
export function deadlineInMs(deployment: Readonly<Deployment>, status: Readonly<DeploymentStatus>, nowMs: number): number | undefined {
  const progressing = findCondition(status.conditions, "Progressing");
  if (!hasProgressDeadline(deployment) || progressing === undefined || isComplete(deployment, status) || progressing.reason === "ProgressDeadlineExceeded") return undefined;
  if (progressing.reason === "NewReplicaSetAvailable" || deployment.spec.paused) return undefined;
  return Math.max(0, deadlineMs(deployment, progressing) - nowMs) + 1000; // conditions count in whole seconds
}

function replicaFailure({ current, old }: Observed): DeploymentCondition | undefined {
  for (const set of current === undefined ? old : [current, ...old]) {
    const failure = findCondition(set.status?.conditions, "ReplicaFailure");
    if (failure !== undefined) return { ...failure, lastUpdateTime: failure.lastTransitionTime };
  }
  return undefined;
}
