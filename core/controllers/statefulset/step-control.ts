/**
 * Carries out what plan.ts has decided: pods are made, with their storage, repaired and deleted, and the user is told.
 *
 * Source: kubernetes v1.36 pkg/controller/statefulset/{stateful_set_control,stateful_pod_control}.go
 */
import type { StatefulSet } from "../../api/gen/apps.v1.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { isAlreadyExists, isConflict, isNamespaceTerminating } from "../../api/meta/status-error.ts";
import type { EventRecorder } from "../../client/events.ts";
import { PODS } from "../../client/resources.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf, type NewPod } from "../pod-control.ts";
import { slowStart } from "../slow-start.ts";
import { isParallel, type Step } from "./plan.ts";
import { ordinalOf } from "./pods.ts";
import type { SetClaims } from "./set-claims.ts";

type Set = Readonly<StatefulSet>;
type P = Readonly<Pod>;

export interface StepControl {
  /** Throws what kept one from being done. What was done has been heard of. */
  carryOut(set: Set, steps: readonly Step[], signal: AbortSignal): Promise<void>;
}

export function stepControl({ client, informers, recorder, claims }: Pick<ControllerDeps, "client" | "informers"> & { readonly recorder: EventRecorder; readonly claims: SetClaims }): StepControl {
  const pods = informers.of(PODS);
  const podClient = client.resource(PODS);

  async function carryOut(set: Set, steps: readonly Step[], signal: AbortSignal): Promise<void> {
    const written: P[] = [];
    const removed: P[] = [];
    const act = async (step: Step): Promise<void> => {
      switch (step.do) {
        case "create": {
          const made = await create(set, step.pod, step.ordinal, signal);
          if (made === undefined) return;
          written.push(made);
          await claims.adjustOwners(set, [made], signal);
          return;
        }
        case "provide": return await claims.provide(set, step.pod.metadata.name, ordinalOf(step.pod), signal);
        case "repair":
          written.push(await told(set, "Update", step.pod.metadata.name, claims.provide(set, step.pod.metadata.name, ordinalOf(step.pod), signal).then(() => podClient.update(step.next, { signal })), isConflict));
          return;
        case "delete":
          await told(set, "Delete", step.pod.metadata.name, ifFound(podClient.delete(step.pod, { preconditions: { uid: step.pod.metadata.uid } }, { signal })));
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
  async function create(set: Set, pod: NewPod, ordinal: number, signal: AbortSignal): Promise<P | undefined> {
    const name = pod.metadata.name ?? "";
    if (set.spec.persistentVolumeClaimRetentionPolicy?.whenScaled === "Delete" && claims.haveStaleOwner(set, name, ordinal)) return undefined;
    try {
      await claims.provide(set, name, ordinal, signal);
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

  return { carryOut };
}
