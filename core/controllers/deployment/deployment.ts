/**
 * Rolls out Deployments: one ReplicaSet for each pod template it has had, the one of the present template growing while the others shrink.
 *
 *   Deployment or ReplicaSet changes → key → sets adopted → the set of the present template found or created → plan.ts decides sizes → status.ts
 *
 * API:    https://kubernetes.io/docs/concepts/workloads/controllers/deployment/
 * Source: kubernetes v1.36 pkg/controller/deployment
 */
import type { Deployment, DeploymentStatus, ReplicaSet } from "../../api/gen/apps.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import { annotationsOf, controllerOf, controllerRef, isDeleting, keyOf, labelsOf, type NewObject, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNotFound } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { DEPLOYMENTS, PODS, REPLICA_SETS } from "../../client/resources.ts";
import { BY_CONTROLLER, candidatesFor, claim } from "../claim.ts";
import { findCondition, sameValue, withCondition } from "../conditions.ts";
import { type Controller, controllerKey, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { isNamespaceTerminating, messageOf } from "../pod-control.ts";
import { isTerminal } from "../pod-state.ts";
import { templateHash } from "../template-hash.ts";
import { currentSize, fenceposts, HASH_LABEL, isActiveSet, isRolling, isScalingEvent, planCleanup, planRolling, planScale, replicasOf, type Resize, sameTemplate, splitSets } from "./plan.ts";
import { currentAnnotations, lastRevision, maxRevision, REVISION, ROLLBACK_TO, revisionOfSet, rollbackAnnotations, scaleAnnotations } from "./revision.ts";
import { condition, countsStatus, deadlineInMs, hasProgressDeadline, isComplete, pausedConditions, rolloutStatus } from "./status.ts";

type Set = Readonly<ReplicaSet>;
/** A Deployment as it is being worked on: annotations and status may be ahead of the stored ones. */
type Draft = Deployment & { status: DeploymentStatus };

const NAME_LENGTH_MAX = 253;

export function deploymentController({ client, informers, events, clock, complete }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "complete">): Controller {
  const deployments = informers.of(DEPLOYMENTS);
  const sets = informers.of(REPLICA_SETS);
  const pods = informers.of(PODS);
  const deploymentClient = client.resource(DEPLOYMENTS);
  const setClient = client.resource(REPLICA_SETS);
  const recorder = events.from({ component: "deployment-controller" });

  return {
    name: "deployment",
    workers: 5,
    watches: [
      itself(deployments),
      mapped(sets, ({ object, old }) => [...deploymentsOf(object), ...(old === undefined ? [] : deploymentsOf(old))]),
      mapped(pods, ({ object, deleted }) => (deleted || isTerminal(object) ? recreatedBy(object) : [])),
    ],

    async reconcile(key, { signal }): Promise<Next> {
      const stored = deployments.get(key);
      if (stored === undefined) return;
      const draft: Draft = { ...stored, metadata: { ...stored.metadata, annotations: { ...annotationsOf(stored) } }, status: { ...stored.status } };
      if (selectsEverything(stored)) {
        recorder.event(stored, "Warning", "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.");
        draft.status.observedGeneration = stored.metadata.generation ?? 0;
        await write(stored, draft, signal);
        return;
      }
      const selector = labelSelector(stored.spec.selector);
      const owned = await claim<ReplicaSet, Deployment>({
        owner: stored, owners: deploymentClient, objects: candidatesFor(sets, stored), client: setClient, matches: (set) => selector.matches(labelsOf(set)), signal,
      });
      try {
        draft.status = await sync(draft, owned, signal);
      } finally {
        if (!signal.aborted) await write(stored, draft, signal);
      }
      const againInMs = deadlineInMs(draft, draft.status, clock.nowMs());
      return againInMs === undefined ? undefined : { againInMs };
    },
  };

  /** One step. What it has to tell before it fails stands in `draft`. */
  async function sync(draft: Draft, owned: readonly Set[], signal: AbortSignal): Promise<DeploymentStatus> {
    const split = splitSets(draft, owned, complete);
    const { old } = split;
    let { current } = split;
    const observe = () => ({ current, old, conditions: draft.status.conditions ?? [], collisionCount: draft.status.collisionCount, nowMs: clock.nowMs() });
    if (isDeleting(draft)) return countsStatus(draft, observe());

    draft.status.conditions = [...pausedConditions(draft, clock.nowMs())];
    if (!draft.spec.paused && annotationsOf(draft)[ROLLBACK_TO] !== undefined && (await rollback(draft, owned, signal))) return draft.status;
    current = await refresh(draft, current, old, signal);
    const all = current === undefined ? old : [...old, current];
    if (draft.spec.paused || isScalingEvent(draft, all)) {
      const { resize, touch } = planScale(draft, current, old);
      const resized = await resizeAll(draft, resize, touch, signal);
      if (draft.spec.paused) await cleanUp(draft, old, signal);
      current = current && (resized.get(current.metadata.uid) ?? current);
      return countsStatus(draft, observe());
    }

    const steps = isRolling(draft) ? undefined : old.filter(isActiveSet).map((set) => ({ set, to: 0 }));
    if (steps !== undefined && (steps.length > 0 || oldPodsRun(owned, current))) { // recreate: nothing new before all that is old is gone
      await resizeAll(draft, steps, false, signal);
      return rolloutStatus(draft, observe());
    }
    if (current === undefined) {
      current = await create(draft, old, signal);
    } else {
      const resize = isRolling(draft) ? planRolling(draft, current, old) : replicasOf(current) === replicasOf(draft) ? [] : [{ set: current, to: replicasOf(draft) }];
      await resizeAll(draft, resize, false, signal);
      if (resize.length === 0 && isComplete(draft, draft.status)) await cleanUp(draft, old, signal);
    }
    return rolloutStatus(draft, observe());
  }

  /** Hands revision, annotations and minReadySeconds down to the set of the present template. */
  async function refresh(draft: Draft, current: Set | undefined, old: readonly Set[], signal: AbortSignal): Promise<Set | undefined> {
    if (current === undefined) return undefined;
    const annotations = currentAnnotations(draft, annotationsOf(current), maxRevision(old) + 1n);
    const minReadySeconds = draft.spec.minReadySeconds ?? 0;
    let fresh = current;
    if (!sameValue(annotations, annotationsOf(current)) || (current.spec.minReadySeconds ?? 0) !== minReadySeconds) {
      fresh = await setClient.update({ ...current, metadata: { ...current.metadata, annotations }, spec: { ...current.spec, minReadySeconds } }, { signal });
      await sets.caughtUp([fresh], signal);
    }
    setRevision(draft, annotationsOf(fresh)[REVISION]);
    if (hasProgressDeadline(draft) && findCondition(draft.status.conditions, "Progressing") === undefined) {
      draft.status.conditions = withCondition(draft.status.conditions, condition(clock.nowMs(), "Progressing", "True", "FoundNewReplicaSet", `Found new replica set "${fresh.metadata.name}"`));
    }
    return fresh;
  }

  async function create(draft: Draft, old: readonly Set[], signal: AbortSignal): Promise<Set | undefined> {
    const hash = templateHash(draft.spec.template, draft.status.collisionCount);
    const labels = { ...draft.spec.template.metadata?.labels, [HASH_LABEL]: hash };
    const name = `${draft.metadata.name.slice(0, NAME_LENGTH_MAX - 1 - hash.length)}-${hash}`;
    const replicas = currentSize(draft, old, undefined);
    const revision = maxRevision(old) + 1n;
    const set: NewObject<ReplicaSet> = {
      apiVersion: "apps/v1", kind: "ReplicaSet",
      metadata: {
        name, namespace: namespaceOf(draft), labels, ownerReferences: [controllerRef(draft)],
        annotations: { ...currentAnnotations(draft, {}, revision), ...scaleAnnotations(replicasOf(draft), replicasOf(draft) + fenceposts(draft).maxSurge) },
      },
      spec: {
        replicas, minReadySeconds: draft.spec.minReadySeconds ?? 0,
        selector: { ...draft.spec.selector, matchLabels: { ...draft.spec.selector?.matchLabels, [HASH_LABEL]: hash } },
        template: { ...draft.spec.template, metadata: { ...draft.spec.template.metadata, labels } },
      },
    };
    let created: Set;
    try {
      created = await setClient.create(set, { signal });
    } catch (error) {
      if (isAlreadyExists(error)) return await resolveCollision(draft, name, error);
      if (!isNamespaceTerminating(error) && !signal.aborted) {
        const message = `Failed to create new replica set "${name}": ${messageOf(error)}`;
        if (hasProgressDeadline(draft)) draft.status.conditions = withCondition(draft.status.conditions, condition(clock.nowMs(), "Progressing", "False", "ReplicaSetCreateError", message));
        recorder.event(draft, "Warning", "ReplicaSetCreateError", message);
      }
      throw error;
    }
    if (replicas > 0) recorder.event(draft, "Normal", "ScalingReplicaSet", `Scaled up replica set ${name} from 0 to ${replicas}`);
    setRevision(draft, String(revision));
    if (hasProgressDeadline(draft)) {
      draft.status.conditions = withCondition(draft.status.conditions, condition(clock.nowMs(), "Progressing", "True", "NewReplicaSetCreated", `Created new replica set "${name}"`));
    }
    await sets.caughtUp([created], signal);
    return created;

    /** The name is taken: by our own earlier try, or by another template of the same hash, which takes a new hash. */
    async function resolveCollision(draft: Draft, name: string, error: unknown): Promise<Set> {
      const existing = await setClient.get({ metadata: { name, namespace: namespaceOf(draft) } }, { signal });
      if (controllerOf(existing)?.uid === draft.metadata.uid && sameTemplate(existing.spec.template, draft.spec.template)) {
        await sets.caughtUp([existing], signal);
        return existing;
      }
      draft.status.collisionCount = (draft.status.collisionCount ?? 0) + 1;
      throw error;
    }
  }

  /** The sets as they are after. With `touch`, also those whose size stays but whose scale annotations are old. */
  async function resizeAll(draft: Draft, resize: readonly Resize[], touch: boolean, signal: AbortSignal): Promise<Map<string, Set>> {
    const written = new Map<string, Set>();
    const scale = scaleAnnotations(replicasOf(draft), replicasOf(draft) + fenceposts(draft).maxSurge);
    try {
      for (const { set, to } of resize) {
        const from = replicasOf(set);
        const annotations = { ...annotationsOf(set), ...scale };
        if (from === to && (!touch || sameValue(annotations, annotationsOf(set)))) continue;
        const next = await setClient.update({ ...set, metadata: { ...set.metadata, annotations }, spec: { ...set.spec, replicas: to } }, { signal });
        written.set(set.metadata.uid, next);
        if (from !== to) recorder.event(draft, "Normal", "ScalingReplicaSet", `Scaled ${from < to ? "up" : "down"} replica set ${set.metadata.name} from ${from} to ${to}`);
      }
    } finally {
      await sets.caughtUp([...written.values()], signal);
    }
    return written;
  }

  async function cleanUp(draft: Draft, old: readonly Set[], signal: AbortSignal): Promise<void> {
    for (const set of planCleanup(draft, old)) {
      await setClient.delete(set, {}, { signal }).catch((error: unknown) => { if (!isNotFound(error)) throw error; });
    }
  }

  /** `kubectl rollout undo` of old: the annotation names a revision, 0 for the one before. False when the annotation is no number. */
  async function rollback(draft: Draft, owned: readonly Set[], signal: AbortSignal): Promise<boolean> {
    const text = annotationsOf(draft)[ROLLBACK_TO] ?? "";
    if (!/^-?\d+$/.test(text)) return false;
    const revision = BigInt(text) || lastRevision(owned);
    const target = revision === 0n ? undefined : owned.find((set) => revisionOfSet(set) === revision);
    const { [ROLLBACK_TO]: _, ...kept } = annotationsOf(draft);
    let next: Deployment = { ...draft, metadata: { ...draft.metadata, annotations: kept } };
    if (target === undefined) {
      const message = revision === 0n ? "Unable to find last revision." : "Unable to find the revision to rollback to.";
      recorder.event(draft, "Warning", "DeploymentRollbackRevisionNotFound", message);
    } else if (sameTemplate(target.spec.template, draft.spec.template)) {
      recorder.event(draft, "Warning", "DeploymentRollbackTemplateUnchanged", `The rollback revision contains the same template as current deployment "${draft.metadata.name}"`);
    } else {
      const { [HASH_LABEL]: _hash, ...labels } = target.spec.template?.metadata?.labels ?? {};
      const template = { ...target.spec.template, metadata: { ...target.spec.template?.metadata, labels } };
      next = { ...next, metadata: { ...next.metadata, annotations: rollbackAnnotations(draft, target) }, spec: { ...next.spec, template } };
      recorder.event(draft, "Normal", "DeploymentRollback", `Rolled back deployment "${draft.metadata.name}" to revision ${revision}`);
    }
    const written = await deploymentClient.update(next, { signal });
    await deployments.caughtUp([written], signal);
    draft.metadata = { ...written.metadata, annotations: { ...annotationsOf(written) } };
    draft.spec = written.spec;
    return true;
  }

  /** A status write may change annotations too: the revision goes with it. */
  async function write(stored: Readonly<Deployment>, draft: Draft, signal: AbortSignal): Promise<void> {
    const same = sameValue(draft.status, stored.status) && annotationsOf(draft)[REVISION] === annotationsOf(stored)[REVISION];
    if (same) return;
    const written = await deploymentClient.updateStatus(draft, { signal });
    await deployments.caughtUp([written], signal);
  }

  function deploymentsOf(set: Set): ObjectKey[] {
    if (controllerOf(set) !== undefined) {
      const key = controllerKey(set, DEPLOYMENTS);
      return key === undefined ? [] : [key];
    }
    const labels = labelsOf(set);
    if (isDeleting(set) || Object.keys(labels).length === 0) return [];
    return [...deployments.inNamespace(namespaceOf(set))].filter((deployment) => {
      const selector = labelSelector(deployment.spec.selector);
      return !selector.empty && selector.matches(labels);
    }).map(keyOf);
  }

  /** A Deployment that waits for its old pods to be gone. */
  function recreatedBy(pod: Readonly<Pod>): ObjectKey[] {
    const setKey = controllerKey(pod, REPLICA_SETS);
    const set = setKey === undefined ? undefined : sets.get(setKey);
    const key = set === undefined ? undefined : controllerKey(set, DEPLOYMENTS);
    const deployment = key === undefined ? undefined : deployments.get(key);
    return deployment === undefined || isRolling(deployment) ? [] : [objectKey(namespaceOf(deployment), deployment.metadata.name)];
  }

  function oldPodsRun(owned: readonly Set[], current: Set | undefined): boolean {
    return owned.some((set) => set.metadata.uid !== current?.metadata.uid && ((set.status?.replicas ?? 0) > 0 || pods.by(BY_CONTROLLER as Index<Pod>, set.metadata.uid).some((pod) => !isTerminal(pod))));
  }
}

function selectsEverything({ spec }: Readonly<Deployment>): boolean {
  return spec.selector !== undefined && Object.keys(spec.selector.matchLabels ?? {}).length === 0 && (spec.selector.matchExpressions?.length ?? 0) === 0;
}

function setRevision(draft: Draft, revision: string | undefined): void {
  if (revision !== undefined) draft.metadata.annotations = { ...draft.metadata.annotations, [REVISION]: revision };
}
