/**
 * What the pod network is on Windows: one HNS network a node, over which the CNI plugins make endpoints. Pure.
 *
 *   vxlan     "Overlay":  wrapped in UDP, with the VNI and the port Linux nodes use; one RemoteSubnetRoute policy for every other node
 *   host-gw   "L2Bridge": routed by the host; its own interface on the bridge is the pods' gateway, and other nodes' pods have routes
 *
 * Source: github.com/flannel-io/flannel pkg/backend/{vxlan,hostgw}/*_windows.go, github.com/containernetworking/plugins plugins/main/windows (formats)
 */
import { type Cidr, cidrSize, formatIp, nthAddress, parseCidr } from "../../../core/net/cidr.ts";
import type { HcnNetwork, HcnNetworkSettings, HcnPolicy } from "../../os/hcn.ts";
import { ipOf, type Peer } from "../overlay.ts";
import { macFor } from "../vxlan-plan.ts";
import { VNI } from "../vxlan.ts";

export const HNS_NETWORK = "coracle";
/** Gone with the next boot, like all that stands on it: it is made anew then. */
const NON_PERSISTENT = 8;

/** `adapter`: the name of the interface packets leave by. */
export function overlayNetwork({ podCidr, adapter }: { readonly podCidr: string; readonly adapter: string | undefined }): HcnNetworkSettings {
  return {
    Name: HNS_NETWORK, Type: "Overlay", Flags: NON_PERSISTENT, ...(adapter === undefined ? {} : { Policies: [{ Type: "NetAdapterName", Settings: { NetworkAdapterName: adapter } }] }),
    Ipams: [{ Type: "Static", Subnets: [{ ...subnet(podCidr), Policies: [{ Type: "VSID", Settings: { IsolationId: VNI } }] }] }],
  };
}

export function bridgeNetwork({ podCidr, adapter }: { readonly podCidr: string; readonly adapter: string | undefined }): HcnNetworkSettings {
  return {
    Name: HNS_NETWORK, Type: "L2Bridge", Flags: NON_PERSISTENT, ...(adapter === undefined ? {} : { Policies: [{ Type: "NetAdapterName", Settings: { NetworkAdapterName: adapter } }] }),
    Ipams: [{ Type: "Static", Subnets: [subnet(podCidr)] }],
  };
}

function subnet(podCidr: string) {
  return { IpAddressPrefix: podCidr, Routes: [{ NextHop: addresses(podCidr).gateway, DestinationPrefix: "0.0.0.0/0" }] };
}

/** Which addresses of the node's range are whose. */
export function addresses(podCidr: string): { readonly gateway: string; readonly bridge: string; readonly firstPod: string; readonly lastPod: string; readonly sourceVip: string } {
  const cidr: Cidr = parseCidr(podCidr)!;
  const size = cidrSize(cidr), at = (n: bigint): string => formatIp(nthAddress(cidr, n));
  return { gateway: at(1n), bridge: at(2n), firstPod: at(3n), lastPod: at(size - 3n), sourceVip: at(size - 2n) };
}

/** Whether a network that is there can stay. */
export function isSameNetwork(found: HcnNetwork, wanted: HcnNetworkSettings): boolean {
  return found.Type === wanted.Type && found.Ipams?.[0]?.Subnets[0]?.IpAddressPrefix === wanted.Ipams?.[0]?.Subnets[0]?.IpAddressPrefix;
}

/** The node's address as HNS has it, once the network has taken the interface over. */
export function managementIp(network: HcnNetwork): string | undefined { return setting(network, "ProviderAddress", "ProviderAddress"); }
/** Of the router between this overlay and the others: what other nodes must send to. As Linux writes it. */
export function routerMac(network: HcnNetwork): string | undefined { return setting(network, "DrMacAddress", "Address")?.replaceAll("-", ":").toLowerCase(); }

