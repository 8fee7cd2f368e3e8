/** The finalizer that keeps a Job's pod until it is counted. Source: kubernetes v1.36 pkg/controller/job/{job_controller,tracking_utils}.go removeTrackingFinalizerPatch, uidTrackingExpectations */
import type { Pod } from "../../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import { PODS } from "../../client/resources.ts";
import type { ControllerDeps } from "../deps.ts";
import { isTracked, TRACKING_FINALIZER } from "./pods.ts";

type P = Readonly<Pod>;

export interface PodReleaser {
  /** Takes the finalizer off. Throws if it is still there: what is not free must not be counted. */
  release(pod: P, signal: AbortSignal): Promise<void>;
  /** The pods without what was taken off: our copy of one that is gone with its finalizer may show it for a while yet, and it would be counted again. */
  current(pods: readonly P[]): readonly P[];
}

export function podReleaser({ client, informers }: Pick<ControllerDeps, "client" | "informers">): PodReleaser {
  const pods = informers.of(PODS);
  const released = new Map<string, ObjectKey>(); // by uid: those that our copy shows with their finalizer

  function isShown(uid: string, key: ObjectKey): boolean {
    const held = pods.get(key);
    return held?.metadata.uid === uid && isTracked(held);
  }

  async function release(pod: P, signal: AbortSignal): Promise<void> {
    if (!isTracked(pod)) return;
    const patch = { metadata: { uid: pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER] } };
    try {
      const written = await client.resource(PODS).patch(pod, "application/strategic-merge-patch+json", patch, { signal });
      if (isTracked(written)) throw new Error(`pod ${keyOf(pod)} has kept its finalizer`);
      await pods.caughtUp([written], signal); // the answer of one that is gone with it has an old version
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    released.set(pod.metadata.uid, keyOf(pod));
    for (const [uid, key] of released) if (!isShown(uid, key)) released.delete(uid);
  }

  return { release, current: (all) => all.map((pod) => (released.has(pod.metadata.uid) && isTracked(pod) ? withoutFinalizer(pod) : pod)) };
}

function withoutFinalizer(pod: P): P {
  return { ...pod, metadata: { ...pod.metadata, finalizers: pod.metadata.finalizers?.filter((name) => name !== TRACKING_FINALIZER) } };
}
