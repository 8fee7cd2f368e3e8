/**
 * ResourcePoolStatusRequest (resource.k8s.io/v1alpha3): how much of a driver's devices is taken, asked once. Upstream answers with the feature gate
 * DRAResourcePoolStatus alone, which is off.
 *
 * Source: kubernetes v1.36 pkg/registry/resource/resourcepoolstatusrequest/strategy.go, pkg/apis/resource/validation/validation_resourcepoolstatusrequest.go,
 *         pkg/apis/resource/v1alpha3/zz_generated.validations.go
 */
import type { ResourcePoolStatusRequest } from "../../api/gen/resource.v1alpha3.ts";
import { invalid } from "../../api/meta/field-error.ts";
import { validateCommonConditions } from "../core/checks/conditions.ts";
import { immutableStruct } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { driverName, poolName } from "./names.ts";

const LIMIT_MAX = 1000;

export const resourcePoolStatusRequests = defineResource<ResourcePoolStatusRequest>({
  group: "resource.k8s.io", version: "v1alpha3", kind: "ResourcePoolStatusRequest", plural: "resourcepoolstatusrequests",
  generation: false, unconditionalUpdate: false,
  *validate({ spec: { driver, poolName: pool, limit = 1 } }, old) {
    if (old) return; // nothing of it changes
    yield* driverName("spec.driver", driver);
    if (pool !== undefined) yield* poolName("spec.poolName", pool);
    if (limit > LIMIT_MAX) yield invalid("spec.limit", limit, `must be less than or equal to ${LIMIT_MAX}`);
    if (limit < 1) yield invalid("spec.limit", limit, "must be greater than or equal to 1");
  },
  validateUpdate: (next, old) => immutableStruct("spec", "resource.v1alpha3.ResourcePoolStatusRequestSpec", next.spec, old.spec),
  subresources: {
    status: statusPart<ResourcePoolStatusRequest>({
      keepsMetadata: true,
      *validate({ status }, { status: before }) {
        if (before) yield* immutableStruct("status", "resource.v1alpha3.ResourcePoolStatusRequestStatus", status, before);
        else yield* validateCommonConditions("status.conditions", status?.conditions);
      },
    }),
  },
});
