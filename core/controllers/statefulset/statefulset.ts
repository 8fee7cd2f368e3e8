/**
 * Keeps the pods of StatefulSets, each with a name and storage of its own, one after the other unless told otherwise.
 *
 *   StatefulSet, Pod or claim changes → key → revisions of the template → plan.ts: the next steps → status
 *
 * API:    https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
 * Source: kubernetes v1.36 pkg/controller/statefulset
 */
import type { ControllerRevision, StatefulSet } from "../../api/gen/apps.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import { type ApiObject, controllerOf, isDeleting, keyOf, labelsOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNotFound } from "../../api/meta/status-error.ts";
import { CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS } from "../../client/resources.ts";
import { candidatesFor, claim } from "../claim.ts";
import { sameValue } from "../conditions.ts";
import { controllerIs, type Controller, controllerKey, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { HashCollisionError, type History, syncHistory, templateOf, trimHistory } from "../history.ts";
import { isNamespaceTerminating, messageOf, type NewPod } from "../pod-control.ts";
import { nextAvailableInMs } from "../pod-state.ts";
import { slowStart } from "../slow-start.ts";
import { isParallel, planSteps, type Revision, statefulStatus, type Step, type World } from "./plan.ts";
import { claimOwners, claimsFor, hasStaleOwner, isMember, ordinalOf, REVISION_HASH_LABEL, revisionOf } from "./pods.ts";

type Set = Readonly<StatefulSet>;
type P = Readonly<Pod>;

export function statefulSetController({ client, informers, events, clock, complete }: Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "complete">): Controller {
  const sets = informers.of(STATEFUL_SETS);
  const pods = informers.of(PODS);
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const revisions = informers.of(CONTROLLER_REVISIONS);
  const setClient = client.resource(STATEFUL_SETS);
  const podClient = client.resource(PODS);
  const claimClient = client.resource(PERSISTENT_VOLUME_CLAIMS);
  const revisionClient = client.resource(CONTROLLER_REVISIONS);
  const recorder = events.from({ component: "statefulset-controller" });

  return {
    name: "statefulset",
    workers: 5,
    reads: [claims],
    watches: [itself(sets), mapped(pods, ({ object, old }) => [...setsOf(object), ...(old === undefined ? [] : setsOf(old))]), controllerIs(revisions, STATEFUL_SETS)],

    async reconcile(key, { signal }): Promise<Next> {
      const set = sets.get(key);
      if (set === undefined) return;
      const selector = labelSelector(set.spec.selector);
      const owner = { owner: set, owners: setClient, signal };
      const own = await claim<ControllerRevision, StatefulSet>({ ...owner, objects: candidatesFor(revisions, set), client: revisionClient, matches: (object) => selector.matches(labelsOf(object)) });
      const read = (): Promise<P[]> => claim<Pod, StatefulSet>({ ...owner, objects: candidatesFor(pods, set), client: podClient, matches: (pod) => isMember(set, pod) && selector.matches(labelsOf(pod)) });
      const members = await read();
      const history = await historyOf(set, own, signal);
      const update: Revision = { name: history.current.metadata.name, template: templateOf(history.current) };
      const named = own.find(({ metadata }) => metadata.name === set.status?.currentRevision);
      const current: Revision = named === undefined ? update : { name: named.metadata.name, template: templateOf(named) };
      const world: World = { set, current, update, pods: members, nowMs: clock.nowMs() };

      let failure: unknown;
      if (!isDeleting(set)) {
        try {
          await adjustClaims(set, members, signal);
          await carryOut(set, planSteps(world), signal);
        } catch (error) {
          if (signal.aborted) throw error;
          failure = error;
        }
      }
      const after: World = { ...world, pods: await read(), nowMs: clock.nowMs() };
      const status = statefulStatus(after, set.status?.collisionCount ?? 0);
      if (!sameValue(status, set.status ?? {})) await sets.caughtUp([await setClient.updateStatus({ ...set, status }, { signal })], signal);
      const inUse = new Set([current.name, update.name, ...after.pods.map(revisionOf)]);
      const unused = history.old.filter(({ metadata }) => !inUse.has(metadata.name));
      await trimHistory(unused, { limit: set.spec.revisionHistoryLimit ?? 10, inUse: () => false, client: revisionClient, signal });
      if (failure !== undefined && !isNamespaceTerminating(failure)) throw failure;
      const againInMs = nextAvailableInMs(after.pods, set.spec.minReadySeconds ?? 0, after.nowMs);
      return againInMs === undefined ? undefined : { againInMs };
    },
  };

  async function historyOf(set: Set, own: readonly Readonly<ControllerRevision>[], signal: AbortSignal): Promise<History> {
    const collisionCount = set.status?.collisionCount;
    try {
      return await syncHistory({
        owner: set, template: set.spec.template, revisions: own, collisionCount: collisionCount === 0 ? undefined : collisionCount, hashLabel: REVISION_HASH_LABEL,
        client: revisionClient, informer: revisions, complete, signal,
      });
    } catch (error) {
      if (error instanceof HashCollisionError) {
        const status = { replicas: 0, availableReplicas: 0, ...set.status, collisionCount: (collisionCount ?? 0) + 1 };
        await sets.caughtUp([await setClient.updateStatus({ ...set, status }, { signal })], signal);
      }
      throw error;
    }
  }

  async function carryOut(set: Set, steps: readonly Step[], signal: AbortSignal): Promise<void> {
    const written: P[] = [];
    const removed: P[] = [];
    const act = async (step: Step): Promise<void> => {
      switch (step.do) {
        case "create": {
          const made = await createPod(set, step.pod, step.ordinal, signal);
          if (made !== undefined) written.push(made);
          return;
        }
        case "provide": return await provideClaims(set, step.pod.metadata.name, ordinalOf(step.pod), signal);
        case "repair":
          await provideClaims(set, step.pod.metadata.name, ordinalOf(step.pod), signal);
          written.push(await told(set, "Update", step.pod.metadata.name, podClient.update(step.next, { signal })));
          return;
        case "delete":
          await told(set, "Delete", step.pod.metadata.name, podClient.delete(step.pod, { preconditions: { uid: step.pod.metadata.uid } }, { signal }).catch(unlessGone));
          removed.push(step.pod);
      }
    };
    try {
      if (isParallel(set)) await slowStart(steps.length, async (i) => { const step = steps[i]; if (step !== undefined) await act(step); });
      else for (const step of steps) await act(step);
    } finally {
      await Promise.all([pods.caughtUp(written, signal), pods.sawDeleted(removed, signal)]);
    }
  }

  /** Undefined: not yet, for its storage still belongs to its predecessor. */
  async function createPod(set: Set, pod: NewPod, ordinal: number, signal: AbortSignal): Promise<P | undefined> {
    const name = pod.metadata.name ?? "";
    const predecessor = { apiVersion: "v1", kind: "Pod", metadata: { name, uid: "" } } as P;
    const held = claimsFor(set, ordinal).map(({ metadata }) => claims.get(objectKey(namespaceOf(set), metadata.name ?? "")));
    if (set.spec.persistentVolumeClaimRetentionPolicy?.whenScaled === "Delete" && held.some((one) => one !== undefined && hasStaleOwner(one, predecessor))) return undefined;
    try {
      await provideClaims(set, name, ordinal, signal);
    } catch (error) {
      if (!signal.aborted) recorder.event(set, "Warning", "FailedCreate", `Create Pod ${name} in StatefulSet ${set.metadata.name} failed error: ${messageOf(error)}`);
      throw error;
    }
    return await told(set, "Create", name, podClient.create(pod, { signal }), isAlreadyExists);
  }

  async function told<R>(set: Set, verb: "Create" | "Update" | "Delete", pod: string, work: Promise<R>, untold: (error: unknown) => boolean = () => false): Promise<R> {
    const what = `${verb} Pod ${pod} in StatefulSet ${set.metadata.name}`;
    try {
      const result = await work;
      recorder.event(set, "Normal", `Successful${verb}`, `${what} successful`);
      return result;
    } catch (error) {
      if (!untold(error) && !isNamespaceTerminating(error)) recorder.event(set, "Warning", `Failed${verb}`, `${what} failed error: ${messageOf(error)}`);
      throw error;
    }
  }

  async function provideClaims(set: Set, pod: string, ordinal: number, signal: AbortSignal): Promise<void> {
    for (const draft of claimsFor(set, ordinal)) {
      const name = draft.metadata.name ?? "";
      const held = claims.get(objectKey(namespaceOf(set), name));
      if (held !== undefined) {
        if (isDeleting(held)) throw new Error(`pvc ${name} is being deleted`);
        continue;
      }
      try {
        await claims.caughtUp([await claimClient.create(draft, { signal })], signal);
        recorder.event(set, "Normal", "SuccessfulCreate", `Create Claim ${name} Pod ${pod} in StatefulSet ${set.metadata.name} success`);
      } catch (cause) {
        if (isAlreadyExists(cause)) continue;
        if (!isNamespaceTerminating(cause)) recorder.event(set, "Warning", "FailedCreate", `Create Claim ${name} for Pod ${pod} in StatefulSet ${set.metadata.name} failed error: ${messageOf(cause)}`);
        throw new Error(`failed to create PVC ${name}: ${messageOf(cause)}`, { cause });
      }
    }
  }

  /** Owner references that make claims go with their pod or the set, where the retention policy says so. */
  async function adjustClaims(set: Set, members: readonly P[], signal: AbortSignal): Promise<void> {
    for (const pod of members) {
      for (const { metadata } of claimsFor(set, ordinalOf(pod))) {
        const held = claims.get(objectKey(namespaceOf(set), metadata.name ?? ""));
        const change = held === undefined ? undefined : claimOwners(held, set, pod);
        if (held === undefined || change === undefined) continue;
        if (change.conflict) recorder.event(set, "Warning", "ConflictingController", `PersistentVolumeClaim ${held.metadata.name} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim`);
        await claims.caughtUp([await claimClient.update({ ...held, metadata: { ...held.metadata, ownerReferences: [...change.owners] } }, { signal })], signal);
      }
    }
  }

  function setsOf(pod: P): ObjectKey[] {
    if (controllerOf(pod) !== undefined) {
      const key = controllerKey(pod, STATEFUL_SETS);
      return key === undefined ? [] : [key];
    }
    if (isDeleting(pod)) return [];
    return [...sets.inNamespace(namespaceOf(pod))].filter((set) => isMember(set, pod) && labelSelector(set.spec.selector).matches(labelsOf(pod))).map((set: ApiObject) => keyOf(set));
  }
}

function unlessGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
  return undefined;
}
