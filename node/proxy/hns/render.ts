/**
 * What the service proxy asks of HNS: load balancers, and endpoints for backends that are elsewhere. Pure.
 *
 *   ServicePlan's ports (desired.ts) ─▶ renderHns ─▶ wanted endpoints (by address) and load balancers over them ─▶ plan.ts compares with what is there
 *
 *   cluster IP       its VIP                    node port        no VIP: any address of the node
 *   external IPs, load balancers' IPs           their VIPs, marked as external
 *   annotation preserve-destination             node port and load balancers' IPs lead to this node's endpoints, if Windows can answer directly
 *
 * Limits of Windows: no SCTP, no IPv6 on an overlay, one target port for each load balancer (the one most backends have); a service without backends is not
 * refused, it just is not there.
 *
 * Source: kubernetes v1.36 pkg/proxy/winkernel/{proxier,hns}.go (which objects, which flags)
 */
import { cidrContains, ipBytes, parseCidr, parseIp } from "../../../core/net/cidr.ts";
import type { Backend, PortPlan } from "../desired.ts";

export interface HnsFacts {
  readonly networkType: "Overlay" | "L2Bridge";
  readonly nodeIp: string;
  /** Where packets to backends elsewhere come from. */
  readonly sourceVip: string;
  /** Of the interface with the node's address. */
  readonly hostMac: string;
  readonly directServerReturn: boolean;
  readonly sessionAffinity: boolean;
  /** Pods of other nodes, on an overlay. */
  readonly remoteSubnets: readonly { readonly prefix: string; readonly providerAddress: string }[];
}

export interface WantedEndpoint { readonly ip: string; readonly mac: string; readonly providerAddress: string | undefined }

export interface WantedLoadBalancer {
  /** "": the node's own addresses. */
  readonly vip: string;
  readonly protocol: 6 | 17;
  readonly externalPort: number;
  readonly internalPort: number;
  /** Addresses, sorted. Those of this node's pods have endpoints once the pods run. */
  readonly backends: readonly string[];
  readonly sourceVip: string;
  readonly distribution: number;
  readonly mappingFlags: number;
  readonly flags: number;
}

export interface Wanted {
  /** By address: backends elsewhere, and on an overlay the cluster IPs. */
  readonly endpoints: ReadonlyMap<string, WantedEndpoint>;
  readonly loadBalancers: readonly WantedLoadBalancer[];
  /** What Windows cannot do: "default/web:80 SCTP is not supported". */
  readonly skipped: readonly string[];
}

const LOCAL_ROUTED_VIP = 2, USE_MUX = 4, PRESERVE_DESTINATION = 8, VIP_EXTERNAL_IP = 16; // of a port mapping
const DSR = 1, IPV6 = 2; // of a load balancer
const BY_SOURCE_IP = 2;
const PROTOCOLS: Readonly<Record<PortPlan["protocol"], 6 | 17 | undefined>> = { tcp: 6, udp: 17, sctp: undefined };

export function renderHns(ports: readonly PortPlan[], facts: HnsFacts): Wanted {
  const endpoints = new Map<string, WantedEndpoint>();
  const loadBalancers: WantedLoadBalancer[] = [];
  const skipped: string[] = [];
  for (const port of ports) {
    const reason = unsupported(port, facts);
    if (reason !== undefined) {
      skipped.push(`${port.namespace}/${port.service}:${port.port} ${reason}`);
      continue;
    }
    const made = loadBalancersOf(port, facts, (text) => skipped.push(`${port.namespace}/${port.service}:${port.port} ${text}`));
    loadBalancers.push(...made);
    if (facts.networkType === "Overlay") endpoints.set(port.clusterIp, { ip: port.clusterIp, mac: facts.hostMac, providerAddress: facts.nodeIp });
    const used = new Set(made.flatMap(({ backends }) => backends));
    for (const { ip, local } of [...port.clusterBackends, ...port.localBackends])
      if (!local && used.has(ip)) endpoints.set(ip, { ip, mac: remoteMac(ip), providerAddress: facts.networkType === "Overlay" ? (providerOf(ip, facts) ?? facts.nodeIp) : undefined });
  }
  return { endpoints, loadBalancers, skipped };
}

