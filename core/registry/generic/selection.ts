/** Which objects of a resource a list, watch or deletecollection is about. */
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { Resource } from "./resource.ts";

export interface Selection {
  /** "" for all namespaces, or for a cluster-scoped resource. */
  readonly namespace: string;
  /** From fieldSelector metadata.name=…: at most one object. */
  readonly name?: string | undefined;
  /** From fieldSelector spec.nodeName=…, which `matches` looks at too. */
  readonly nodeName?: string | undefined;
  /** A label that whatever matches has. Says nothing that `matches` does not say; it is there to find it by. */
  readonly label?: { readonly key: string; readonly value: string } | undefined;
  /** Of those found by it, or by the node, all match. */
  readonly isFound?: boolean | undefined;
  /** Undefined: everything matches. */
  readonly matches?: ((object: Readonly<ApiObject>) => boolean) | undefined;
}

/** The fields of `object` a field selector may speak of. */
export function selectableFields(definition: Resource | undefined, namespaced: boolean, object: Readonly<ApiObject>): Record<string, string> {
  return {
    "metadata.name": object.metadata.name,
    ...(namespaced ? { "metadata.namespace": object.metadata.namespace ?? "" } : {}),
    ...definition?.fields?.(object),
  };
}
