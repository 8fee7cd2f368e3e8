/**
 * POST …/pods/{name}/binding (and the older …/bindings): assigns a pod to a node.
 *
 * Source: kubernetes v1.36 pkg/registry/core/pod/storage/storage.go assignPod
 */
import type { Binding, Pod } from "../../api/gen/core.v1.ts";
import { conflict, invalid, success } from "../../api/meta/status-error.ts";
import { notSupported, required } from "../../api/meta/field-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import type { Answer } from "../answer.ts";
import type { Scope } from "../handler.ts";
import { decodeObject } from "../verbs/body.ts";
import { writeOptions } from "../verbs/write.ts";

export async function bindPod(scope: Scope): Promise<Answer> {
  const { info, server } = scope;
  const binding = (await decodeObject(scope)) as unknown as Binding;
  const name = info.name || binding.metadata.name;
  const namespace = info.namespace;
  check(binding);
  const { admit, validate, ...options } = writeOptions(scope, "CREATE");
  await admit(binding as unknown as ApiObject, undefined);
  await validate?.(binding as unknown as ApiObject, undefined);
  const nowMs = server.clock.nowMs();
  await server.registry.storeOf("", "pods")!.update(namespace, name, async (old) => assigned(old as unknown as Readonly<Pod>, binding, nowMs) as unknown as ApiObject, {
    ...options,
    manage: () => undefined, // upstream records no owner for what a binding sets
    subresource: { type: "part", prepare: () => undefined },
    ...(binding.metadata.uid ? { preconditions: { uid: binding.metadata.uid } } : {}),
  });
  return { type: "object", status: 201, object: { ...success() } };
}

function check(binding: Binding): void {
  const { kind, name } = binding.target;
  const errors = [
    ...(kind && kind !== "Node" ? [notSupported("target.kind", kind, ["Node", "<empty>"])] : []),
    ...(name ? [] : [required("target.name", "")]),
  ];
  if (errors.length > 0) throw invalid({ group: "", kind: "Binding" }, binding.metadata.name ?? "", errors);
}

const PODS_BINDING = { group: "", resource: "pods/binding" };

function assigned(pod: Readonly<Pod>, { target, metadata }: Binding, nowMs: number): Pod {
  const { name } = pod.metadata;
  if (pod.metadata.deletionTimestamp) throw conflict(PODS_BINDING, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  if (pod.spec.nodeName) throw conflict(PODS_BINDING, name, `pod ${name} is already assigned to node ${JSON.stringify(pod.spec.nodeName)}`);
  if (pod.spec.schedulingGates?.length) throw conflict(PODS_BINDING, name, `pod ${name} has non-empty .spec.schedulingGates`);
  const next = structuredClone(pod) as Pod;
  next.metadata.resourceVersion = "";
  if (metadata.annotations) next.metadata.annotations = { ...next.metadata.annotations, ...metadata.annotations };
  if (metadata.labels) next.metadata.labels = { ...next.metadata.labels, ...metadata.labels };
  next.spec.nodeName = target.name ?? "";
  const scheduled = { type: "PodScheduled", status: "True" as const, lastProbeTime: null as unknown as string, lastTransitionTime: timestamp(nowMs) };
  const generation = next.metadata.generation === undefined ? {} : { observedGeneration: next.metadata.generation };
  next.status = { ...next.status, conditions: [...(next.status?.conditions ?? []).filter(({ type }) => type !== "PodScheduled"), { ...scheduled, ...generation }] };
  return next;
}
