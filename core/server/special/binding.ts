/**
 * POST …/pods/{name}/binding (and the older …/bindings): assigns a pod to a node.
 *
 * Source: kubernetes v1.36 pkg/registry/core/pod/storage/storage.go assignPod
 */
import type { Binding, Pod } from "../../api/gen/core.v1.ts";
import { errorText } from "../../api/meta/error-text.ts";
import { formatFieldError } from "../../api/meta/field-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest, conflict, statusError, success } from "../../api/meta/status-error.ts";
import { inOrder } from "../../registry/generic/object-meta.ts";
import { bindPod as bound, validateBinding } from "../../registry/core/pod/binding.ts";
import { checkAcceptable } from "../acceptable.ts";
import type { Answer } from "../answer.ts";
import type { Scope } from "../scope.ts";
import { decodeObject } from "../verbs/body.ts";
import { placeInNamespace } from "../verbs/incoming.ts";
import { recordOwner } from "../verbs/managed-fields.ts";
import { writeQueryOf } from "../verbs/write-options.ts";
import { writeOptions } from "../verbs/write.ts";

const PODS_BINDING = { group: "", resource: "pods/binding" };

export async function bindPod(scope: Scope): Promise<Answer> {
  checkAcceptable(scope, false);
  const { info, server } = scope;
  const query = writeQueryOf(scope, "CreateOptions");
  const binding = (await decodeObject(scope)) as unknown as Binding;
  placeInNamespace(scope, binding as unknown as ApiObject);
  if (!info.name) binding.metadata.uid = ""; // …/bindings are objects to be made, which have none yet
  const name = info.name || binding.metadata.name;
  if (name !== binding.metadata.name) throw badRequest("name in URL does not match name in Binding object");
  const errors = [...new Set([...validateBinding(binding)].map(formatFieldError))];
  if (errors.length > 0) throw statusError({ code: 500, reason: "", message: errors.length === 1 ? errors[0]! : `[${errors.join(", ")}]` });
  if (!name) throw badRequest("Name parameter required.");
  await recordOwner(scope, binding as unknown as ApiObject, undefined, server.clock.nowMs());
  binding.metadata = inOrder(binding as unknown as ApiObject).metadata;
  const { admit, validate, ...options } = writeOptions(scope, "CREATE", query);
  await admit(binding as unknown as ApiObject, undefined);
  await validate?.(binding as unknown as ApiObject, undefined);
  await server.registry.storeOf("", "pods")!.update(info.namespace, name, async (old) => assigned(old as unknown as Readonly<Pod>, binding, server.clock.nowMs()) as unknown as ApiObject, {
    ...options,
    subresource: { type: "part", prepare: () => undefined, generation: false },
    preconditions: { uid: binding.metadata.uid || undefined, resourceVersion: binding.metadata.resourceVersion || undefined },
  });
  return { type: "object", status: 201, object: { ...success(), code: 201 } };
}

function assigned(pod: Readonly<Pod>, binding: Binding, nowMs: number): Pod {
  try {
    const next = bound(pod, binding, nowMs);
    next.metadata.resourceVersion = "";
    return next;
  } catch (error) {
    throw conflict(PODS_BINDING, pod.metadata.name, errorText(error));
  }
}