function unsupported({ protocol, family }: PortPlan, { networkType }: HnsFacts): string | undefined {
  if (PROTOCOLS[protocol] === undefined) return "SCTP is not supported";
  return family === 6 && networkType === "Overlay" ? "IPv6 is not supported on an overlay" : undefined;
}

function loadBalancersOf(port: PortPlan, facts: HnsFacts, skip: (text: string) => void): WantedLoadBalancer[] {
  const { clusterIp, nodePort, externalIps, loadBalancerIps, internalLocal, externalLocal, clusterBackends, localBackends, affinitySeconds } = port;
  const affinity = affinitySeconds > 0 && facts.sessionAffinity;
  if (affinitySeconds > 0 && !affinity) skip("session affinity is not supported by this Windows");
  const family = port.family === 6 ? IPV6 : 0;

  function balance(vip: string, externalPort: number, backends: readonly Backend[], { mappingFlags = 0, direct }: { readonly mappingFlags?: number; readonly direct: boolean }): WantedLoadBalancer[] {
    const target = commonPort(backends);
    if (target === undefined) return [];
    const used = backends.filter((backend) => backend.port === target);
    if (used.length < backends.length) skip(`${backends.length - used.length} backends with another target port than ${target}`);
    return [{
      vip, protocol: PROTOCOLS[port.protocol]!, externalPort, internalPort: target, backends: [...new Set(used.map(({ ip }) => ip))].sort(), sourceVip: sourceVipFor(used, facts),
      distribution: affinity ? BY_SOURCE_IP : 0, mappingFlags, flags: (direct ? DSR : 0) | family,
    }];
  }

  const external = externalLocal ? localBackends : clusterBackends;
  const preserves = port.preservesDestination && facts.directServerReturn;
  const balanced = preserves && !externalLocal ? clusterBackends.filter(({ local }) => local) : external;
  const outside = { mappingFlags: VIP_EXTERNAL_IP, direct: externalLocal && facts.directServerReturn };
  return [
    ...balance(clusterIp, port.port, internalLocal ? localBackends : clusterBackends, { direct: facts.directServerReturn }),
    ...(nodePort === 0 ? [] : balance("", nodePort, balanced, { ...outside, mappingFlags: VIP_EXTERNAL_IP | LOCAL_ROUTED_VIP })),
    ...externalIps.flatMap((vip) => balance(vip, port.port, external, outside)),
    ...loadBalancerIps.flatMap((vip) => balance(vip, port.port, balanced, preserves ? { mappingFlags: VIP_EXTERNAL_IP | USE_MUX | PRESERVE_DESTINATION, direct: true } : outside)),
  ];
}

/** The port most backends have; of equals the lower one. */
function commonPort(backends: readonly Backend[]): number | undefined {
  const counted = Map.groupBy(backends, ({ port }) => port);
  return [...counted].sort(([a, one], [b, other]) => other.length - one.length || a - b)[0]?.[0];
}

/** Backends that are nodes, or outside of the cluster, must see an address they can answer to. */
function sourceVipFor(backends: readonly Backend[], facts: HnsFacts): string {
  if (facts.networkType !== "Overlay") return facts.sourceVip;
  const outside = backends.some(({ ip, local }) => {
    const provider = local ? undefined : providerOf(ip, facts);
    return !local && (provider === undefined || provider === ip);
  });
  return outside ? facts.nodeIp : facts.sourceVip;
}

function providerOf(ip: string, { remoteSubnets }: HnsFacts): string | undefined {
  const address = parseIp(ip)!;
  return remoteSubnets.find(({ prefix, providerAddress }) => {
    const cidr = parseCidr(prefix);
    return providerAddress === ip || (cidr !== undefined && cidr.family === address.family && cidrContains(cidr, address));
  })?.providerAddress;
}

/** Made up out of the address, the same each time. */
export function remoteMac(ip: string): string {
  const bytes = ipBytes(parseIp(ip)!);
  return ["02", "11", ...[...bytes.subarray(bytes.length - 4)].map((byte) => byte.toString(16).padStart(2, "0"))].join("-");
}
