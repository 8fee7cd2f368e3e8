/** Devices that have to be made ready after they were allocated: what their drivers say about it. Source: plugins/dynamicresources/dynamicresources.go isClaimReadyForBinding, isClaimTimeout */
import type { ResourceClaim } from "../../api/gen/resource.v1.ts";

/** undefined: not yet. */
export function readiness({ metadata, status }: Readonly<ResourceClaim>): "ready" | { readonly failed: string } | undefined {
  if (!status?.allocation) return undefined;
  for (const { driver, pool, device, bindingConditions = [], bindingFailureConditions = [] } of status.allocation.devices?.results ?? []) {
    if (bindingConditions.length === 0) continue;
    const conditions = status.devices?.find((one) => one.driver === driver && one.pool === pool && one.device === device)?.conditions;
    if (!conditions) return undefined;
    const failure = bindingFailureConditions.map((type) => conditions.find((one) => one.type === type)).find((one) => one?.status === "True");
    if (failure) return { failed: `device binding failed: claim=${metadata.name}, reason=${failure.reason}, message=${JSON.stringify(failure.message)}` };
    if (!bindingConditions.every((type) => conditions.find((one) => one.type === type)?.status === "True")) return undefined;
  }
  return "ready";
}

export function hasConditions(claim: Readonly<ResourceClaim>): boolean { return devicesOf(claim).some((device) => device.hasConditions); }

/** The devices that are allocated to it: whose they are, and whether they have to be made ready. */
export function devicesOf({ status }: Readonly<ResourceClaim>): { readonly driver: string; readonly hasConditions: boolean }[] {
  return (status?.allocation?.devices?.results ?? []).map(({ driver, bindingConditions = [] }) => ({ driver, hasConditions: bindingConditions.length > 0 }));
}

export function isOverdue(claim: Readonly<ResourceClaim>, nowMs: number, timeoutMs: number): boolean {
  const since = claim.status?.allocation?.allocationTimestamp;
  return since !== undefined && hasConditions(claim) && Date.parse(since) + timeoutMs < nowMs;
}
