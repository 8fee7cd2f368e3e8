/**
 * ResourceClaim and ResourceClaimTemplate (resource.k8s.io/v1): devices that somebody wants. What is asked for never changes; what was got is in the status.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-claim-v1/
 * Source: kubernetes v1.36 pkg/registry/resource/{resourceclaim,resourceclaimtemplate}/strategy.go, pkg/registry/resource/utils.go, pkg/apis/resource/validation/validation.go
 */
import { child, index } from "../../api/meta/field-error.ts";
import type { ResourceClaim, ResourceClaimTemplate } from "../../api/gen/resource.v1.ts";
import { validateTemplateMeta } from "../core/persistent-volume-claim/validation.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { immutableStruct } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource, type Resource } from "../generic/resource.ts";
import { adminAccess, adminNamespace, defaultClaimSpec, foreseeSelectors, type NamespaceLabels, validateClaimSpec } from "./claim-spec.ts";
import { claimPermissions } from "./claim-permissions.ts";
import { idOf, validateClaimStatus } from "./claim-status.ts";

const GROUP = { group: "resource.k8s.io", version: "v1", generation: false as const };

export function resourceClaims(labels: NamespaceLabels): Resource<ResourceClaim> {
  return defineResource<ResourceClaim>({
    ...GROUP, kind: "ResourceClaim", plural: "resourceclaims", updateOrder: "change last",
    defaults: ({ spec }) => defaultClaimSpec(spec),
    foresee: ({ spec }, old, context) => foreseeSelectors(old ? [] : validateClaimSpec("spec", spec, context), context),
    *validate({ metadata, spec }, old, context) {
      if (old) return; // nothing of it changes
      yield* adminAccess(spec, metadata.namespace, labels);
      yield* validateClaimSpec("spec", spec, context);
    },
    *validateUpdate(next, old) {
      yield* immutableStruct("spec", "resource.v1.ResourceClaimSpec", next.spec, old.spec);
    },
    subresources: {
      status: statusPart<ResourceClaim>({
        keepsMetadata: true,
        prepare: dropDeallocated,
        authorize: claimPermissions,
        *validate(next, old) {
          const [results, before] = [next, old].map(({ status }) => status?.allocation?.devices?.results ?? []);
          const at = results!.findIndex((result) => result.adminAccess === true);
          if (at >= 0 && !before!.some((result) => result.adminAccess === true))
            yield* adminNamespace(child(index("status.allocation.devices.results", at), "adminAccess"), next.metadata.namespace, labels);
          yield* validateClaimStatus(next, old);
        },
      }),
    },
  });
}

/** What is known of a device goes with it. Mutates `next`. */
function dropDeallocated(next: ResourceClaim, old: Readonly<ResourceClaim>): void {
  const kept = new Set((next.status?.allocation?.devices?.results ?? []).map(idOf));
  const gone = new Set((old.status?.allocation?.devices?.results ?? []).map(idOf).filter((id) => !kept.has(id)));
  if (!next.status?.devices || gone.size === 0) return;
  const devices = next.status.devices.filter((device) => !gone.has(idOf(device)));
  if (devices.length > 0) next.status.devices = devices;
  else delete next.status.devices;
}

export function resourceClaimTemplates(labels: NamespaceLabels): Resource<ResourceClaimTemplate> {
  return defineResource<ResourceClaimTemplate>({
    ...GROUP, kind: "ResourceClaimTemplate", plural: "resourceclaimtemplates", updateOrder: "change last",
    defaults: ({ spec }) => defaultClaimSpec(spec.spec),
    foresee: ({ spec }, old, context) => foreseeSelectors(old && semanticEqual(spec, old.spec) ? [] : validateClaimSpec("spec.spec", spec.spec, context), context),
    *validate({ metadata, spec }, old, context) {
      if (!old) yield* adminAccess(spec.spec, metadata.namespace, labels);
      yield* validateTemplateMeta("spec.metadata", spec.metadata ?? {});
      if (old && semanticEqual(spec, old.spec)) return; // looked at when it was made
      yield* validateClaimSpec("spec.spec", spec.spec, context);
    },
    validateUpdate: (next, old) => immutableStruct("spec", "resource.v1.ResourceClaimTemplateSpec", next.spec, old.spec),
  });
}
