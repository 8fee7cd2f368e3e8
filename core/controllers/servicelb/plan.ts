/**
 * Which addresses a Service of type LoadBalancer has: those of the nodes; with externalTrafficPolicy Local those that have endpoints, as long as there are any. Pure.
 *
 *   Services, Nodes, EndpointSlices ─▶ planLoadBalancer ─▶ status.loadBalancer.ingress, or why there is none
 *
 * A port can be had once on a node: the oldest Service that wants it has it, and the others wait; so they do for an older one's node port. What the ingress wants, the Service of a single Gateway has not, however old it is.
 * Ports the cluster itself is reached at are not given away.
 */
import type { LoadBalancerIngress, Node, Service } from "../../api/gen/core.v1.ts";
import type { EndpointConditions, EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { compareText } from "../../api/meta/compare-text.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { isDeleting, keyOf, labelsOf } from "../../api/meta/object-meta.ts";
import { nodeAddresses } from "../../client/node-addresses.ts";
import { isFrontService, isIngressService } from "../../ingress/gateway-fronts.ts";
import { parseIp } from "../../net/cidr.ts";

/** Upstream's, for nodes that load balancers leave out. */
const EXCLUDE_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers";
const TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler";

/** A port of the nodes that no Service may take, and what for. */
export interface ReservedPort { readonly protocol: "TCP" | "UDP"; readonly port: number; readonly why: string }

export interface LoadBalancerWorld {
  readonly nodes: readonly Readonly<Node>[];
  /** Of this Service. */
  readonly slices: readonly Readonly<EndpointSlice>[];
  /** All Services that are ours to serve, this one among them. */
  readonly rivals: readonly Readonly<Service>[];
  /** Services that have such a node port, as "TCP 30080". */
  readonly nodePortsAt: (port: string) => readonly Readonly<Service>[];
  readonly reserved: readonly ReservedPort[];
}

export type LoadBalancerPlan = { readonly ingress: readonly LoadBalancerIngress[] } | { readonly refusal: string };

/** With a class it is somebody else's. */
export function isOurs({ spec, metadata }: Readonly<Service>): boolean {
  return spec?.type === "LoadBalancer" && spec.loadBalancerClass === undefined && metadata.deletionTimestamp === undefined;
}

export function planLoadBalancer(service: Readonly<Service>, { nodes, slices, rivals, nodePortsAt, reserved }: LoadBalancerWorld): LoadBalancerPlan {
  const rivalsAt = byPort(rivals);
  for (const { protocol = "TCP", port } of service.spec?.ports ?? []) {
    const kept = reserved.find((one) => one.protocol === protocol && one.port === port);
    if (kept) return { refusal: `port ${port}/${protocol} of the nodes is ${kept.why}` };
    const first = firstOf([...rivalsAt.get(`${protocol} ${port}`) ?? []]);
    if (first && keyOf(first) !== keyOf(service)) return { refusal: `port ${port}/${protocol} of the nodes is used by service ${keyOf(first)}` };
    const older = nodePortsAt(`${protocol} ${port}`).find((one) => compareText(ageOf(one), ageOf(service)) < 0);
    if (older) return { refusal: `port ${port}/${protocol} of the nodes is the node port of service ${keyOf(older)}` };
  }
  const local = service.spec?.externalTrafficPolicy === "Local" ? nodesWithEndpoints(slices) : undefined;
  const wanted = service.spec?.loadBalancerIP;
  const balancing = nodes.filter(isBalancing);
  const withEndpoints = local === undefined ? balancing : balancing.filter(({ metadata }) => local.has(metadata.name));
  const serving = (withEndpoints.length > 0 ? withEndpoints : balancing).toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const outside = balancing.some((node) => nodeAddresses(node, "ExternalIP").length > 0);
  const families = new Set(service.spec?.ipFamilies ?? ["IPv4"]);
  const ips = serving.flatMap((node) => nodeAddresses(node, outside ? "ExternalIP" : "InternalIP")).filter((ip) => families.has(parseIp(ip)?.family === 6 ? "IPv6" : "IPv4"));
  if (wanted && !balancing.some((node) => [...nodeAddresses(node, "InternalIP"), ...nodeAddresses(node, "ExternalIP")].includes(wanted))) return { refusal: `no node has the address ${wanted}` };
  return { ingress: [...new Set(wanted ? ips.filter((ip) => ip === wanted) : ips)].map((ip) => ({ ip, ipMode: "VIP" })) };
}

/** Who wants which port, by "TCP 80". */
function byPort(services: readonly Readonly<Service>[]): ReadonlyMap<string, ReadonlySet<Readonly<Service>>> {
  const found = new Map<string, Set<Readonly<Service>>>();
  for (const one of services)
    for (const { protocol = "TCP", port } of one.spec?.ports ?? []) {
      const key = `${protocol} ${port}`;
      const wanting = found.get(key);
      if (wanting) wanting.add(one);
      else found.set(key, new Set([one]));
    }
  return found;
}

/** Who has a port of those that want it. */
function firstOf(rivals: readonly Readonly<Service>[]): Readonly<Service> | undefined {
  const hasIngress = rivals.some(isIngressService);
  return rivals.filter((one) => !hasIngress || isIngressService(one) || !isFrontService(one)).toSorted(byAge)[0];
}

/** "TCP 30080" for each of its node ports, whatever its type and whoever serves that, and for the one where its health is told. */
export function nodePortsOf({ spec }: Readonly<Service>): string[] {
  return [...spec?.ports ?? [], { nodePort: spec?.healthCheckNodePort, protocol: "TCP" }].flatMap(({ protocol = "TCP", nodePort }) => (nodePort ? [`${protocol} ${nodePort}`] : []));
}

function ageOf(service: Readonly<Service>): string { return `${service.metadata.creationTimestamp ?? ""} ${keyOf(service)}`; }

/** Of one second, who has an address already keeps it. */
function byAge(a: Readonly<Service>, b: Readonly<Service>): number {
  const order = (one: Readonly<Service>): string => `${one.metadata.creationTimestamp ?? ""} ${one.status?.loadBalancer?.ingress?.length ? 0 : 1} ${keyOf(one)}`;
  return compareText(order(a), order(b));
}

function isBalancing(node: Readonly<Node>): boolean {
  return !isDeleting(node) && labelsOf(node)[EXCLUDE_LABEL] === undefined && !node.spec?.taints?.some(({ key }) => key === TO_BE_DELETED_TAINT) && isConditionTrue(node.status?.conditions, "Ready");
}

/** Ready ones, and those that are ending but serve until they have: the node's proxy falls back to them, and its address is the only way there. */
function nodesWithEndpoints(slices: readonly Readonly<EndpointSlice>[]): ReadonlySet<string> {
  const serves = ({ ready = true, serving = ready, terminating = false }: EndpointConditions = {}): boolean => ready || (serving && terminating);
  return new Set(slices.flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ nodeName, conditions }) => (nodeName !== undefined && serves(conditions) ? [nodeName] : []))));
}
