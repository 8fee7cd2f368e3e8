/**
 * Windows' Host Compute Network service: networks, endpoints and load balancers of containers. Small synchronous calls; the service answers within milliseconds,
 * except for a new network, which may take seconds.
 *
 *   const hcn = openHcn();                                    // hcn.windows.ts
 *   hcn.networks().find(({ Name }) => Name === "coracle");
 *
 * Objects are the service's own JSON (schema version 2), with its names.
 *
 * API: https://learn.microsoft.com/en-us/windows-server/networking/technologies/hcn/hcn-top
 * Source: github.com/microsoft/hcsshim hcn (schema)
 */
export interface HcnPolicy { readonly Type: string; readonly Settings?: Readonly<Record<string, unknown>> }

export interface HcnSubnet { readonly IpAddressPrefix: string; readonly Routes?: readonly { readonly NextHop: string; readonly DestinationPrefix: string }[]; readonly Policies?: readonly HcnPolicy[] }

export interface HcnNetworkSettings {
  readonly Name: string;
  readonly Type: "Overlay" | "L2Bridge" | "NAT" | "Transparent" | "L2Tunnel" | "ICS" | "Private";
  readonly Policies?: readonly HcnPolicy[];
  readonly Ipams?: readonly { readonly Type: string; readonly Subnets: readonly HcnSubnet[] }[];
  /** 8: gone with the next boot. */
  readonly Flags?: number;
}
export type HcnNetwork = HcnNetworkSettings & { readonly ID: string };

export interface HcnEndpointSettings {
  readonly Name?: string;
  readonly IpConfigurations: readonly { readonly IpAddress: string; readonly PrefixLength?: number }[];
  readonly MacAddress?: string;
  /** 1: somewhere else. */
  readonly Flags?: number;
  readonly Policies?: readonly HcnPolicy[];
}
export type HcnEndpoint = Partial<HcnEndpointSettings> & { readonly ID: string; readonly HostComputeNetwork: string };

export interface HcnLoadBalancerSettings {
  /** IDs of endpoints. */
  readonly HostComputeEndpoints: readonly string[];
  readonly SourceVIP?: string;
  /** Empty: the node's own addresses. */
  readonly FrontendVIPs: readonly string[];
  readonly PortMappings: readonly { readonly Protocol: number; readonly InternalPort: number; readonly ExternalPort: number; readonly DistributionType?: number; readonly Flags?: number }[];
  readonly Flags?: number;
}
export type HcnLoadBalancer = Partial<HcnLoadBalancerSettings> & { readonly ID: string };

export interface HcnFeatures {
  /** Answers go straight from the backend to the client. */
  readonly directServerReturn: boolean;
  readonly sessionAffinity: boolean;
}

/** Every call throws HcnError. Removing what is gone is no error. */
export interface Hcn {
  features(): HcnFeatures;
  networks(): readonly HcnNetwork[];
  createNetwork(settings: HcnNetworkSettings): HcnNetwork;
  addPolicies(networkId: string, policies: readonly HcnPolicy[]): void;
  removePolicies(networkId: string, policies: readonly HcnPolicy[]): void;
  deleteNetwork(id: string): void;
  endpoints(): readonly HcnEndpoint[];
  createEndpoint(networkId: string, settings: HcnEndpointSettings): HcnEndpoint;
  /** Makes it an interface of this machine. */
  attachToHost(endpointId: string): void;
  deleteEndpoint(id: string): void;
  loadBalancers(): readonly HcnLoadBalancer[];
  createLoadBalancer(settings: HcnLoadBalancerSettings): HcnLoadBalancer;
  deleteLoadBalancer(id: string): void;
}

export class HcnError extends Error {
  /** An HRESULT, 0 for an answer that only says what is wrong. */
  readonly code: number;
  constructor(call: string, code: number, answer: string) {
    super(`${call}: ${answer === "" ? `0x${code.toString(16).padStart(8, "0")}` : answer}`);
    this.name = "HcnError";
    this.code = code;
  }
}

/** HNS' own version decides what it can do. Pure. */
export function featuresOf({ Major: major, Minor: minor }: { readonly Major: number; readonly Minor: number }): HcnFeatures {
  const atLeast = (wantedMajor: number, wantedMinor: number): boolean => major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
  return { directServerReturn: (major === 9 && minor >= 3) || atLeast(10, 2), sessionAffinity: atLeast(12, 0) };
}
