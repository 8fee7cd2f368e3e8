/**
 * One object by name: from the informer's copy, else from the server. For checks that may be asked before the copy is complete, or about
 * an object that was made a moment ago.
 */
import { goQuote } from "../api/meta/go-quote.ts";
import { ifFound } from "../api/meta/if-found.ts";
import { pathSegmentName } from "../api/meta/names.ts";
import { type ApiObject, objectKey } from "../api/meta/object-meta.ts";
import { statusError } from "../api/meta/status-error.ts";
import type { ResourceClient } from "./client.ts";
import type { Informer } from "./informer.ts";

export interface Lookup<T extends ApiObject> {
  /** Undefined when the server does not know it either. Throws for a name that cannot stand in a path, in client-go's words. `namespace` is "" for cluster scope. */
  find(namespace: string, name: string, signal: AbortSignal): Promise<Readonly<T> | undefined>;
}

/** `live: false` trusts a complete copy when it says that there is no such object. */
export function lookup<T extends ApiObject>(informer: Informer<T>, resource: ResourceClient<T>, { live = true }: { readonly live?: boolean } = {}): Lookup<T> {
  return {
    async find(namespace, name, signal) {
      const found = informer.get(objectKey(namespace, name));
      if (found || (!live && informer.synced)) return found;
      const wrong = pathSegmentName(name);
      if (wrong.length > 0) throw statusError({ code: 500, reason: "", message: `invalid resource name ${goQuote(name)}: [${wrong.join(" ")}]` });
      return await ifFound(resource.get({ metadata: namespace === "" ? { name } : { name, namespace } }, { signal }));
    },
  };
}

/** All objects, or those of a namespace: from the copy once it is complete, before that from the server. */
export async function listAll<T extends ApiObject>(informer: Informer<T>, resource: ResourceClient<T>, { namespace, signal }: { readonly namespace?: string; readonly signal: AbortSignal }): Promise<readonly Readonly<T>[]> {
  if (informer.synced) return [...(namespace === undefined ? informer.list() : informer.inNamespace(namespace))];
  return (await resource.list({ namespace }, { signal })).items;
}
