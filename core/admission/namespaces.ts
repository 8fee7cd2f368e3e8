/** NamespaceExists and NamespaceAutoProvision: the namespace of what is written must exist, or is made. Source: kubernetes v1.36 plugin/pkg/admission/namespace */
import type { Namespace } from "../api/gen/core.v1.ts";
import type { NewObject } from "../api/meta/object-meta.ts";
import { isAlreadyExists, notFound } from "../api/meta/status-error.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Lookup } from "../client/lookup.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { refusal } from "./refuse.ts";

function isWithin({ namespace, group, resource }: AdmissionRequest): boolean { return namespace !== "" && !(group === "" && resource === "namespaces"); }

export function namespaceExists({ namespaces }: { readonly namespaces: Lookup<Namespace> }): AdmissionPlugin {
  return {
    name: "NamespaceExists",
    handles: (request) => request.operation !== "CONNECT" && isWithin(request),
    async validate({ namespace, signal }) { if (!(await namespaces.find("", namespace, signal))) throw notFound({ group: "", resource: "namespaces" }, namespace); },
  };
}

export function namespaceAutoProvision({ namespaces, client }: { readonly namespaces: Lookup<Namespace>; readonly client: Pick<ResourceClient<Namespace>, "create"> }): AdmissionPlugin {
  return {
    name: "NamespaceAutoProvision",
    handles: (request) => request.operation === "CREATE" && !request.dryRun && isWithin(request),
    async admit(request) {
      const { namespace: name, signal } = request;
      if (await namespaces.find("", name, signal)) return;
      try {
        await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } } as NewObject<Namespace>, { signal });
      } catch (error) {
        if (!isAlreadyExists(error)) throw refusal(request, error);
      }
    },
  };
}
