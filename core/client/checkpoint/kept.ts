/** What of an object is worth keeping on flash, and how soon. Pure. */
import type { Node, Pod } from "../../api/gen/core.v1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { Haste } from "./journal.ts";

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
  const { addresses = [], volumesInUse } = (object as Node).status ?? {};
  return { ...kept, status: { addresses, ...(volumesInUse?.length ? { volumesInUse } : {}) } } as ApiObject;
}

export function withoutType({ apiVersion: _, kind: __, ...rest }: ApiObject): ApiObject { return rest as ApiObject; }

/** Where a pod is built from: without them it does not start again. */
const BUILDS_PODS: ReadonlySet<string> = new Set(["pods", "secrets", "configmaps", "serviceaccounts", "persistentvolumeclaims", "persistentvolumes", "runtimeclasses"]);

/**
 * How soon a change has to be on the disk. What routes traffic (Services, endpoints, policies, nodes, pods' addresses) is missed when the power goes
 * while no server can be reached: then it stays as it was for as long as that lasts. Only the rest of the status of a pod that goes on running can wait.
 */
export function hasteOf(resource: string, before: ApiObject | undefined, after: ApiObject): Haste {
  if (before === undefined || resource !== "pods") return BUILDS_PODS.has(resource) ? "soon" : "thrifty";
  const { status: a, ...old } = before as Pod;
  const { status: b, ...next } = after as Pod;
  if (a?.phase !== b?.phase || !Bun.deepEquals(old, next)) return "soon";
  return Bun.deepEquals(a?.podIPs, b?.podIPs) ? "later" : "thrifty";
}
