/**
 * NamespaceLifecycle: nothing is created in a namespace that does not exist or is going away, and three namespaces cannot be deleted.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go
 */
import type { Namespace } from "../api/gen/core.v1.ts";
import { objectKey } from "../api/meta/object-meta.ts";
import { forbidden } from "../api/meta/status-error.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { refusal } from "./refuse.ts";

const IMMORTAL: ReadonlySet<string> = new Set(["default", "kube-system", "kube-public"]);
/** How long after a delete our copy may not know of it. */
const LIVE_LOOKUP_MS = 30_000;
const LIVE_LOOKUPS_MAX = 100;

export interface NamespaceLifecycleDeps {
  readonly namespaces: Informer<Namespace>;
  readonly client: ResourceClient<Namespace>;
  readonly clock: Clock;
}

export function namespaceLifecycle({ namespaces, client, clock }: NamespaceLifecycleDeps): AdmissionPlugin {
  const deletedAtMs = new Map<string, number>(); // namespaces whose deletion was asked for, oldest first

  function noteDelete(name: string): void {
    deletedAtMs.delete(name);
    deletedAtMs.set(name, clock.uptimeMs());
    if (deletedAtMs.size > LIVE_LOOKUPS_MAX) deletedAtMs.delete(deletedAtMs.keys().next().value!);
  }

  /** Throws 404 for a namespace that does not exist. */
  async function find(name: string, signal: AbortSignal): Promise<Readonly<Namespace>> {
    const known = namespaces.get(objectKey("", name));
    const deleted = clock.uptimeMs() - (deletedAtMs.get(name) ?? Number.NEGATIVE_INFINITY) < LIVE_LOOKUP_MS;
    return known && !(deleted && known.status?.phase === "Active") ? known : await client.get({ metadata: { name } }, { signal });
  }

  return {
    name: "NamespaceLifecycle",
    handles: ({ operation, namespace, resource, group }) => operation !== "CONNECT" && (namespace !== "" || (resource === "namespaces" && group === "")),
    async admit(request) {
      const { operation, group, resource, name, namespace, signal } = request;
      const isNamespace = resource === "namespaces" && group === "";
      if (isNamespace && operation === "DELETE") {
        if (IMMORTAL.has(name)) throw forbidden({ group, resource }, name, "this namespace may not be deleted");
        noteDelete(name);
      }
      if (isNamespace || operation === "DELETE" || isAccessReview(request)) return;
      const found = await find(namespace, signal);
      if (operation !== "CREATE" || found.status?.phase !== "Terminating") return;
      throw refusal(request, `unable to create new content in namespace ${namespace} because it is being terminated`, [
        { reason: "NamespaceTerminating", message: `namespace ${namespace} is being terminated`, field: "metadata.namespace" },
      ]);
    },
  };
}

/** Whether a namespace exists is not told to those who may only ask what they may do. */
function isAccessReview({ group, resource }: AdmissionRequest): boolean { return group === "authorization.k8s.io" && resource === "localsubjectaccessreviews"; }
