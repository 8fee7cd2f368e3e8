/**
 * Giving a pod its node: POST …/pods/<name>/binding, what the scheduler does.
 *
 * Source: kubernetes v1.36 pkg/registry/core/pod/storage/storage.go BindingREST, pkg/apis/core/validation/validation.go ValidatePodBinding
 */
import { type FieldError, notSupported, required } from "../../../api/meta/field-error.ts";
import type { Binding, Pod } from "../../../api/gen/core.v1.ts";
import { goQuote } from "../../../api/meta/go-quote.ts";
import { setPodCondition } from "./conditions.ts";

export function* validateBinding({ target }: Readonly<Binding>): Iterable<FieldError> {
  if (target?.kind && target.kind !== "Node") yield notSupported("target.kind", target.kind, ["Node", "<empty>"]);
  if (!target?.name) yield required("target.name");
}

/**
 * The pod on its node. Annotations and labels of the binding are added to the pod's.
 * Throws an Error with upstream's text if it cannot be bound any more: the caller makes a conflict of `pods/binding` from it.
 */
export function bindPod(pod: Readonly<Pod>, { target, metadata }: Readonly<Binding>, nowMs: number): Pod {
  const { name } = pod.metadata;
  if (pod.metadata.deletionTimestamp) throw new Error(`pod ${name} is being deleted, cannot be assigned to a host`);
  if (pod.spec.nodeName) throw new Error(`pod ${name} is already assigned to node ${goQuote(pod.spec.nodeName)}`);
  if ((pod.spec.schedulingGates ?? []).length > 0) throw new Error(`pod ${name} has non-empty .spec.schedulingGates`);
  const { nominatedNodeName: _, ...status } = pod.status ?? {};
  setPodCondition(status, { type: "PodScheduled", status: "True" }, nowMs);
  const { annotations, labels } = pod.metadata;
  return {
    ...pod,
    metadata: { ...pod.metadata, ...(metadata?.annotations && { annotations: { ...annotations, ...metadata.annotations } }), ...(metadata?.labels && { labels: { ...labels, ...metadata.labels } }) },
    spec: { ...pod.spec, nodeName: target.name ?? "" },
    status,
  };
}
