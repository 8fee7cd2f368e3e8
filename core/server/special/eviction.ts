/**
 * POST …/pods/{name}/eviction: deletes a pod if its disruption budgets allow it.
 *
 * Source: kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import type { Eviction, PodDisruptionBudget } from "../../api/gen/policy.v1.ts";
import { labelSelector } from "../../api/meta/label-selector.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest, internalError, success, tooManyRequests } from "../../api/meta/status-error.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import type { DeleteOptions } from "../../registry/generic/deletion.ts";
import type { Answer } from "../answer.ts";
import type { Scope } from "../handler.ts";
import { decodeObject } from "../verbs/body.ts";
import { writeOptions } from "../verbs/write.ts";

/** Evictions a budget remembers that have not been seen yet. */
const DISRUPTED_PODS_MAX = 2000;

export async function evictPod(scope: Scope): Promise<Answer> {
  const { info, server, signal } = scope;
  const eviction = (await decodeObject(scope)) as unknown as Eviction;
  if (eviction.metadata.name && eviction.metadata.name !== info.name)
    throw badRequest("name in URL does not match name in Eviction object");
  const { admit, validate, ...options } = writeOptions(scope, "CREATE");
  await admit(eviction as unknown as ApiObject, undefined);
  await validate?.(eviction as unknown as ApiObject, undefined);

  const pods = server.registry.storeOf("", "pods")!;
  const pod = (await pods.get(info.namespace, info.name, signal)).object as unknown as Readonly<Pod>;
  const deleteOptions = (eviction.deleteOptions ?? {}) as DeleteOptions;
  if (!ignoresBudget(pod)) await spend(scope, pod);
  await pods.delete(info.namespace, info.name, { ...deleteOptions, preconditions: { ...deleteOptions.preconditions, uid: deleteOptions.preconditions?.uid ?? pod.metadata.uid } }, options);
  return { type: "object", status: 201, object: { ...success() } };
}

/** A pod that has ended, has not started or is on its way out protects nothing. */
function ignoresBudget({ status, metadata }: Readonly<Pod>): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed" || status?.phase === "Pending" || metadata.deletionTimestamp !== undefined;
}

/** Takes one disruption from the pod's budget. Throws 429 when there is none. */
async function spend(scope: Scope, pod: Readonly<Pod>): Promise<void> {
  const { server, info } = scope;
  const store = server.registry.storeOf("policy", "poddisruptionbudgets")!;
  const budgets = [...store.select({ namespace: info.namespace })]
    .map(({ object }) => object as unknown as Readonly<PodDisruptionBudget>)
    .filter(({ spec }) => labelSelector(spec.selector).matches(pod.metadata.labels ?? {}));
  if (budgets.length === 0) return;
  if (budgets.length > 1) throw internalError(new Error("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."));
  const { name } = budgets[0]!.metadata;
  const unhealthy = pod.status?.conditions?.find(({ type }) => type === "Ready")?.status !== "True";
  const { admit: _admit, validate: _validate, ...options } = writeOptions(scope, "UPDATE");
  await store.update(info.namespace, name, async (old) => {
    const next = structuredClone(old) as unknown as PodDisruptionBudget;
    next.metadata.resourceVersion = "";
    const status = (next.status ??= { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 });
    if (unhealthy && (next.spec.unhealthyPodEvictionPolicy === "AlwaysAllow" || (status.currentHealthy >= status.desiredHealthy && status.desiredHealthy > 0))) return next as unknown as ApiObject;
    if ((status.observedGeneration ?? 0) < (next.metadata.generation ?? 0))
      throw tooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10, [{ reason: "DisruptionBudget", message: `The disruption budget ${name} is still being processed by the server.` }]);
    if (status.disruptionsAllowed <= 0 || Object.keys(status.disruptedPods ?? {}).length > DISRUPTED_PODS_MAX)
      throw tooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0, [
        { reason: "DisruptionBudget", message: `The disruption budget ${name} needs ${status.desiredHealthy} healthy pods and has ${status.currentHealthy} currently` },
      ]);
    status.disruptionsAllowed--;
    status.disruptedPods = { ...status.disruptedPods, [pod.metadata.name]: timestamp(server.clock.nowMs()) };
    return next as unknown as ApiObject;
  }, { ...options, manage: () => undefined, subresource: { type: "part", prepare: () => undefined, generation: false } });
}
