/**
 * What is made sure of in every object that is to be written, before anybody looks at it.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/rest.go, apiserver/pkg/registry/rest/meta.go
 */
import { repeats } from "../../api/meta/linear.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest } from "../../api/meta/status-error.ts";
import type { Scope } from "../scope.ts";

/** The object's namespace is the request's. Mutates. Throws 400. */
export function placeInNamespace({ info }: Scope, { metadata }: ApiObject): void {
  const expected = info.group === "" && info.resource === "namespaces" ? "" : info.namespace;
  const own = metadata.namespace ?? "";
  if (own === expected) return;
  if (expected === "") delete metadata.namespace;
  else if (own === "") metadata.namespace = expected;
  else throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

/** Of custom resources the router knows no paths: that a collection is not written is found out later. Throws 400. */
export function requireName({ info }: Scope): void {
  if (!info.name) throw badRequest("name must be provided");
}

/** The object's name is the one in the URL. Throws 400. */
export function checkName({ info }: Scope, { metadata: { name } }: Readonly<ApiObject>): void {
  if (!name) throw badRequest(`the name of the object (${info.name} based on URL) was undeterminable: name must be provided`);
  if (name !== info.name) throw badRequest(`the name of the object (${name}) does not match the name on the URL (${info.name})`);
}

const REPEATED_OWNERS = {
  request: (uids: string) => `.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${uids}`,
  admission: (uids: string) => `.metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${uids}`,
} as const;

/** An owner that is named twice in the same words is named once. Mutates. */
export function dropRepeatedOwners({ warnings }: Scope, { metadata }: ApiObject, by: keyof typeof REPEATED_OWNERS): void {
  const owners = metadata.ownerReferences;
  if (!owners || owners.length < 2) return;
  const kept: typeof owners = [];
  const repeated: string[] = [];
  const isRepeated = repeats<string>();
  for (const owner of owners) {
    if (isRepeated(JSON.stringify(Object.entries(owner).sort(([a], [b]) => (a < b ? -1 : 1))))) repeated.push(owner.uid);
    else kept.push(owner);
  }
  if (repeated.length === 0) return;
  metadata.ownerReferences = kept;
  warnings.push(REPEATED_OWNERS[by](repeated.join(", ")));
}
