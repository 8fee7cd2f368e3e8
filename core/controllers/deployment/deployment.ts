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
import { annotationsOf, controllerOf, isDeleting, keyOf, labelsOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import type { Index } from "../../client/informer.ts";
import { DEPLOYMENTS, PODS, REPLICA_SETS } from "../../client/resources.ts";
import { BY_CONTROLLER, candidatesFor, claim } from "../claim.ts";
import { sameValue } from "../conditions.ts";
import { type Controller, controllerKey, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { bySelector, selecting } from "../found-by-label.ts";
import { isTerminal } from "../pod-state.ts";
import type { Draft, Set } from "./draft.ts";
import { isActiveSet, isRolling, isScalingEvent, planRolling, planScale, replicasOf, splitSets } from "./plan.ts";
import { setWriter } from "./replica-sets.ts";
import { REVISION, ROLLBACK_TO } from "./revision.ts";
import { rollback } from "./rollback.ts";
import { countsStatus, deadlineInMs, isComplete, pausedConditions, rolloutStatus } from "./status.ts";

const DEPLOYMENTS_BY_SELECTOR = bySelector<Deployment>({ selectorOf: ({ spec }) => labelSelector(spec.selector) });

export function deploymentController({ client, informers, events, clock, complete }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "complete">): Controller {
  const deployments = informers.of(DEPLOYMENTS);
  const sets = informers.of(REPLICA_SETS);
  const pods = informers.of(PODS);
  const deploymentClient = client.resource(DEPLOYMENTS);
  const recorder = events.from({ component: "deployment-controller" });
  const { refresh, create, resizeAll, cleanUp } = setWriter({ client, informers, clock, recorder });

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
        owner: stored, owners: deploymentClient, objects: candidatesFor(sets, stored), client: client.resource(REPLICA_SETS), matches: (set) => selector.matches(labelsOf(set)), signal,
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
    current = await refresh(draft, current, old, signal);
    const isToGoBack = annotationsOf(draft)[ROLLBACK_TO] !== undefined;
    if (!draft.spec.paused && isToGoBack && (await rollback({ client, informers, recorder }, draft, { current, old }, signal))) return draft.status;
    const all = current === undefined ? old : [...old, current];
    if (draft.spec.paused || isScalingEvent(draft, all)) {
      const { resize, touch } = planScale(draft, current, old);
      const resized = await resizeAll(draft, resize, touch, signal);
      if (draft.spec.paused && !isToGoBack) await cleanUp(draft, old, signal);
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
    if (isDeleting(set) || Object.keys(labelsOf(set)).length === 0) return [];
    return selecting(deployments, DEPLOYMENTS_BY_SELECTOR, set).filter((deployment) => !DEPLOYMENTS_BY_SELECTOR.selectorOf(deployment).empty).map(keyOf);
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
