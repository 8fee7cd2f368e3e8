/**
 * Lease (coordination.k8s.io/v1): who holds something, and until when.
 *
 * The fields of coordinated leader election (strategy, preferredHolder) are dropped: its gate is off.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/
 * Source: kubernetes v1.36 pkg/registry/coordination/lease/strategy.go, pkg/apis/coordination/validation/validation.go
 */
import { invalid } from "../../api/meta/field-error.ts";
import type { Lease } from "../../api/gen/coordination.v1.ts";
import { nonNegative } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";

export const leases = defineResource<Lease>({
  anyFinalizer: true,
  group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases",
  generation: false, createOnUpdate: true, unconditionalUpdate: false,
  prepareForCreate: dropCoordinated,
  prepareForUpdate: dropCoordinated,
  *validate({ spec }) {
    const { leaseDurationSeconds, leaseTransitions } = spec ?? {};
    if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) yield invalid("spec.leaseDurationSeconds", leaseDurationSeconds, "must be greater than 0");
    yield* nonNegative("spec.leaseTransitions", leaseTransitions);
  },
});

function dropCoordinated({ spec }: Lease): void {
  delete spec?.strategy;
  delete spec?.preferredHolder;
}
