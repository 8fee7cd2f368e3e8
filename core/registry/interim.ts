/**
 * Kinds of core/v1 that have no folder of their own in core/registry/core yet: only what the server cannot run without.
 *
 * A kind leaves this list when its definition is there.
 */
import type { Namespace } from "../api/gen/core.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { statusPart, keepAllBut } from "./core/status-part.ts";
import { defineResource, type Resource } from "./generic/resource.ts";

const namespaces = defineResource<Namespace>({
  group: "", version: "v1", kind: "Namespace", plural: "namespaces", generation: false,
  defaults({ metadata }) { metadata.labels = { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name }; },
  prepareForCreate(namespace) {
    namespace.spec = { finalizers: ["kubernetes"] };
    namespace.status = { phase: "Active" };
  },
  prepareForUpdate(next, old) { if (old.spec) next.spec = old.spec; },
  isHeld: ({ spec }) => (spec?.finalizers?.length ?? 0) > 0,
  markDeleting(namespace) { namespace.status = { ...namespace.status, phase: "Terminating" }; },
  subresources: {
    status: statusPart<Namespace>(),
    finalize: { type: "part", prepare: (next, old) => keepAllBut(next, old, "spec") },
  },
});

function plain(kind: string, plural: string): Resource {
  return defineResource<ApiObject>({ group: "", version: "v1", kind, plural, generation: false });
}

export const INTERIM: readonly Resource[] = [
  namespaces as unknown as Resource,
  plain("ConfigMap", "configmaps"), plain("Secret", "secrets"), plain("Endpoints", "endpoints"), plain("ServiceAccount", "serviceaccounts"), plain("Event", "events"),
  { ...plain("Node", "nodes"), keepsStatusOnCreate: true },
];
