/**
 * What a Service asks of this node's proxy: for each of its ports, the addresses it is reached at and the endpoints behind it. Pure.
 *
 *   Service + its EndpointSlices + this node ─▶ planService ─▶ ServicePlan ─▶ nftables/render.ts (or HNS)
 *
 * Headless and ExternalName services have none, nor have those another proxy is responsible for (label service.kubernetes.io/service-proxy-name).
 *
 * Which endpoints are used:
 *   Cluster policy   all ready ones, or those hinted for this node or its zone if every ready endpoint has such a hint and there is one for us
 *   Local policy     ready ones on this node
 *   neither ready    those that are terminating but still serve, for each policy by itself
 *
 * Source: kubernetes v1.36 pkg/proxy/{topology,serviceport,endpointslicecache}.go
 */
import type { Node, Service, ServicePort } from "../../core/api/gen/core.v1.ts";
import type { Endpoint, EndpointPort, EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import { objectKey } from "../../core/api/meta/object-meta.ts";
import { cidrContains, type Family, formatCidr, formatIp, parseStoredCidr, parseStoredIp } from "../../core/net/cidr.ts";
import { VXLAN_PORT } from "../os/vxlan-port.ts";

export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
const PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name";
const HEADLESS_LABEL = "service.kubernetes.io/headless";

const PRESERVE_DESTINATION = "preserve-destination";

const PORT_MAX = 65_535;
/**
 * Of one Service and family, pairs of a port with an address it is reached at, a range that may reach it, or an endpoint. A thousand ports and five hundred endpoints; a Service of a megabyte could
 * ask for a billion, which neither this process nor the kernel has room for: what is beyond is left out.
 */
const PAIRS_MAX = 500_000;

export type ProxyProtocol = "tcp" | "udp" | "sctp";

export interface ProxyNode {
  readonly name: string;
  readonly ips: readonly string[];
  /** Addresses that somebody in front of the node translates into its own (type ExternalIP): what is meant for them arrives at `ips`. */
  readonly externalIps?: readonly string[] | undefined;
  /** From the node's label topology.kubernetes.io/zone. */
  readonly zone: string | undefined;
  /** What the cluster itself is reached at. Absent: nothing. */
  readonly kept?: KeptPorts | undefined;
}

/** Ports by address, as "tcp 6443", or "external tcp 6443" where a load balancer may still give it, which no Service has as its external ones: whoever might write a Service had the API server's on all nodes. Upstream leaves that to an admission plug-in. */
export type KeptPorts = ReadonlyMap<string, ReadonlySet<string>>;

/** An address or a name. */
export interface Asked { readonly host: string; readonly port: number }

/** The Service whose endpoints are the API servers. */
export const KUBERNETES = objectKey("default", "kubernetes");

/**
 * Of the API servers, by the slices of KUBERNETES, and of the nodes: their kubelets, whose port is this one's, since what another node says of its own would be any, and their ends of the tunnel, as what
 * the kernel sends there passes the same hooks as any packet of this machine. `asked`: what this machine itself relies on over TCP, as a server on its datastore and an agent on
 * servers behind a load balancer, which may be a Service of this cluster.
 */
export function keptPorts(kubernetes: readonly Readonly<EndpointSlice>[], { own, nodes, asked = [] }: {
  readonly own: Readonly<Node> | undefined;
  readonly nodes: Iterable<Readonly<Node>>;
  readonly asked?: readonly Asked[] | undefined;
}): KeptPorts {
  const kept = new Map<string, Set<string>>();
  const keep = (text: string, protocol: ProxyProtocol | "external tcp", port: number | null | undefined): void => {
    const ip = port ? parseStoredIp(text) : undefined;
    if (ip && port) kept.set(formatIp(ip), (kept.get(formatIp(ip)) ?? new Set<string>()).add(`${protocol} ${port}`));
  };
  for (const { ports, endpoints } of kubernetes) for (const { port } of ports ?? []) for (const { addresses } of endpoints ?? []) for (const one of addresses) keep(one, "tcp", port);
  for (const { host, port } of asked) keep(host, "external tcp", port); // a name is no address
  const kubeletPort = own?.status?.daemonEndpoints?.kubeletEndpoint?.Port;
  for (const { status } of nodes) for (const { type, address } of status?.addresses ?? []) {
    if (!type.endsWith("IP")) continue;
    keep(address, "tcp", kubeletPort);
    keep(address, "udp", VXLAN_PORT);
  }
  return kept;
}

export interface Backend { readonly ip: string; readonly port: number; readonly local: boolean }

/** One port of a Service in one address family. */
export interface PortPlan {
  readonly family: Family;
  readonly namespace: string;
  readonly service: string;
  /** "" for the only port of a Service without a name. */
  readonly portName: string;
  readonly protocol: ProxyProtocol;
  readonly clusterIp: string;
  readonly port: number;
  /** 0: none. */
  readonly nodePort: number;
  readonly externalIps: readonly string[];
  readonly loadBalancerIps: readonly string[];
  /** Who may use `loadBalancerIps`; empty: everyone. If the node itself may, its packets to them come from those addresses. */
  readonly sourceRanges: readonly string[];
  readonly nodeInSourceRanges: boolean;
  /** How long a client is kept with its endpoint; 0: not at all. */
  readonly affinitySeconds: number;
  readonly internalLocal: boolean;
  readonly externalLocal: boolean;
  /** On Windows only: what comes for a load balancer reaches endpoints of this node, with the address it was meant for. */
  readonly preservesDestination: boolean;
  readonly clusterBackends: readonly Backend[];
  readonly localBackends: readonly Backend[];
  /** UDP only: all that serve, whatever the policy. Flows to others are stale. */
  readonly servingBackends: readonly Backend[];
  /** Whether any node has an endpoint: decides between rejecting and dropping. */
  readonly anyBackend: boolean;
}

export interface ServicePlan {
  readonly ports: readonly PortPlan[];
  /** externalTrafficPolicy Local: load balancers ask this port whether the node has endpoints. */
  readonly healthCheck: { readonly port: number; readonly localEndpoints: number } | undefined;
}

interface Candidate extends Backend { readonly ready: boolean; readonly serving: boolean; readonly terminating: boolean; readonly draining: boolean; readonly forNodes: readonly string[]; readonly forZones: readonly string[] }

const NOTHING: ServicePlan = { ports: [], healthCheck: undefined };

export function planService({ metadata, spec = {}, status = {} }: Readonly<Service>, slices: readonly Readonly<EndpointSlice>[], node: ProxyNode): ServicePlan {
  const clusterIps = spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []);
  const headless = clusterIps.length === 0 || clusterIps[0] === "None" || clusterIps[0] === "";
  if (spec.type === "ExternalName" || headless || metadata.labels?.[PROXY_NAME_LABEL] !== undefined) return NOTHING;
  const used = slices.filter((slice) => slice.metadata.labels?.[HEADLESS_LABEL] === undefined); // whose they are is for the Service to say
  const external = spec.type === "NodePort" || spec.type === "LoadBalancer" || (spec.externalIPs?.length ?? 0) > 0;
  const externalLocal = external && spec.externalTrafficPolicy === "Local";

  const balancers = (status.loadBalancer?.ingress ?? []).flatMap(({ ip, ipMode = "VIP" }) => (ip !== undefined && ipMode === "VIP" ? [ip] : []));

  const ports: PortPlan[] = [];
  for (const clusterIp of clusterIps) {
    const family = parseStoredIp(clusterIp)?.family;
    if (family === undefined) continue;
    const ofFamily = (ips: readonly (string | undefined)[]): string[] => [...new Set(ips.flatMap((ip) => {
      const parsed = ip === undefined ? undefined : parseStoredIp(ip);
      return parsed?.family === family ? [formatIp(parsed)] : [];
    }))];
    const ranges = sourceRanges(spec.loadBalancerSourceRanges ?? [], family);
    const isReached = (ip: string): boolean => { const parsed = parseStoredIp(ip); return parsed !== undefined && ranges.some((range) => cidrContains(range, parsed)); };
    const perPort = Math.floor(PAIRS_MAX / Math.max(1, spec.ports?.length ?? 0));
    const shared = {
      externalIps: ofFamily(spec.externalIPs ?? []).slice(0, perPort),
      loadBalancerIps: ofFamily(balancers.some((ip) => node.externalIps?.includes(ip)) ? [...balancers, ...node.ips] : balancers).slice(0, perPort),
      sourceRanges: ranges.slice(0, perPort).map(formatCidr),
      nodeInSourceRanges: node.ips.some(isReached),
    };
    const parts = partsOf(used, family);
    const isNear = [...shared.externalIps, ...shared.loadBalancerIps].some((ip) => node.kept?.has(ip));
    const free = ({ port, protocol }: Readonly<ServicePort>): Pick<PortPlan, "externalIps" | "loadBalancerIps"> | undefined => {
      if (!isNear) return undefined;
      const wanted = `${protocolOf(protocol)} ${port}`, isFree = (ip: string): boolean => !node.kept?.get(ip)?.has(wanted);
      return { externalIps: shared.externalIps.filter((ip) => isFree(ip) && !node.kept?.get(ip)?.has(`external ${wanted}`)), loadBalancerIps: shared.loadBalancerIps.filter(isFree) };
    };
    for (const port of spec.ports ?? []) {
      const base = {
        family, namespace: metadata.namespace ?? "", service: metadata.name, portName: port.name ?? "", protocol: protocolOf(port.protocol),
        clusterIp: ofFamily([clusterIp])[0]!, port: port.port, nodePort: port.nodePort ?? 0,
        ...shared, ...free(port),
        affinitySeconds: spec.sessionAffinity === "ClientIP" ? (spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? 10_800) : 0,
        internalLocal: spec.internalTrafficPolicy === "Local", externalLocal, preservesDestination: metadata.annotations?.[PRESERVE_DESTINATION] === "true",
      };
      ports.push({ ...base, ...choose(candidates(port, parts, { node, most: perPort }), base, node) });
    }
  }
  const healthPort = spec.type === "LoadBalancer" && externalLocal ? (spec.healthCheckNodePort ?? 0) : 0;
  return { ports, healthCheck: healthPort === 0 ? undefined : { port: healthPort, localEndpoints: countLocalReady(used, clusterIps.map((ip) => (ip.includes(":") ? "IPv6" : "IPv4")), node) } };
}

