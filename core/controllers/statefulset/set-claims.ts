/**
 * The claims of a StatefulSet's pods: made before a pod is, and given owners so that they go with it or with the set, where the retention policy says so.
 *
 * Source: kubernetes v1.36 pkg/controller/statefulset/stateful_pod_control.go
 */
import type { StatefulSet } from "../../api/gen/apps.v1.ts";
import type { PersistentVolumeClaim, Pod } from "../../api/gen/core.v1.ts";
import { isDeleting, type NewObject, namespaceOf, objectKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNamespaceTerminating } from "../../api/meta/status-error.ts";
import { PERSISTENT_VOLUME_CLAIMS } from "../../client/resources.ts";
import type { EventRecorder } from "../../client/events.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf } from "../pod-control.ts";
import { claimOwners, claimsFor, hasForeignController, hasStaleOwner, isWanted, ordinalOf } from "./pods.ts";

type Set = Readonly<StatefulSet>;
type P = Readonly<Pod>;

export interface SetClaims {
  /** What is missing is made. Throws what kept some from being made. */
  provide(set: Set, pod: string, ordinal: number, signal: AbortSignal): Promise<void>;
  /** Some still belong to a pod of the same name that went before. */
  haveStaleOwner(set: Set, pod: string, ordinal: number): boolean;
  /** Returns whose claims were changed. */
  adjustOwners(set: Set, members: readonly P[], signal: AbortSignal): Promise<readonly P[]>;
}

export function setClaims({ client, informers, recorder }: Pick<ControllerDeps, "client" | "informers"> & { readonly recorder: EventRecorder }): SetClaims {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const claimClient = client.resource(PERSISTENT_VOLUME_CLAIMS);
  const held = (set: Set, name: string | undefined) => claims.get(objectKey(namespaceOf(set), name ?? ""));

  async function provide(set: Set, pod: string, ordinal: number, signal: AbortSignal): Promise<void> {
    const problems: Error[] = [];
    for (const draft of claimsFor(set, ordinal)) {
      const problem = await provideOne(set, pod, draft, signal);
      if (problem !== undefined) problems.push(problem); // the others are made all the same
    }
    const [first, ...more] = problems;
    if (first !== undefined) throw more.length === 0 ? first : new Error(`[${problems.map(messageOf).join(", ")}]`, { cause: first });
  }

  async function provideOne(set: Set, pod: string, draft: NewObject<PersistentVolumeClaim>, signal: AbortSignal): Promise<Error | undefined> {
    const name = draft.metadata.name ?? "";
    const found = held(set, name);
    if (found !== undefined) return isDeleting(found) ? new Error(`pvc ${name} is being deleted`) : undefined;
    try {
      await claims.caughtUp([await claimClient.create(draft, { signal })], signal);
      recorder.event(set, "Normal", "SuccessfulCreate", `Create Claim ${name} Pod ${pod} in StatefulSet ${set.metadata.name} success`);
      return undefined;
    } catch (cause) {
      if (signal.aborted) throw cause;
      if (isAlreadyExists(cause)) return undefined;
      if (!isNamespaceTerminating(cause)) recorder.event(set, "Warning", "FailedCreate", `Create Claim ${name} for Pod ${pod} in StatefulSet ${set.metadata.name} failed error: ${messageOf(cause)}`);
      return new Error(`failed to create PVC ${name}: ${messageOf(cause)}`, { cause });
    }
  }

  async function adjustOwners(set: Set, members: readonly P[], signal: AbortSignal): Promise<readonly P[]> {
    const changed = new Set<P>();
    for (const pod of members) {
      for (const { metadata } of claimsFor(set, ordinalOf(pod))) {
        const found = held(set, metadata.name);
        if (found === undefined) continue;
        const owners = claimOwners(found, set, pod);
        const isStarting = (pod.status?.phase ?? "Pending") === "Pending"; // while it waits for its claims this is worth repeating
        if ((owners !== undefined || isStarting) && hasForeignController(found, set, pod)) {
          recorder.event(set, "Warning", "ConflictingController", `PersistentVolumeClaim ${found.metadata.name} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim`); // sic
        }
        if (owners === undefined) continue;
        try {
          await claims.caughtUp([await claimClient.update({ ...found, metadata: { ...found.metadata, ownerReferences: [...owners] } }, { signal })], signal);
        } catch (cause) {
          if (signal.aborted) throw cause;
          const error = new Error(`could not update claim ${found.metadata.name} for delete policy ownerRefs: ${messageOf(cause)}`, { cause });
          if (isWanted(set, pod)) recorder.event(set, "Warning", "FailedUpdate", `Update Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name} failed error: ${messageOf(error)}`);
          throw error;
        }
        changed.add(pod);
      }
    }
    return [...changed];
  }

  return {
    provide,
    adjustOwners,
    haveStaleOwner(set, pod, ordinal) {
      const predecessor = { apiVersion: "v1", kind: "Pod", metadata: { name: pod, uid: "" } } as P;
      return claimsFor(set, ordinal).map(({ metadata }) => held(set, metadata.name)).some((one) => one !== undefined && hasStaleOwner(one, predecessor));
    },
  };
}
