/**
 * What makes requests arrive at the nodes' ingress: a Service of type LoadBalancer, and EndpointSlices with the ready nodes. Pure.
 *
 * externalTrafficPolicy Local: the node that a request arrives at serves it, and knows where it comes from.
 */
import type { Node, Service, ServiceStatus } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { IngressLoadBalancerIngress } from "../../api/gen/networking.v1.ts";
import { isDeleting, labelsOf, type NewObject } from "../../api/meta/object-meta.ts";
import { HTTP_PORT, HTTPS_PORT, INGRESS_SERVICE } from "../../ingress/ingress-class.ts";
import { parseIp } from "../../net/cidr.ts";
import { findCondition } from "../conditions.ts";

export const INGRESS_SLICE_MANAGER = "coracle-ingress";
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

export function ingressSlices(service: Readonly<Service>, nodes: readonly Readonly<Node>[]): NewObject<EndpointSlice>[] {
  const usable = nodes.filter((node) => !isDeleting(node) && labelsOf(node)["kubernetes.io/os"] !== "windows").toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return (["IPv4", "IPv6"] as const).filter((family) => service.spec?.ipFamilies?.includes(family)).flatMap((addressType) => {
    const endpoints = usable.flatMap((node) => {
      const address = (node.status?.addresses ?? []).find((one) => one.type === "InternalIP" && parseIp(one.address)?.family === (addressType === "IPv4" ? 4 : 6))?.address;
      const ready = findCondition(node.status?.conditions, "Ready")?.status === "True";
      return address === undefined ? [] : [{ addresses: [address], conditions: { ready, serving: ready, terminating: false }, nodeName: node.metadata.name }];
    });
    const chunks = Array.from({ length: Math.max(1, Math.ceil(endpoints.length / ENDPOINTS_MAX)) }, (_, i) => endpoints.slice(i * ENDPOINTS_MAX, (i + 1) * ENDPOINTS_MAX));
    return chunks.map((chunk, i): NewObject<EndpointSlice> => ({
      apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice",
      metadata: {
        name: `${INGRESS_SERVICE.name}-${addressType.toLowerCase()}${i === 0 ? "" : `-${i}`}`, namespace: INGRESS_SERVICE.namespace,
        labels: { "kubernetes.io/service-name": INGRESS_SERVICE.name, "endpointslice.kubernetes.io/managed-by": INGRESS_SLICE_MANAGER },
        ownerReferences: [{ apiVersion: "v1", kind: "Service", name: service.metadata.name, uid: service.metadata.uid, controller: true, blockOwnerDeletion: true }],
      },
      addressType, endpoints: chunk,
      ports: [{ name: "http", port: HTTP_PORT, protocol: "TCP", appProtocol: "http" }, { name: "https", port: HTTPS_PORT, protocol: "TCP", appProtocol: "https" }],
    }));
  });
}

/** Where clients reach an Ingress: where they reach the Service. */
export function publishedAt(status: Readonly<ServiceStatus> | undefined): IngressLoadBalancerIngress[] {
  return (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ({ ...(ip === undefined ? {} : { ip }), ...(hostname === undefined ? {} : { hostname }) }));
}