/** "0.0.0.0/0" among them allows everyone, as none at all does. */
function sourceRanges(texts: readonly string[], family: Family) {
  const ranges = texts.flatMap((text) => parseStoredCidr(text.trim()) ?? []).filter((range) => range.family === family);
  return ranges.some(({ prefix }) => prefix === 0) ? [] : ranges;
}

function protocolOf(protocol: string | undefined): ProxyProtocol {
  return protocol === "UDP" ? "udp" : protocol === "SCTP" ? "sctp" : "tcp";
}

/** A slice's ports by name and protocol, and its endpoints' first addresses. */
interface Part { readonly ports: ReadonlyMap<string, number | undefined>; readonly endpoints: readonly { readonly endpoint: Readonly<Endpoint>; readonly ip: string }[] }

function partsOf(slices: readonly Readonly<EndpointSlice>[], family: Family): Part[] {
  return slices.filter(({ addressType }) => addressType === (family === 4 ? "IPv4" : "IPv6")).map(({ ports = [], endpoints = [] }) => ({
    ports: new Map((ports ?? []).toReversed().map((port): [string, number | undefined] => [portKey(port), port.port])), // the first of a name counts
    endpoints: (endpoints ?? []).flatMap((endpoint) => {
      const ip = parseStoredIp(endpoint.addresses[0] ?? "");
      return ip?.family === family ? [{ endpoint, ip: formatIp(ip) }] : [];
    }),
  }));
}

