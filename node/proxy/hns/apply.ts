/** Carries a plan out. One that fails does not keep the others from being made; the failures are thrown together at the end. */
import type { Hcn } from "../../os/hcn.ts";
import { endpointIds, endpointSettings, type HnsPlan, loadBalancerSettings } from "./plan.ts";

export function applyHns(plan: HnsPlan, { hcn, networkId }: { readonly hcn: Hcn; readonly networkId: string }): void {
  const errors: Error[] = [];
  function attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      errors.push(error as Error);
    }
  }
  for (const id of plan.deleteLoadBalancers) attempt(() => hcn.deleteLoadBalancer(id));
  for (const wanted of plan.createEndpoints) attempt(() => void hcn.createEndpoint(networkId, endpointSettings(wanted)));
  if (plan.createLoadBalancers.length > 0) {
    const ids = endpointIds(endpointsOf(hcn, networkId));
    for (const wanted of plan.createLoadBalancers) {
      const backends = wanted.backends.filter((ip) => ids.has(ip)); // one whose endpoint could not be made must not keep the service away
      if (backends.length > 0) attempt(() => void hcn.createLoadBalancer(loadBalancerSettings({ ...wanted, backends }, (ip) => ids.get(ip)!)));
    }
  }
  for (const id of plan.deleteEndpoints) attempt(() => hcn.deleteEndpoint(id));
  if (errors.length > 0) throw errors.length === 1 ? errors[0]! : new AggregateError(errors, `${errors.length} changes of HNS failed: ${errors[0]!.message}`);
}

export function endpointsOf(hcn: Hcn, networkId: string) {
  return hcn.endpoints().filter(({ HostComputeNetwork }) => HostComputeNetwork.toLowerCase() === networkId.toLowerCase());
}
