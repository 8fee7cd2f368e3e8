/**
 * What makes requests arrive at the nodes' ingress: a Service of type LoadBalancer, and EndpointSlices with the ready nodes that have one. A Gateway that does not go together with older
 * ones has such a Service of its own. Pure.
 *
 * externalTrafficPolicy Local: the node that a request arrives at serves it, and knows where it comes from.
 */
import type { Node, Service, ServicePort, ServiceStatus } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { IngressLoadBalancerIngress } from "../../api/gen/networking.v1.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { isDeleting, keyOf, labelsOf, type NewObject } from "../../api/meta/object-meta.ts";
import { nodeAddresses } from "../../client/node-addresses.ts";
import { isOurNode } from "../../client/our-nodes.ts";
import { INGRESS_SLICE_MANAGER } from "../../client/our-slices.ts";
import { doorsOf, GATEWAY_SERVICE_LABELS, ownServiceName, portName, type Protocol, TARGET_PORTS } from "../../ingress/gateway-fronts.ts";
import { GATEWAY_GROUP, type Gateway } from "../../ingress/gateway-types.ts";
import { HTTP_PORT, HTTPS_PORT, INGRESS_SERVICE } from "../../ingress/ingress-class.ts";
import { parseIp } from "../../net/cidr.ts";

const LABELS = { "app.kubernetes.io/name": "coracle-ingress" };
/** Source: kubernetes v1.36 pkg/apis/discovery/validation/validation.go */
const ENDPOINTS_MAX = 1000;

export function ingressService(): NewObject<Service> {
  const port = (name: string, number: number, targetPort: number) => ({ name, port: number, protocol: "TCP", targetPort, appProtocol: name }) as const;
  return {
    apiVersion: "v1", kind: "Service", metadata: { ...INGRESS_SERVICE, labels: LABELS },
    spec: { type: "LoadBalancer", externalTrafficPolicy: "Local", ipFamilyPolicy: "PreferDualStack", ports: [port("http", 80, HTTP_PORT), port("https", 443, HTTPS_PORT)] },
  };
}

/** For one Gateway; its ports are those of `withPorts`. */
export function gatewayService({ metadata }: Readonly<Gateway>): NewObject<Service> {
  return {
    apiVersion: "v1", kind: "Service",
    metadata: {
      name: ownServiceName(keyOf({ metadata })), namespace: metadata.namespace ?? "", labels: { ...LABELS, ...GATEWAY_SERVICE_LABELS, ...gatewayNameLabel(metadata.name) },
      ownerReferences: [{ apiVersion: `${GATEWAY_GROUP}/v1`, kind: "Gateway", name: metadata.name, uid: metadata.uid, controller: true }],
    },
    spec: { type: "LoadBalancer", externalTrafficPolicy: "Local", ipFamilyPolicy: "PreferDualStack", ports: [] },
  };
}

/** Longer names than labels may be are told by the owner alone. */
function gatewayNameLabel(name: string): Record<string, string> { return name.length <= 63 ? { "gateway.networking.k8s.io/gateway-name": name } : {}; }

/**
 * The ports a Service should have: what is there that is not a Gateway's stays, what is wanted and not there gets a port of the nodes that no other Service of ours (`taken`)
 * has. Undefined: they are as they should be, or there is no more room.
 */
export function withPorts(service: Pick<Service, "spec">, wanted: ReadonlyMap<number, Protocol>, taken: ReadonlySet<number>): ServicePort[] | undefined {
  const ports = service.spec?.ports ?? [], names = new Map([...wanted].map(([port, protocol]) => [portName(port), { port, protocol }]));
  const kept = ports.filter(({ name = "" }) => !/^gateway-\d+$/.test(name) || names.has(name)).map((one) => {
    const protocol = names.get(one.name ?? "")?.protocol.toLowerCase();
    return protocol === undefined || protocol === one.appProtocol ? one : { ...one, appProtocol: protocol };
  });
  const used = new Set([...taken, ...kept.map(({ targetPort }) => targetPort)]);
  const added = [...names].flatMap(([name, { port, protocol }]): ServicePort[] => {
    if (kept.some((one) => one.name === name)) return [];
    let target: number = TARGET_PORTS.first;
    while (used.has(target) && target <= TARGET_PORTS.last) target++;
    if (target > TARGET_PORTS.last) return [];
    used.add(target);
    return [{ name, port, protocol: "TCP", targetPort: target, appProtocol: protocol.toLowerCase() }];
  });
  return added.length === 0 && kept.length === ports.length && kept.every((one) => ports.includes(one)) ? undefined : [...kept, ...added];
}

export function ingressSlices(service: Readonly<Service>, nodes: readonly Readonly<Node>[]): NewObject<EndpointSlice>[] {
  const usable = nodes.filter((node) => !isDeleting(node) && isOurNode(node) && labelsOf(node)["kubernetes.io/os"] !== "windows").toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return (["IPv4", "IPv6"] as const).filter((family) => service.spec?.ipFamilies?.includes(family)).flatMap((addressType) => {
    const endpoints = usable.flatMap((node) => {
      const address = nodeAddresses(node, "InternalIP").find((one) => parseIp(one)?.family === (addressType === "IPv4" ? 4 : 6));
      const ready = isConditionTrue(node.status?.conditions, "Ready");
      return address === undefined ? [] : [{ addresses: [address], conditions: { ready, serving: ready, terminating: false }, nodeName: node.metadata.name }];
    });
    const chunks = Array.from({ length: Math.max(1, Math.ceil(endpoints.length / ENDPOINTS_MAX)) }, (_, i) => endpoints.slice(i * ENDPOINTS_MAX, (i + 1) * ENDPOINTS_MAX));
    return chunks.map((chunk, i): NewObject<EndpointSlice> => ({
      apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice",
      metadata: {
        name: `${service.metadata.name}-${addressType.toLowerCase()}${i === 0 ? "" : `-${i}`}`, namespace: service.metadata.namespace ?? INGRESS_SERVICE.namespace,
        labels: { "kubernetes.io/service-name": service.metadata.name, "endpointslice.kubernetes.io/managed-by": INGRESS_SLICE_MANAGER },
        ownerReferences: [{ apiVersion: "v1", kind: "Service", name: service.metadata.name, uid: service.metadata.uid, controller: true, blockOwnerDeletion: true }],
      },
      addressType, endpoints: chunk,
      ports: slicePorts(service),
    }));
  });
}

function slicePorts(service: Readonly<Service>): { name: string; port: number; protocol: "TCP"; appProtocol: string }[] {
  const fixed = service.metadata.name === INGRESS_SERVICE.name ? [{ name: "http", port: HTTP_PORT, protocol: "TCP", appProtocol: "http" } as const, { name: "https", port: HTTPS_PORT, protocol: "TCP", appProtocol: "https" } as const] : [];
  return [...fixed, ...doorsOf(service, undefined).map(({ port, target }) => ({ name: portName(port), port: target, protocol: "TCP" as const, appProtocol: service.spec?.ports?.find(({ name }) => name === portName(port))?.appProtocol ?? "http" }))];
}

/** Where clients reach an Ingress: where they reach the Service. */
export function publishedAt(status: Readonly<ServiceStatus> | undefined): IngressLoadBalancerIngress[] {
  return (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ({ ...(ip === undefined ? {} : { ip }), ...(hostname === undefined ? {} : { hostname }) }));
}