function setting({ Policies = [] }: HcnNetwork, type: string, name: string): string | undefined {
  const value = Policies.find(({ Type }) => Type === type)?.Settings?.[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

export interface RemoteSubnet { readonly prefix: string; readonly providerAddress: string; readonly mac: string }

/** One for every IPv4 range of the other nodes. */
export function remoteSubnets(others: readonly Peer[]): RemoteSubnet[] {
  return others.flatMap((peer) => {
    const providerAddress = ipOf(peer, 4);
    return providerAddress === undefined ? [] : peer.podCidrs.filter((cidr) => parseCidr(cidr)?.family === 4).map((prefix) => ({ prefix, providerAddress, mac: peer.mac ?? macFor(peer.podCidrs[0]!) }));
  });
}

/** Policies to remove from the network and to add to it. */
export function planRemoteSubnets(network: HcnNetwork, wanted: readonly RemoteSubnet[]): { readonly remove: readonly HcnPolicy[]; readonly add: readonly HcnPolicy[] } {
  const found = (network.Policies ?? []).filter(({ Type }) => Type === "RemoteSubnetRoute");
  const policies = wanted.map((one): HcnPolicy => ({
    Type: "RemoteSubnetRoute", Settings: { DestinationPrefix: one.prefix, IsolationId: VNI, ProviderAddress: one.providerAddress, DistributedRouterMacAddress: windowsMac(one.mac) },
  }));
  const has = (list: readonly HcnPolicy[], policy: HcnPolicy): boolean => list.some((other) => keyOf(other) === keyOf(policy));
  return { remove: found.filter((policy) => !has(policies, policy)), add: policies.filter((policy) => !has(found, policy)) };
}

function keyOf({ Settings = {} }: HcnPolicy): string {
  const { DestinationPrefix, IsolationId, ProviderAddress, DistributedRouterMacAddress } = Settings;
  return [DestinationPrefix, IsolationId, ProviderAddress, String(DistributedRouterMacAddress).replaceAll(":", "-").toUpperCase()].join(" ");
}

function windowsMac(mac: string): string { return mac.replaceAll(":", "-").toUpperCase(); }

export interface CniFacts {
  readonly type: "Overlay" | "L2Bridge";
  readonly podCidr: string;
  readonly clusterCidrs: readonly string[];
  readonly serviceCidrs: readonly string[];
  readonly nodeIp: string;
  readonly clusterDns: string;
  readonly clusterDomain: string;
  readonly ipamDir: string;
}

/**
 * The CNI configuration. Pods reach other pods and services as themselves, and everything else by the node's address; packets to services are looked after by the
 * load balancers even if they would not have to leave the node.
 */
export function windowsCniConfig({ type, podCidr, clusterCidrs, serviceCidrs, nodeIp, clusterDns, clusterDomain, ipamDir }: CniFacts): string {
  const { firstPod, lastPod, bridge } = addresses(podCidr);
  const policy = (Type: string, Settings: object): object => ({ name: "EndpointPolicy", value: { Type, Settings } });
  const config = {
    cniVersion: "1.0.0", name: HNS_NETWORK,
    plugins: [{
      type: type === "Overlay" ? "win-overlay" : "win-bridge", apiVersion: 2, capabilities: { portMappings: true, dns: true }, loopbackDSR: true,
      dns: { nameservers: [clusterDns], search: [`svc.${clusterDomain}`] },
      ipam: { type: "host-local", dataDir: ipamDir, ranges: [[{ subnet: podCidr, rangeStart: firstPod, rangeEnd: lastPod, ...(type === "L2Bridge" ? { gateway: bridge } : {}) }]] },
      policies: [
        policy("OutBoundNAT", { Exceptions: [...clusterCidrs, ...serviceCidrs] }), ...serviceCidrs.map((prefix) => policy("SDNRoute", { DestinationPrefix: prefix, NeedEncap: true })),
        ...(type === "Overlay" ? [policy("ProviderAddress", { ProviderAddress: nodeIp })] : [policy("SDNRoute", { DestinationPrefix: `${nodeIp}/32`, NeedEncap: true })]),
      ],
    }],
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
