/** The finalizer that keeps a Job's pod until it is counted. Source: kubernetes v1.36 pkg/controller/job/job_controller.go removeTrackingFinalizerPatch */
import type { Pod } from "../../api/gen/core.v1.ts";
import { keyOf } from "../../api/meta/object-meta.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import { PODS } from "../../client/resources.ts";
import type { ControllerDeps } from "../deps.ts";
import { isTracked, TRACKING_FINALIZER } from "./pods.ts";

/** Takes the finalizer off. Throws if it is still there: what is not free must not be counted. */
export type Release = (pod: Readonly<Pod>, signal: AbortSignal) => Promise<void>;

export function podReleaser({ client, informers }: Pick<ControllerDeps, "client" | "informers">): Release {
  return async (pod, signal) => {
    if (!isTracked(pod)) return;
    const patch = { metadata: { uid: pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER] } };
    try {
      const written = await client.resource(PODS).patch(pod, "application/strategic-merge-patch+json", patch, { signal });
      if (isTracked(written)) throw new Error(`pod ${keyOf(pod)} has kept its finalizer`);
      await informers.of(PODS).caughtUp([written], signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
}
