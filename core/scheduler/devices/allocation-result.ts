/** What is written into a claim's status: its devices, how they are set up, and on which nodes they can be used. Source: structured/internal/incubating/allocator_incubating.go */
import type { NodeSelector, NodeSelectorRequirement } from "../../api/gen/core.v1.ts";
import type { AllocationResult, DeviceAllocationConfiguration, DeviceRequestAllocationResult, ResourceClaim } from "../../api/gen/resource.v1.ts";
import type { Found } from "./allocator.ts";

export function allocationResult(claim: Readonly<ResourceClaim>, found: readonly Found[], { node, uuid }: { readonly node: string; readonly uuid: () => string }): AllocationResult {
  const nodeSelector = nodeSelectorOf(found, node);
  const config = configOf(claim, found);
  return { devices: { results: found.map((one) => resultOf(one, uuid)), ...(config.length > 0 ? { config } : {}) }, ...(nodeSelector ? { nodeSelector } : {}) };
}

function resultOf({ request, pool, device, consumed }: Found, uuid: () => string): DeviceRequestAllocationResult {
  const { name, adminAccess, tolerations } = request;
  const { bindingConditions, bindingFailureConditions } = device;
  return {
    request: name, driver: pool.driver, pool: pool.name, device: device.name,
    ...(adminAccess ? { adminAccess } : {}), ...(tolerations?.length ? { tolerations } : {}),
    ...(bindingConditions ? { bindingConditions } : {}), ...(bindingFailureConditions ? { bindingFailureConditions } : {}),
    ...(consumed ? { shareID: uuid() } : {}), ...(consumed?.size ? { consumedCapacity: Object.fromEntries([...consumed].map(([capacity, amount]) => [capacity, amount.toString()])) } : {}),
  };
}

/** Each class' once, for all requests it serves; then the claim's own, for requests and alternatives that were chosen. */
function configOf({ spec }: Readonly<ResourceClaim>, found: readonly Found[]): DeviceAllocationConfiguration[] {
  const chosen = (spec.devices?.requests ?? []).flatMap(({ name }) => found.find(({ request }) => request.name.split("/")[0] === name)?.request ?? []);
  const classes = Map.groupBy(chosen, (request) => request.class);
  const fromClasses = [...classes].flatMap(([{ spec: { config = [] } }, requests]) => config.map((one): DeviceAllocationConfiguration => ({ source: "FromClass", requests: requests.map(({ name }) => name), ...one })));
  const fromClaim = (spec.devices?.config ?? []).flatMap(({ requests = [], ...one }): DeviceAllocationConfiguration[] => {
    if (requests.length === 0) return [{ source: "FromClaim", ...one }];
    return chosen.filter(({ name }) => requests.includes(name) || requests.includes(name.split("/")[0]!)).map(() => ({ source: "FromClaim", requests, ...one }));
  });
  return [...fromClasses, ...fromClaim];
}

/** undefined: they can be used on every node. */
function nodeSelectorOf(found: readonly Found[], node: string): NodeSelector | undefined {
  const matchFields: NodeSelectorRequirement[] = [];
  const matchExpressions: NodeSelectorRequirement[] = [];
  for (const { device, slice } of found) {
    const { nodeName, nodeSelector } = slice.spec.perDeviceNodeSelection ? device : slice.spec;
    if (nodeName !== undefined || device.bindsToNode) return { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: [node] }] }] };
    const term = nodeSelector?.nodeSelectorTerms?.[0];
    addNew(term?.matchFields, matchFields);
    addNew(term?.matchExpressions, matchExpressions);
  }
  if (matchFields.length + matchExpressions.length === 0) return undefined;
  return { nodeSelectorTerms: [{ ...(matchFields.length > 0 ? { matchFields } : {}), ...(matchExpressions.length > 0 ? { matchExpressions } : {}) }] };
}

function addNew(more: readonly NodeSelectorRequirement[] = [], to: NodeSelectorRequirement[]): void {
  for (const requirement of more) if (!to.some((one) => Bun.deepEquals(one, requirement))) to.push(requirement);
}
