/**
 * ResourcePoolStatusRequest (resource.k8s.io/v1alpha3): how much of a driver's devices is taken, asked once. A controller answers where the
 * feature gate DRAResourcePoolStatus is switched on.
 *
 * Source: kubernetes v1.36 pkg/registry/resource/resourcepoolstatusrequest/strategy.go, pkg/apis/resource/validation/validation_resourcepoolstatusrequest.go,
 *         pkg/apis/resource/v1alpha3/zz_generated.validations.go
 */
import type { PoolStatus, ResourcePoolStatusRequest, ResourcePoolStatusRequestStatus } from "../../api/gen/resource.v1alpha3.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { child, type FieldError, index, invalid, required, tooLong, tooMany } from "../../api/meta/field-error.ts";
import { longName, longNameCaseless } from "../../api/meta/names.ts";
import { validateCommonConditions } from "../core/checks/conditions.ts";
import { immutableStruct, problems } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";

const LIMIT_MAX = 1000;
const POOLS_MAX = 1000;
const CONDITIONS_MAX = 10;
const POOL_NAME_BYTES_MAX = 253;
const ERROR_BYTES_MAX = 256;

export const resourcePoolStatusRequests = defineResource<ResourcePoolStatusRequest>({
  group: "resource.k8s.io", version: "v1alpha3", kind: "ResourcePoolStatusRequest", plural: "resourcepoolstatusrequests",
  generation: false, unconditionalUpdate: false,
  *validate({ spec: { driver, poolName: pool, limit } }, old) {
    if (old) return; // nothing of it changes
    yield* driverOf("spec.driver", driver);
    if (pool !== undefined) yield* poolOf("spec.poolName", pool);
    if (limit !== undefined && limit > LIMIT_MAX) yield invalid("spec.limit", limit, `must be less than or equal to ${LIMIT_MAX}`);
    yield* atLeast("spec.limit", 1, limit);
  },
  *validateUpdate({ spec }, { spec: before }) { if (!Bun.deepEquals(spec, before)) yield invalid("spec", null, "field is immutable"); },
  subresources: {
    status: statusPart<ResourcePoolStatusRequest>({
      keepsMetadata: true,
      *validate({ status }, { status: before }) {
        if (before) yield* immutableStruct("status", "resource.v1alpha3.ResourcePoolStatusRequestStatus", status, before);
        else yield* validateCommonConditions("status.conditions", status?.conditions);
        if (status && !Bun.deepEquals(status, before)) yield* validateStatus("status", status);
      },
    }),
  },
});

function* validateStatus(path: string, { conditions = [], poolCount, pools = [] }: Readonly<ResourcePoolStatusRequestStatus>): Iterable<FieldError> {
  if (poolCount === undefined) yield required(child(path, "poolCount"));
  yield* atLeast(child(path, "poolCount"), 0, poolCount);
  if (pools.length > POOLS_MAX) yield tooMany(child(path, "pools"), pools.length, POOLS_MAX);
  else for (const [i, pool] of pools.entries()) yield* validatePool(index(child(path, "pools"), i), pool);
  if (conditions.length > CONDITIONS_MAX) yield tooMany(child(path, "conditions"), conditions.length, CONDITIONS_MAX);
}

function* validatePool(path: string, { driver, poolName, generation, resourceSliceCount, nodeName, validationError, ...counts }: Readonly<PoolStatus>): Iterable<FieldError> {
  yield* driverOf(child(path, "driver"), driver);
  if (!poolName) yield required(child(path, "poolName"));
  else yield* poolOf(child(path, "poolName"), poolName);
  if (!generation) yield required(child(path, "generation"));
  else yield* atLeast(child(path, "generation"), 0, generation);
  yield* atLeast(child(path, "resourceSliceCount"), 1, resourceSliceCount);
  for (const name of ["totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices"] as const) yield* atLeast(child(path, name), 0, counts[name]);
  if (nodeName !== undefined) yield* problems(child(path, "nodeName"), nodeName, longName(nodeName));
  if (byteLength(validationError ?? "") > ERROR_BYTES_MAX) yield tooLong(child(path, "validationError"), ERROR_BYTES_MAX);
}

function* driverOf(path: string, driver: string | undefined): Iterable<FieldError> {
  if (!driver) yield required(path);
  else yield* problems(path, driver, longNameCaseless(driver));
}

function* poolOf(path: string, pool: string): Iterable<FieldError> {
  if (byteLength(pool) > POOL_NAME_BYTES_MAX) yield tooLong(path, POOL_NAME_BYTES_MAX);
  for (const [i, segment] of pool.split("/").entries()) {
    if (segment === "") yield invalid(path, pool, `segment ${i}: must not be empty`);
    else yield* problems(path, segment, longName(segment).map((problem) => `segment ${i}: ${problem}`));
  }
}

function* atLeast(path: string, min: number, value: number | undefined): Iterable<FieldError> {
  if (value !== undefined && value < min) yield invalid(path, value, `must be greater than or equal to ${min}`);
}
