/**
 * Lease (coordination.k8s.io/v1): who holds something, and until when.
 *
 * The fields of coordinated leader election (strategy, preferredHolder) are dropped where its gate is off.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/
 * Source: kubernetes v1.36 pkg/registry/coordination/lease/strategy.go, pkg/apis/coordination/validation/validation.go
 */
import { forbidden, invalid } from "../../api/meta/field-error.ts";
import type { Lease } from "../../api/gen/coordination.v1.ts";
import { nonNegative } from "../core/checks/values.ts";
import { defineResource, type Resource } from "../generic/resource.ts";
import { isStrategy } from "./strategy.ts";

/** `coordinated`: leaders are chosen by a controller, where that is switched on. */
export function leaseDefinition({ coordinated }: { readonly coordinated: boolean }): Resource<Lease> {
  return defineResource<Lease>({
    anyFinalizer: true,
    group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases",
    generation: false, createOnUpdate: true, unconditionalUpdate: false,
    prepareForCreate(lease) { if (!coordinated) dropCoordinated(lease); },
    prepareForUpdate(lease, old) { if (!coordinated) dropCoordinated(lease, old); },
    *validate({ spec }) {
      const { leaseDurationSeconds, leaseTransitions, strategy, preferredHolder } = spec ?? {};
      if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) yield invalid("spec.leaseDurationSeconds", leaseDurationSeconds, "must be greater than 0");
      yield* nonNegative("spec.leaseTransitions", leaseTransitions);
      if (strategy !== undefined) yield* isStrategy("spec.strategy", strategy);
      if (preferredHolder && !strategy) yield forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined");
    },
  });
}

/** A field that was there stays: it is of a server that had it switched on. */
function dropCoordinated({ spec }: Lease, old?: Readonly<Lease>): void {
  if (old?.spec?.strategy === undefined) delete spec?.strategy;
  if (old?.spec?.preferredHolder === undefined) delete spec?.preferredHolder;
}
