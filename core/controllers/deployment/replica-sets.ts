/**
 * A Deployment's ReplicaSets as they are written: made for a new template, brought up to date, given other sizes, deleted when nobody will roll back to them.
 * What there is to tell of it stands in the draft and in events.
 *
 * Source: kubernetes v1.36 pkg/controller/deployment/{sync,recreate,rolling}.go
 */
import type { ReplicaSet } from "../../api/gen/apps.v1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { annotationsOf, controllerOf, controllerRef, type NewObject, namespaceOf } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNamespaceTerminating } from "../../api/meta/status-error.ts";
import { REPLICA_SETS } from "../../client/resources.ts";
import { sameValue, withCondition } from "../conditions.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf } from "../pod-control.ts";
import { templateHash } from "../template-hash.ts";
import { type Draft, type Recorder, type Set, setRevision } from "./draft.ts";
import { currentSize, fenceposts, HASH_LABEL, planCleanup, replicasOf, type Resize, sameTemplate } from "./plan.ts";
import { currentAnnotations, maxRevision, REVISION, scaleAnnotations } from "./revision.ts";
import { condition, hasProgressDeadline } from "./status.ts";

const NAME_LENGTH_MAX = 253;

export interface SetWriter {
  /** Hands revision, annotations and minReadySeconds down to the set of the present template. */
  refresh(draft: Draft, current: Set | undefined, old: readonly Set[], signal: AbortSignal): Promise<Set | undefined>;
  /** The set of the present template. Throws when its name is another's: the next try takes another hash. */
  create(draft: Draft, old: readonly Set[], signal: AbortSignal): Promise<Set>;
  /** The sets as they are after. With `touch`, also those whose size stays but whose scale annotations are old. */
  resizeAll(draft: Draft, resize: readonly Resize[], touch: boolean, signal: AbortSignal): Promise<Map<string, Set>>;
  /** Old sets beyond the history limit. */
  cleanUp(draft: Draft, old: readonly Set[], signal: AbortSignal): Promise<void>;
}

export function setWriter({ client, informers, clock, recorder }: Pick<ControllerDeps, "client" | "informers" | "clock"> & { readonly recorder: Recorder }): SetWriter {
  const sets = informers.of(REPLICA_SETS);
  const setClient = client.resource(REPLICA_SETS);

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

  async function create(draft: Draft, old: readonly Set[], signal: AbortSignal): Promise<Set> {
    const set = newSet(draft, old);
    const { metadata: { name }, spec: { replicas = 0 } } = set;
    let created: Set;
    try {
      created = await setClient.create(set, { signal });
    } catch (error) {
      if (isAlreadyExists(error)) return await resolveCollision(draft, name, error, signal);
      if (!isNamespaceTerminating(error) && !signal.aborted) {
        const message = `Failed to create new replica set "${name}": ${messageOf(error)}`;
        if (hasProgressDeadline(draft)) draft.status.conditions = withCondition(draft.status.conditions, condition(clock.nowMs(), "Progressing", "False", "ReplicaSetCreateError", message));
        recorder.event(draft, "Warning", "ReplicaSetCreateError", message);
      }
      throw error;
    }
    if (replicas > 0) recorder.event(draft, "Normal", "ScalingReplicaSet", `Scaled up replica set ${name} from 0 to ${replicas}`);
    setRevision(draft, set.metadata.annotations?.[REVISION]);
    if (hasProgressDeadline(draft)) {
      draft.status.conditions = withCondition(draft.status.conditions, condition(clock.nowMs(), "Progressing", "True", "NewReplicaSetCreated", `Created new replica set "${name}"`));
    }
    await sets.caughtUp([created], signal);
    return created;
  }

  /** The name is taken: by our own earlier try, or by another template of the same hash, which takes a new hash. */
  async function resolveCollision(draft: Draft, name: string, error: unknown, signal: AbortSignal): Promise<Set> {
    const existing = await setClient.get({ metadata: { name, namespace: namespaceOf(draft) } }, { signal });
    if (controllerOf(existing)?.uid === draft.metadata.uid && sameTemplate(existing.spec.template, draft.spec.template)) {
      await sets.caughtUp([existing], signal);
      return existing;
    }
    draft.status.collisionCount = (draft.status.collisionCount ?? 0) + 1;
    throw error;
  }

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
      await ifFound(setClient.delete(set, {}, { signal }));
    }
  }

  return { refresh, create, resizeAll, cleanUp };
}

function newSet(draft: Draft, old: readonly Set[]): NewObject<ReplicaSet> & { metadata: { name: string } } {
  const hash = templateHash(draft.spec.template, draft.status.collisionCount);
  const labels = { ...draft.spec.template.metadata?.labels, [HASH_LABEL]: hash };
  return {
    apiVersion: "apps/v1", kind: "ReplicaSet",
    metadata: {
      name: `${draft.metadata.name.slice(0, NAME_LENGTH_MAX - 1 - hash.length)}-${hash}`, namespace: namespaceOf(draft), labels, ownerReferences: [controllerRef(draft)],
      annotations: { ...currentAnnotations(draft, {}, maxRevision(old) + 1n), ...scaleAnnotations(replicasOf(draft), replicasOf(draft) + fenceposts(draft).maxSurge) },
    },
    spec: {
      replicas: currentSize(draft, old, undefined), minReadySeconds: draft.spec.minReadySeconds ?? 0,
      selector: { ...draft.spec.selector, matchLabels: { ...draft.spec.selector?.matchLabels, [HASH_LABEL]: hash } },
      template: { ...draft.spec.template, metadata: { ...draft.spec.template.metadata, labels } },
    },
  };
}
