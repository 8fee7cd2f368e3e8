/** Services, endpoints, ingresses and addresses. Source: kubernetes v1.36 pkg/printers/internalversion/printers.go */
import type { Endpoints, LoadBalancerIngress, Service, ServicePort } from "../../gen/core.v1.ts";
import type { EndpointSlice } from "../../gen/discovery.v1.ts";
import type { Ingress, IngressClass, IngressLoadBalancerIngress, IngressRule, IPAddress, NetworkPolicy, ServiceCIDR } from "../../gen/networking.v1.ts";
import { annotationsOf } from "../../meta/object-meta.ts";
import { formatGroupResource } from "../../meta/gvk.ts";
import { AGE, column, CORE, fieldColumn, NAME, selectorColumn } from "./columns.ts";
import { since } from "./human-duration.ts";
import { always, formatLabels, formatSelector, listWithMore, printer } from "./printer.ts";

const NETWORKING = "api.networking.v1";
/** Hosts, endpoints and ports named before the rest is only counted. */
const SHOWN_MAX = 3;

export const services = printer<Service>({
  columns: [
    NAME,
    fieldColumn("Type", `${CORE}.ServiceSpec.type`),
    fieldColumn("Cluster-IP", `${CORE}.ServiceSpec.clusterIP`),
    fieldColumn("External-IP", `${CORE}.ServiceSpec.externalIPs`),
    fieldColumn("Port(s)", `${CORE}.ServiceSpec.ports`),
    AGE,
    selectorColumn(`${CORE}.ServiceSpec.selector`),
  ],
  cells: (service, nowMs) => [
    service.metadata.name,
    service.spec?.type ?? "",
    service.spec?.clusterIPs?.[0] ?? "<none>",
    externalIp(service),
    formatPorts(service.spec?.ports ?? []) || "<none>",
    since(service.metadata.creationTimestamp, nowMs),
    formatLabels(service.spec?.selector),
  ],
  agesOnly: always,
});

function externalIp({ spec, status }: Readonly<Service>): string {
  const own = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case "ClusterIP": case "NodePort": return own.join(",") || "<none>";
    case "LoadBalancer": return [...ingressPoints(status?.loadBalancer?.ingress ?? []), ...own].join(",") || "<pending>";
    case "ExternalName": return spec.externalName ?? "";
    default: return "<unknown>";
  }
}

/** Addresses, or names where there is none; each once, sorted. */
function ingressPoints(ingress: readonly (LoadBalancerIngress | IngressLoadBalancerIngress)[]): string[] {
  return [...new Set(ingress.map(({ ip, hostname }) => ip || hostname || ""))].filter((point) => point !== "").sort();
}

function formatPorts(ports: readonly ServicePort[]): string {
  return ports.map(({ port, nodePort, protocol }) => (nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`)).join(",");
}

export const endpoints = printer<Endpoints>({
  columns: [NAME, fieldColumn("Endpoints", `${CORE}.Endpoints.subsets`), AGE],
  cells: (object, nowMs) => [object.metadata.name, formatSubsets(object), since(object.metadata.creationTimestamp, nowMs)],
});

function formatSubsets({ subsets }: Readonly<Endpoints>): string {
  if (!subsets?.length) return "<none>";
  const all = subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0 ? addresses.map(({ ip }) => ip) : ports.flatMap(({ port }) => addresses.map(({ ip }) => hostPort(ip, port))));
  return all.length > SHOWN_MAX ? listWithMore(all, SHOWN_MAX) : all.join(",");
}

function hostPort(ip: string, port: number): string { return ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`; }

export const endpointSlices = printer<EndpointSlice>({
  columns: [
    NAME,
    fieldColumn("AddressType", "api.discovery.v1.EndpointSlice.addressType"),
    fieldColumn("Ports", "api.discovery.v1.EndpointSlice.ports"),
    fieldColumn("Endpoints", "api.discovery.v1.EndpointSlice.endpoints"),
    AGE,
  ],
  cells: (slice, nowMs) => [
    slice.metadata.name,
    slice.addressType,
    listWithMore((slice.ports ?? []).map(({ port, name }) => String(port ?? name ?? "*")), SHOWN_MAX),
    listWithMore((slice.endpoints ?? []).flatMap(({ addresses }) => addresses ?? []), SHOWN_MAX),
    since(slice.metadata.creationTimestamp, nowMs),
  ],
  agesOnly: always,
});

export const ingresses = printer<Ingress>({
  columns: [
    NAME,
    column("Class", "The name of the IngressClass resource that should be used for additional configuration"),
    column("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
    column("Address", "Address is a list containing ingress points for the load-balancer"),
    column("Ports", "Ports of TLS configurations that open"),
    AGE,
  ],
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name,
    spec?.ingressClassName ?? "<none>",
    formatHosts(spec?.rules ?? []),
    ingressPoints(status?.loadBalancer?.ingress ?? []).join(","),
    spec?.tls?.length ? "80, 443" : "80",
    since(metadata.creationTimestamp, nowMs),
  ],
});

function formatHosts(rules: readonly IngressRule[]): string {
  const shown: string[] = [];
  for (const { host } of rules) {
    if (shown.length === SHOWN_MAX) return `${shown.join(",")} + ${rules.length - SHOWN_MAX} more...`;
    if (host) shown.push(host);
  }
  return shown.join(",") || "*";
}

export const ingressClasses = printer<IngressClass>({
  columns: [
    NAME,
    column("Controller", "Controller that is responsible for handling this class"),
    column("Parameters", "A reference to a resource with additional parameters"),
    AGE,
  ],
  cells(object, nowMs) {
    const isDefault = annotationsOf(object)["ingressclass.kubernetes.io/is-default-class"] === "true";
    const parameters = object.spec?.parameters;
    return [
      isDefault ? `${object.metadata.name} (default)` : object.metadata.name,
      object.spec?.controller ?? "",
      parameters ? `${parameters.kind}${parameters.apiGroup === undefined ? "" : `.${parameters.apiGroup}`}/${parameters.name}` : "<none>",
      since(object.metadata.creationTimestamp, nowMs),
    ];
  },
});

export const networkPolicies = printer<NetworkPolicy>({
  columns: [NAME, fieldColumn("Pod-Selector", `${NETWORKING}.NetworkPolicySpec.podSelector`), AGE],
  cells: ({ metadata, spec }, nowMs) => [metadata.name, formatSelector(spec?.podSelector ?? {}), since(metadata.creationTimestamp, nowMs)],
});

export const serviceCidrs = printer<ServiceCIDR>({
  columns: [NAME, fieldColumn("CIDRs", `${NETWORKING}.ServiceCIDRSpec.cidrs`), AGE],
  cells: ({ metadata, spec }, nowMs) => [metadata.name, (spec?.cidrs ?? []).join(","), since(metadata.creationTimestamp, nowMs)],
});

/** Upstream prints the age without a column for it. */
export const ipAddresses = printer<IPAddress>({
  columns: [NAME, fieldColumn("ParentRef", `${NETWORKING}.IPAddressSpec.parentRef`)],
  cells({ metadata, spec }, nowMs) {
    const parent = spec?.parentRef;
    const resource = parent ? formatGroupResource({ group: parent.group ?? "", resource: parent.resource ?? "" }).toLowerCase() : "";
    return [metadata.name, parent ? [resource, parent.namespace, parent.name].filter(Boolean).join("/") : "<none>", since(metadata.creationTimestamp, nowMs)];
  },
});
