/**
 * A Transport whose objects come without their managedFields: two thirds of the memory of a pod, which nobody here reads. Writing such an object back leaves them as they are.
 *
 * Leases keep theirs: the node looks whether its own has any, and takes them away (node/kubelet/node/lease.ts), without which each renewal costs the server a tenth more.
 */
import type { ApiObject } from "../../core/api/meta/object-meta.ts";
import type { Transport } from "../../core/client/transport.ts";

export function slim(transport: Transport): Transport {
  return {
    call: async (request) => slimAnswer(await transport.call(request)),
    async *watch(request) {
      for await (const { type, object } of transport.watch(request)) yield { type, object: slimObject(object) };
    },
  };
}

function slimAnswer(answer: unknown): unknown {
  if (typeof answer !== "object" || answer === null) return answer;
  const { items, metadata } = answer as { readonly items?: readonly ApiObject[]; readonly metadata?: ApiObject["metadata"] };
  if (Array.isArray(items)) return Object.freeze({ ...answer, items: (items as ApiObject[]).map(slimObject) });
  return metadata?.managedFields ? slimObject(answer as ApiObject) : answer;
}

function slimObject(object: Readonly<ApiObject>): Readonly<ApiObject> {
  if (!object.metadata?.managedFields || object.kind === "Lease") return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return Object.freeze({ ...object, metadata: Object.freeze(metadata) });
}