/** Endpoints of one port, each address and port once: while it is moved one stands in two slices, and a pod may have the address of one that is on its way out. */
function candidates(port: Readonly<ServicePort>, parts: readonly Part[], { node, most }: { readonly node: ProxyNode; readonly most: number }): Candidate[] {
  const found = new Map<string, Candidate>(), key = portKey(port);
  for (const { ports, endpoints } of parts) {
    const number = ports.get(key);
    if (number == null || number < 1 || number > PORT_MAX) continue; // the API takes any: the kernel would refuse it with all other rules
    for (const { endpoint, ip } of endpoints) {
      const candidate = candidateOf(endpoint, ip, number, node);
      const at = `${ip} ${number}`;
      const before = found.get(at);
      if (before ? isBetter(candidate, before) : found.size < most) found.set(at, candidate);
    }
  }
  return [...found.values()].sort((a, b) => (a.ip === b.ip ? a.port - b.port : a.ip < b.ip ? -1 : 1));
}

/** Who stays goes before who is on the way out, ready or not. */
function isBetter(one: Candidate, other: Candidate): boolean {
  return one.terminating === other.terminating ? one.ready && !other.ready : other.terminating;
}

function portKey({ name = "", protocol }: Readonly<EndpointPort> | Readonly<ServicePort>): string { return `${protocolOf(protocol)} ${name}`; }

