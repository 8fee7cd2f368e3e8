/**
 * What to change in HNS so that it has what is wanted. Pure. All load balancers and all remote endpoints of the network are taken to be ours: nothing else makes any
 * on a node, and whatever a former life has left, or lost with a reboot, is found this way.
 */
import type { HcnEndpoint, HcnEndpointSettings, HcnLoadBalancer, HcnLoadBalancerSettings } from "../../os/hcn.ts";
import type { Wanted, WantedEndpoint, WantedLoadBalancer } from "./render.ts";

const REMOTE_ENDPOINT = 1;

export interface Actual {
  /** Of our network. */
  readonly endpoints: readonly HcnEndpoint[];
  readonly loadBalancers: readonly HcnLoadBalancer[];
}

/** In this order: a port that is still taken cannot be given again, and an endpoint that is in use cannot go. */
export interface HnsPlan {
  readonly deleteLoadBalancers: readonly string[];
  readonly createEndpoints: readonly WantedEndpoint[];
  /** Those whose endpoints have just been made are resolved by apply. */
  readonly createLoadBalancers: readonly WantedLoadBalancer[];
  readonly deleteEndpoints: readonly string[];
  /** Addresses of pods on this node that have no endpoint yet: look again soon. */
  readonly awaited: readonly string[];
}

export function planHns({ endpoints, loadBalancers, }: Wanted, actual: Actual): HnsPlan {
  const known = endpointIds(actual.endpoints);
  const stale = staleRemotes(actual.endpoints);
  const createEndpoints = [...endpoints.values()].filter(({ ip }) => !known.has(ip));
  const coming = new Set(createEndpoints.map(({ ip }) => ip));
  const awaited = new Set<string>();
  const usable = loadBalancers.flatMap((wanted) => {
    const backends = wanted.backends.filter((ip) => known.has(ip) || coming.has(ip));
    for (const ip of wanted.backends) if (!backends.includes(ip)) awaited.add(ip);
    return backends.length === 0 ? [] : [{ ...wanted, backends }];
  });
  const there = new Map(actual.loadBalancers.map((one) => [keyOfActual(one), one.ID]));
  const keys = new Map(usable.map((wanted) => [keyOfWanted(wanted, known), wanted]));
  return {
    deleteLoadBalancers: actual.loadBalancers.filter((one) => !keys.has(keyOfActual(one)) || there.get(keyOfActual(one)) !== one.ID).map(({ ID }) => ID),
    createEndpoints,
    createLoadBalancers: [...keys].filter(([key]) => !there.has(key)).map(([, wanted]) => wanted),
    deleteEndpoints: actual.endpoints.filter((endpoint) => isRemote(endpoint) && (stale.has(endpoint.ID) || !endpoints.has(ipOf(endpoint)))).map(({ ID }) => ID),
    awaited: [...awaited],
  };
}

/** By address. A pod of this node wins over what was once elsewhere. */
export function endpointIds(endpoints: readonly HcnEndpoint[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const endpoint of [...endpoints].sort((a, b) => Number(isRemote(b)) - Number(isRemote(a))))
    for (const { IpAddress } of endpoint.IpConfigurations ?? []) found.set(IpAddress, endpoint.ID);
  return found;
}

/** Windows sometimes keeps a remote endpoint with the address of a pod here. */
function staleRemotes(endpoints: readonly HcnEndpoint[]): ReadonlySet<string> {
  const local = new Set(endpoints.filter((endpoint) => !isRemote(endpoint)).flatMap(({ IpConfigurations = [] }) => IpConfigurations.map(({ IpAddress }) => IpAddress)));
  return new Set(endpoints.filter((endpoint) => isRemote(endpoint) && local.has(ipOf(endpoint))).map(({ ID }) => ID));
}

function isRemote({ Flags = 0 }: HcnEndpoint): boolean { return (Flags & REMOTE_ENDPOINT) !== 0; }
function ipOf({ IpConfigurations }: HcnEndpoint): string { return IpConfigurations?.[0]?.IpAddress ?? ""; }

/** Backends that have no endpoint yet stand for themselves: equal to nothing that is there. */
function keyOfWanted(wanted: WantedLoadBalancer, ids: ReadonlyMap<string, string>): string {
  return keyOf(loadBalancerSettings(wanted, (ip) => ids.get(ip) ?? ip));
}

function keyOfActual({ HostComputeEndpoints = [], FrontendVIPs = [], PortMappings = [], SourceVIP = "", Flags = 0 }: HcnLoadBalancer): string {
  return keyOf({ HostComputeEndpoints, FrontendVIPs, PortMappings, SourceVIP, Flags });
}

function keyOf({ HostComputeEndpoints, FrontendVIPs, PortMappings: [mapping], SourceVIP = "", Flags = 0 }: HcnLoadBalancerSettings): string {
  const { Protocol = 0, InternalPort = 0, ExternalPort = 0, DistributionType = 0, Flags: mappingFlags = 0 } = mapping ?? {};
  return JSON.stringify([FrontendVIPs[0] ?? "", Protocol, ExternalPort, InternalPort, SourceVIP, DistributionType, mappingFlags, Flags, [...HostComputeEndpoints].map((id) => id.toLowerCase()).sort()]);
}

export function loadBalancerSettings({ vip, protocol, externalPort, internalPort, backends, sourceVip, distribution, mappingFlags, flags }: WantedLoadBalancer, idOf: (ip: string) => string): HcnLoadBalancerSettings {
  return {
    HostComputeEndpoints: backends.map(idOf), SourceVIP: sourceVip, FrontendVIPs: vip === "" ? [] : [vip], Flags: flags,
    PortMappings: [{ Protocol: protocol, InternalPort: internalPort, ExternalPort: externalPort, DistributionType: distribution, Flags: mappingFlags }],
  };
}

export function endpointSettings({ ip, mac, providerAddress }: WantedEndpoint): HcnEndpointSettings {
  return {
    IpConfigurations: [{ IpAddress: ip }], MacAddress: mac, Flags: REMOTE_ENDPOINT,
    ...(providerAddress === undefined ? {} : { Policies: [{ Type: "ProviderAddress", Settings: { ProviderAddress: providerAddress } }] }),
  };
}
