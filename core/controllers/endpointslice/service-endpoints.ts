/**
 * The endpoints a Service has in the pods it selects. No I/O.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/endpointslice/{utils,reconciler}.go, util/controller_utils.go, trafficdist
 */
import type { Node, Pod, PodSpec, Service, ServicePort } from "../../api/gen/core.v1.ts";
import type { Endpoint, EndpointHints, EndpointPort } from "../../api/gen/discovery.v1.ts";
import { isDeleting, labelsOf, namespaceOf } from "../../api/meta/object-meta.ts";
import { labelIn } from "../../api/meta/selector-places.ts";
import type { Index, Informer } from "../../client/informer.ts";
import { formatIp, parseIp } from "../../net/cidr.ts";
import { PODS_BY_LABEL } from "../found-by-label.ts";
import { isReady, isTerminal } from "../pod-state.ts";
import { type Group, portsKey } from "./plan.ts";
import { usesTopologyMode } from "./topology-hints.ts";

export const HEADLESS_LABEL = "service.kubernetes.io/headless";
const ZONE_LABEL = "topology.kubernetes.io/zone";

export function isHeadless({ spec }: Readonly<Service>): boolean { return !spec.clusterIP || spec.clusterIP === "None"; }

/** A Service whose endpoints are found by us: not those that name their own. */
export function selectsPods({ spec }: Readonly<Service>): boolean { return spec.type !== "ExternalName" && Object.keys(spec.selector ?? {}).length > 0; }

function selects({ spec: { selector = {} } }: Readonly<Service>, labels: Readonly<Record<string, string>>): boolean {
  for (const key in selector) if (labels[key] !== selector[key]) return false;
  return true;
}

/** By one label it selects: a pod that has it may be its. */
const SERVICES_BY_SELECTOR: Index<Service> = {
  name: "selector",
  valuesOf(service) {
    const [first] = Object.entries(service.spec.selector ?? {});
    return first ? [labelIn(namespaceOf(service), ...first)] : [];
  },
};

/** The pods a Service selects; none without a selector. */
export function selectedPods(pods: Pick<Informer<Pod>, "by">, service: Readonly<Service>): readonly Readonly<Pod>[] {
  const candidates = Object.entries(service.spec.selector ?? {}).map(([key, value]) => pods.by(PODS_BY_LABEL, labelIn(namespaceOf(service), key, value)));
  const [fewest = []] = candidates.sort((a, b) => a.length - b.length);
  return fewest.filter((pod) => selects(service, labelsOf(pod)));
}

/** The Services that select a pod. */
export function servicesOf(services: Pick<Informer<Service>, "by">, pod: Readonly<Pod>): readonly Readonly<Service>[] {
  const labels = labelsOf(pod), namespace = namespaceOf(pod), found: Readonly<Service>[] = [];
  for (const key in labels) for (const service of services.by(SERVICES_BY_SELECTOR, labelIn(namespace, key, labels[key]!))) if (selects(service, labels)) found.push(service);
  return found;
}

export function isIpv6(ip: string): boolean { return ip.includes(":"); }

/** IPv6 may be spelled in many ways; endpoints have the shortest. */
export function canonicalIp(ip: string): string {
  const parsed = isIpv6(ip) ? parseIp(ip) : undefined;
  return parsed === undefined ? ip : formatIp(parsed);
}

export function addressTypesOf({ spec }: Readonly<Service>): readonly string[] {
  const families = spec.ipFamilies ?? [];
  if (families.length > 0) return [...new Set(families)];
  if (spec.clusterIP && spec.clusterIP !== "None") return [isIpv6(spec.clusterIP) ? "IPv6" : "IPv4"];
  return ["IPv4", "IPv6"];
}

/** It has an address and is not over. */
export function hasAddress(pod: Readonly<Pod>): boolean {
  return !isTerminal(pod) && (Boolean(pod.status?.podIP) || (pod.status?.podIPs?.length ?? 0) > 0);
}

/** Whether all of a pod that its endpoints show is as it was: then they are, too, of whoever selects it as before. */
export function sameEndpoint(pod: Readonly<Pod>, old: Readonly<Pod>): boolean {
  const { spec, status } = pod, before = old.spec, was = old.status;
  return (spec.nodeName ?? "") === (before.nodeName ?? "") && (spec.hostname ?? "") === (before.hostname ?? "") && (spec.subdomain ?? "") === (before.subdomain ?? "")
    && (status?.podIP ?? "") === (was?.podIP ?? "") && Bun.deepEquals(status?.podIPs ?? [], was?.podIPs ?? [])
    && isDeleting(pod) === isDeleting(old) && isReady(pod) === isReady(old) && isTerminal(pod) === isTerminal(old);
}

/** The container port behind a service port; undefined when the pod has none of that name. Both may have thousands: the pod's are gone through once. */
export function targetPorts({ spec }: Readonly<Pod>): (port: Readonly<ServicePort>) => number | undefined {
  let named: Map<string, number> | undefined;
  return ({ targetPort: target, port, protocol = "TCP" }) => {
    if (typeof target === "number") return target;
    if (target === undefined || target === "") return port;
    return (named ??= namedPorts(spec)).get(`${target} ${protocol}`);
  };
}

