/** Dynamic resource allocation. Source: kubernetes v1.36 pkg/printers/internalversion/printers.go */
import type { DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice } from "../../gen/resource.v1.ts";
import type { DeviceTaintRule, PoolStatus, ResourcePoolStatusRequest } from "../../gen/resource.v1alpha3.ts";
import { AGE, column, fieldColumn, INTEGER, NAME } from "./columns.ts";
import { since } from "./human-duration.ts";
import { printer } from "./printer.ts";

const RESOURCE = "api.resource.v1";

/** DeviceClass, ResourceClaimTemplate. */
export const namesAndAges = printer<DeviceClass | ResourceClaimTemplate>({
  columns: [NAME, AGE],
  cells: ({ metadata }, nowMs) => [metadata.name, since(metadata.creationTimestamp, nowMs)],
});

export const resourceClaims = printer<ResourceClaim>({
  columns: [NAME, column("State", "A summary of the current state (allocated, pending, reserved, etc.)."), AGE],
  cells: (claim, nowMs) => [claim.metadata.name, claimState(claim), since(claim.metadata.creationTimestamp, nowMs)],
});

function claimState({ metadata, status }: Readonly<ResourceClaim>): string {
  const states: string[] = [];
  if (metadata.deletionTimestamp) states.push("deleted");
  if (status?.allocation) {
    states.push("allocated");
    if (status.reservedFor?.length) states.push("reserved");
  } else if (!metadata.deletionTimestamp) states.push("pending");
  return states.join(",");
}

export const resourceSlices = printer<ResourceSlice>({
  columns: [
    NAME,
    fieldColumn("Node", `${RESOURCE}.ResourceSliceSpec.nodeName`),
    fieldColumn("Driver", `${RESOURCE}.ResourceSliceSpec.driver`),
    fieldColumn("Pool", `${RESOURCE}.ResourcePool.name`),
    AGE,
  ],
  cells: ({ metadata, spec }, nowMs) => [metadata.name, spec?.nodeName ?? "", spec?.driver ?? "", spec?.pool?.name ?? "", since(metadata.creationTimestamp, nowMs)],
});

export const deviceTaintRules = printer<DeviceTaintRule>({
  columns: [
    NAME,
    fieldColumn("Key", "api.resource.v1alpha3.DeviceTaint.key"),
    fieldColumn("Value", "api.resource.v1alpha3.DeviceTaint.value"),
    fieldColumn("Effect", "api.resource.v1alpha3.DeviceTaint.effect"),
    fieldColumn("TimeAdded", "api.resource.v1alpha3.DeviceTaint.timeAdded"),
    AGE,
  ],
  cells({ metadata, spec }, nowMs) {
    const taint = spec?.taint;
    return [
      metadata.name, taint?.key ?? "", taint?.value ?? "", taint?.effect ?? "", taint?.timeAdded ? since(taint.timeAdded, nowMs) : "",
      since(metadata.creationTimestamp, nowMs),
    ];
  },
});

export const resourcePoolStatusRequests = printer<ResourcePoolStatusRequest>({
  columns: [
    NAME,
    column("Driver", "The driver to query pools for."),
    column("Total", "Total number of devices across all pools."),
    column("Available", "Number of available devices across all pools."),
    column("Allocated", "Number of allocated devices across all pools."),
    column("Unavailable", "Number of unavailable devices across all pools."),
    column("Errors", "Number of pools with validation errors."),
    column("Pools", "Total number of matching pools.", INTEGER),
    column("Status", "Processing status."),
    column("Completed", "Time since the observation completed."),
  ],
  cells({ metadata, spec, status }, nowMs) {
    const end = status?.conditions?.find(({ type, status: is }) => is === "True" && (type === "Complete" || type === "Failed"));
    const pools = status?.pools ?? [];
    const poolCount = status?.poolCount ?? 0;
    const partly = end?.type === "Complete" && poolCount > pools.length ? `Complete (${pools.length}/${poolCount} pools)` : undefined;
    const counted = (count: (pool: PoolStatus) => number): string =>
      status === undefined || end?.type === "Failed" ? "-" : String(pools.reduce((sum, pool) => sum + count(pool), 0));
    return [
      metadata.name, spec?.driver ?? "",
      counted(({ totalDevices }) => totalDevices ?? 0), counted(({ availableDevices }) => availableDevices ?? 0),
      counted(({ allocatedDevices }) => allocatedDevices ?? 0), counted(({ unavailableDevices }) => unavailableDevices ?? 0),
      counted(({ validationError }) => (validationError === undefined ? 0 : 1)),
      poolCount, partly ?? end?.type ?? "Pending", end?.type === "Complete" ? since(end.lastTransitionTime, nowMs) : "<none>",
    ];
  },
});
