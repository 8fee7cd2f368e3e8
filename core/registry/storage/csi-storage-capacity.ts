/**
 * CSIStorageCapacity (storage.k8s.io/v1): how much room a driver has where.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/csi-storage-capacity-v1/
 * Source: kubernetes v1.36 pkg/registry/storage/csistoragecapacity/strategy.go, pkg/apis/storage/validation/validation.go, pkg/api/node/util.go
 */
import type { CSIStorageCapacity } from "../../api/gen/storage.v1.ts";
import { type FieldError, invalid } from "../../api/meta/field-error.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { compareQuantities } from "../../api/meta/quantity.ts";
import { immutable, isDns1123Subdomain, NOT_NEGATIVE } from "../core/checks/values.ts";
import { deprecatedNodeLabel } from "../core/pod/warnings.ts";
import { defineResource } from "../generic/resource.ts";

export const csiStorageCapacities = defineResource<CSIStorageCapacity>({
  group: "storage.k8s.io", version: "v1", kind: "CSIStorageCapacity", plural: "csistoragecapacities",
  generation: false, updateOrder: "change last", unconditionalUpdate: false,
  *validate({ nodeTopology, storageClassName, capacity }, old): Iterable<FieldError> {
    const allowInvalidValues = old !== undefined && validateLabelSelector(old.nodeTopology, "").length > 0;
    yield* validateLabelSelector(nodeTopology, "nodeTopology", { allowInvalidValues });
    yield* isDns1123Subdomain("storageClassName", storageClassName);
    if (capacity !== undefined && compareQuantities(capacity, "0") < 0) yield invalid("capacity", capacity, NOT_NEGATIVE);
  },
  *validateUpdate(next, old) {
    yield* immutable("nodeTopology", next.nodeTopology, old.nodeTopology);
    yield* immutable("storageClassName", next.storageClassName ?? "", old.storageClassName);
  },
  *warnings({ nodeTopology }) {
    for (const [i, { key }] of (nodeTopology?.matchExpressions ?? []).entries()) {
      const text = deprecatedNodeLabel(key);
      if (text !== undefined) yield `nodeTopology.matchExpressions[${i}].key: ${key} is ${text}`;
    }
    for (const label of Object.keys(nodeTopology?.matchLabels ?? {})) {
      const text = deprecatedNodeLabel(label);
      if (text !== undefined) yield `nodeTopology.matchLabels.${label}: ${text}`;
    }
  },
});
