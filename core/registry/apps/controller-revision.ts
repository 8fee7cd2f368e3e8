/**
 * ControllerRevision (apps/v1): a state of something a controller can return to. It never changes.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/controller-revision-v1/
 * Source: kubernetes v1.36 pkg/registry/apps/controllerrevision/strategy.go, pkg/apis/apps/validation/validation.go
 */
import { stringify } from "../../api/codec/json.ts";
import { FIELD_IMMUTABLE, invalid, required } from "../../api/meta/field-error.ts";
import type { ControllerRevision } from "../../api/gen/apps.v1.ts";
import { nonNegative } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";

export const controllerRevisions = defineResource<ControllerRevision>({
  group: "apps", version: "v1", kind: "ControllerRevision", plural: "controllerrevisions",
  generation: false,
  *validate({ revision, data }, old) {
    yield* nonNegative("revision", revision);
    if (old) return;
    if (data === undefined || data === null) yield required("data", "data is mandatory");
    else if (typeof data !== "object" || Array.isArray(data)) yield required("data", "data must be a valid JSON object");
  },
  *validateUpdate(next, old) {
    if (stringify(next.data) !== stringify(old.data)) yield invalid("data", next.data, FIELD_IMMUTABLE); // it is compared as it is written, keys in another order are another text
  },
});
