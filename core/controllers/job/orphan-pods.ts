/** Pods that no Job will count any more do not wait for that. Source: kubernetes v1.36 pkg/controller/job/job_controller.go syncOrphanPod */
import { controllerOf, keyOf } from "../../api/meta/object-meta.ts";
import { JOBS, PODS } from "../../client/resources.ts";
import type { BackoffOptions } from "../../lifecycle/backoff.ts";
import { type Controller, controllerKey, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import type { PodReleaser } from "./finalizer.ts";
import { isTracked } from "./pods.ts";
import { finishedCondition, isExternal } from "./view.ts";

/** Source: job_controller.go DefaultJobApiBackOff, MaxJobApiBackOff */
export const JOB_RETRY: BackoffOptions = { minMs: 1000, maxMs: 60_000 };

export function orphanPods({ informers, releaser }: Pick<ControllerDeps, "informers"> & { readonly releaser: PodReleaser }): Controller {
  const jobs = informers.of(JOBS);
  const pods = informers.of(PODS);
  return {
    name: "job_orphan_pod",
    workers: 1,
    retry: JOB_RETRY,
    reads: [jobs],
    watches: [
      mapped(pods, ({ object, deleted }) => (!deleted && isTracked(object) ? [keyOf(object)] : [])),
      mapped(jobs, ({ object, deleted }) => (deleted || finishedCondition(object) !== undefined ? pods.ownedBy(object.metadata.uid).filter(isTracked).map(keyOf) : [])),
    ],
    async reconcile(key, { signal }) {
      const pod = pods.get(key);
      if (pod === undefined || !isTracked(pod)) return;
      const owner = controllerOf(pod);
      const jobKey = controllerKey(pod, JOBS);
      if (owner !== undefined && jobKey === undefined) return; // another kind counts it
      const job = jobKey === undefined ? undefined : jobs.get(jobKey);
      const counted = job !== undefined && job.metadata.uid === owner?.uid && (isExternal(job.spec) || finishedCondition(job) === undefined);
      if (!counted) await releaser.release(pod, signal);
    },
  };
}