function candidateOf({ conditions, nodeName, hints }: Readonly<Endpoint>, ip: string, port: number, node: ProxyNode): Candidate {
  const ready = conditions?.ready ?? true;
  const serving = conditions?.serving ?? true;
  const terminating = conditions?.terminating ?? false;
  return {
    ip, port, local: nodeName === node.name, ready, serving, terminating,
    draining: serving && terminating,
    forNodes: hints?.forNodes?.map(({ name }) => name) ?? [],
    forZones: hints?.forZones?.map(({ name }) => name) ?? [],
  };
}

type Choice = Pick<PortPlan, "clusterBackends" | "localBackends" | "servingBackends" | "anyBackend">;
type Policies = Pick<PortPlan, "protocol" | "internalLocal" | "externalLocal" | "nodePort" | "externalIps" | "loadBalancerIps">;

function choose(all: readonly Candidate[], { protocol, internalLocal, externalLocal, nodePort, externalIps, loadBalancerIps }: Policies, node: ProxyNode): Choice {
  const accessible = nodePort !== 0 || externalIps.length > 0 || loadBalancerIps.length > 0;
  const usesCluster = !internalLocal || accessible; // even with external policy Local: this cluster's own traffic is not held to it
  const usesLocal = internalLocal || (externalLocal && accessible);
  const ready = all.filter((candidate) => candidate.ready);
  const draining = all.filter((candidate) => !candidate.ready && candidate.draining);
  const pick = (isMine: (candidate: Candidate) => boolean): Candidate[] => {
    const best = ready.filter(isMine);
    return best.length > 0 ? best : draining.filter(isMine);
  };
  const cluster = ready.length > 0 ? nearest(ready, node) : draining;
  return {
    clusterBackends: usesCluster ? cluster.map(backendOf) : [],
    localBackends: usesLocal ? pick(({ local }) => local).map(backendOf) : [],
    servingBackends: protocol === "udp" ? all.filter(({ serving }) => serving).map(backendOf) : [],
    anyBackend: ready.length > 0 || draining.length > 0,
  };
}

/** Hints are followed only if every endpoint has them and one is meant for us: else some endpoint would get nobody's traffic, or we would have none. */
function nearest(ready: readonly Candidate[], node: ProxyNode): readonly Candidate[] {
  if (ready.every(({ forNodes }) => forNodes.length > 0)) {
    const here = ready.filter(({ forNodes }) => forNodes.includes(node.name));
    if (here.length > 0) return here;
  }
  const { zone } = node;
  if (zone !== undefined && ready.every(({ forZones }) => forZones.length > 0)) {
    const inZone = ready.filter(({ forZones }) => forZones.includes(zone));
    if (inZone.length > 0) return inZone;
  }
  return ready;
}

function backendOf({ ip, port, local }: Candidate): Backend { return { ip, port, local }; }

/** An endpoint with addresses of both families counts once; one that has none of the ports that are looked for, not at all. */
function countLocalReady(slices: readonly Readonly<EndpointSlice>[], addressTypes: readonly string[], node: ProxyNode): number {
  const count = (type: string): number => {
    const ours = slices.filter(({ addressType, ports }) => addressType === type && ports?.some(({ port }) => port)).flatMap(({ endpoints }) => endpoints ?? []).filter(({ conditions, nodeName }) => nodeName === node.name && (conditions?.ready ?? true));
    return new Set(ours.map(({ addresses }) => addresses[0])).size;
  };
  return Math.max(0, ...addressTypes.map(count));
}
