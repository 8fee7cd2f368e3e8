/** What of an object is worth keeping on flash, and how soon. Pure. */
import type { Node, Pod } from "../../api/gen/core.v1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";

/** Not what a node needs to run its pods: heartbeats, reports, and requests that are answered once. */
const NOT_KEPT: ReadonlySet<string> = new Set(["leases", "events", "certificatesigningrequests"]);

/** The resource a path names: "pods" in /api/v1/namespaces/default/pods/web. Undefined: none that is kept. */
export function keptResource(path: string): string | undefined {
  const parts = path.split("/").filter((part) => part !== "");
  const rest = parts[0] === "api" ? parts.slice(2) : parts[0] === "apis" ? parts.slice(3) : [];
  const resource = rest[0] === "namespaces" && rest.length > 2 ? rest[2] : rest[0];
  return resource === undefined || NOT_KEPT.has(resource) ? undefined : resource;
}

/** What is remembered of an object of `resource`: without what changes all the time and nobody needs who starts without a server. In lists objects have no type. */
export function keptForm(resource: string, object: Readonly<ApiObject>): ApiObject {
  const { managedFields: _, resourceVersion: __, ...metadata } = object.metadata;
  const kept = { ...object, metadata: { ...metadata, resourceVersion: "" } };
  if (resource !== "nodes") return kept;
  const { addresses = [] } = (object as Node).status ?? {};
  return { ...kept, status: { addresses } } as ApiObject;
}

export function withoutType({ apiVersion: _, kind: __, ...rest }: ApiObject): ApiObject { return rest as ApiObject; }

/** Where a pod is built from: without them it does not start again. What only routes traffic may be half a minute old. */
const URGENT: ReadonlySet<string> = new Set(["pods", "secrets", "configmaps", "serviceaccounts", "persistentvolumeclaims", "persistentvolumes", "runtimeclasses"]);

/** Whether a change has to be on the disk soon. Not so the status of a pod that goes on running. */
export function isUrgent(resource: string, before: ApiObject | undefined, after: ApiObject): boolean {
  if (before === undefined || resource !== "pods") return URGENT.has(resource);
  const { status: a, ...old } = before as Pod;
  const { status: b, ...next } = after as Pod;
  return a?.phase !== b?.phase || !Bun.deepEquals(old, next);
}