/** By name and protocol: the first of each. */
function namedPorts({ containers, initContainers = [] }: Readonly<PodSpec>): Map<string, number> {
  const named = new Map<string, number>();
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === "Always");
  for (const { ports = [] } of [...containers, ...sidecars])
    for (const { name, protocol = "TCP", containerPort } of ports) if (name && !named.has(`${name} ${protocol}`)) named.set(`${name} ${protocol}`, containerPort);
  return named;
}

interface OfferedPorts { readonly key: string; readonly ports: EndpointPort[] }

/** What a pod offers of a service: the same for all that call these numbers alike, of whom there may be ten thousand. */
function offersOf({ spec: { ports = [] } }: Readonly<Service>): (pod: Readonly<Pod>) => OfferedPorts {
  const known = new Map<string, OfferedPorts>();
  return (pod) => {
    const numbers = ports.map(targetPorts(pod)), text = numbers.join();
    const offered = known.get(text) ?? offer(ports, numbers);
    known.set(text, offered);
    return offered;
  };
}

function offer(servicePorts: readonly ServicePort[], numbers: readonly (number | undefined)[]): OfferedPorts {
  const ports = servicePorts.flatMap(({ name = "", protocol = "TCP", appProtocol }, i) => {
    const port = numbers[i];
    return port === undefined ? [] : [{ name, port, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) }];
  });
  return { key: portsKey(ports), ports };
}

interface Found {
  readonly groups: readonly Group[];
  /** Pods left out because their node is unknown. */
  readonly skipped: readonly Readonly<Pod>[];
}

export function groupsFor(service: Readonly<Service>, pods: readonly Readonly<Pod>[], addressType: string, nodeOf: (name: string) => Readonly<Node> | undefined): Found {
  const groups = new Map<string, { readonly ports: EndpointPort[]; readonly endpoints: Endpoint[] }>();
  const skipped: Readonly<Pod>[] = [];
  const offered = offersOf(service);
  for (const pod of pods) {
    if (!hasAddress(pod)) continue;
    const { key, ports } = offered(pod);
    const group = groups.get(key) ?? { ports, endpoints: [] };
    groups.set(key, group);
    const node = pod.spec.nodeName ? nodeOf(pod.spec.nodeName) : undefined;
    if (node === undefined && !service.spec.publishNotReadyAddresses) {
      skipped.push(pod);
      continue;
    }
    const endpoint = endpointFor(service, pod, node, addressType);
    if (endpoint.addresses.length > 0) group.endpoints.push(endpoint);
  }
  return { groups: [...groups.values()], skipped };
}

function endpointFor(service: Readonly<Service>, pod: Readonly<Pod>, node: Readonly<Node> | undefined, addressType: string): Endpoint {
  const serving = isReady(pod);
  const terminating = isDeleting(pod);
  const ready = service.spec.publishNotReadyAddresses === true || (serving && !terminating);
  const zone = node === undefined ? undefined : labelsOf(node)[ZONE_LABEL];
  const { nodeName } = pod.spec;
  const hints = ready ? hintsFor(service, zone, nodeName) : undefined;
  return {
    addresses: (pod.status?.podIPs ?? []).flatMap(({ ip }) => (ip && isIpv6(ip) === (addressType === "IPv6") ? [canonicalIp(ip)] : [])),
    conditions: { ready, serving, terminating },
    targetRef: { kind: "Pod", namespace: namespaceOf(pod), name: pod.metadata.name, uid: pod.metadata.uid },
    ...(nodeName ? { nodeName } : {}), ...(zone ? { zone } : {}), ...(hasOwnName(pod, service) ? { hostname: pod.spec.hostname } : {}),
    ...(hints === undefined ? {} : { hints }),
  };
}

/** It has a DNS name of its own below the service's. */
export function hasOwnName(pod: Readonly<Pod>, service: Readonly<Service>): boolean {
  return Boolean(pod.spec.hostname) && pod.spec.subdomain === service.metadata.name && namespaceOf(pod) === namespaceOf(service);
}

function hintsFor(service: Readonly<Service>, zone: string | undefined, nodeName: string | undefined): EndpointHints | undefined {
  const { trafficDistribution } = service.spec;
  if (usesTopologyMode(service)) return undefined; // topology-hints.ts, once all endpoints are known
  if (trafficDistribution !== "PreferClose" && trafficDistribution !== "PreferSameZone" && trafficDistribution !== "PreferSameNode") return undefined;
  const forZones = zone ? { forZones: [{ name: zone }] } : {};
  const forNodes = nodeName && trafficDistribution === "PreferSameNode" ? { forNodes: [{ name: nodeName }] } : {};
  const hints = { ...forZones, ...forNodes };
  return Object.keys(hints).length === 0 ? undefined : hints;
}
