/**
 * Services: what each type may have, and the ports all of them have.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go validateService
 */
import { child, duplicate, type FieldError, forbidden, index, invalid, key, notSupported, required } from "../../../api/meta/field-error.ts";
import type { LoadBalancerStatus, Service, ServicePort } from "../../../api/gen/core.v1.ts";
import { validateLabels } from "../../../api/meta/label-selector.ts";
import { dns1123Subdomain, portNumber } from "../../../api/meta/names.ts";
import { endpointIp, legacyCidr, legacyIp, parseAddress } from "../checks/ip.ts";
import { isDns1123Label, isDns1123Subdomain, isQualifiedName, oneOf, problems } from "../checks/values.ts";
import { PROTOCOLS } from "../pod/validation/containers.ts";
import { validatePort } from "../pod/validation/probes.ts";
import { isExternallyAccessible, isHeadless, needsHealthCheck } from "./shape.ts";
import { validateClusterIpChange, validateClusterIps, validateFamilyChange } from "./validation-addresses.ts";

const TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const TRAFFIC_POLICIES = ["Cluster", "Local"];
const DISTRIBUTIONS = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE = "service.kubernetes.io/topology-mode";
const SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges";
const SESSION_SECONDS_MAX = 86_400;
const ONLY_LOAD_BALANCERS = "may only be used when `type` is 'LoadBalancer'";

export function* validateService(service: Readonly<Service>, old?: Readonly<Service>): Iterable<FieldError> {
  const { spec, metadata } = service;
  if (old) yield* validateServiceUpdate(service, old); // the first to be told
  const hints = metadata.annotations?.[TOPOLOGY_HINTS];
  const mode = metadata.annotations?.[TOPOLOGY_MODE];
  if (hints !== undefined && mode !== undefined && hints !== mode) yield invalid(key("metadata.annotations", TOPOLOGY_MODE), mode, `must match annotations[${TOPOLOGY_HINTS}] when both are specified`);
  const ports = spec.ports ?? [];
  if (ports.length === 0 && !isHeadless(service) && spec.type !== "ExternalName") yield required("spec.ports");
  yield* validateTypeFields(service);
  const names = new Set<string>();
  for (const [i, port] of ports.entries()) yield* validateServicePort(index("spec.ports", i), port, ports.length > 1, names);
  yield* validateLabels(spec.selector, "spec.selector");
  yield* oneOf("spec.sessionAffinity", spec.sessionAffinity, ["ClientIP", "None"]);
  yield* validateAffinityConfig(service);
  yield* validateClusterIps(service, old);
  const knownIps = new Set(old?.spec.externalIPs);
  for (const [i, ip] of (spec.externalIPs ?? []).entries()) {
    const errors = [...legacyIp(index("spec.externalIPs", i), ip, knownIps)];
    yield* errors.length > 0 ? errors : endpointIp(index("spec.externalIPs", i), ip);
  }
  yield* oneOf("spec.type", spec.type, TYPES);
  yield* validatePortsTogether(service);
  yield* validateLoadBalancerFields(service, old);
  yield* validateTraffic(service);
}

function* validateTypeFields(service: Readonly<Service>): Iterable<FieldError> {
  const { type, clusterIPs = [], ipFamilies = [], ipFamilyPolicy, externalName = "" } = service.spec;
  if ((type === "LoadBalancer" || type === "NodePort") && isHeadless(service)) yield invalid(index("spec.clusterIPs", 0), "None", `may not be set to 'None' for ${type} services`);
  if (type !== "ExternalName") return;
  const text = "may not be set for ExternalName services";
  if (clusterIPs.length > 0) yield forbidden("spec.clusterIPs", text);
  if (ipFamilies.length > 0) yield forbidden("spec.ipFamilies", text);
  if (ipFamilyPolicy !== undefined) yield forbidden("spec.ipFamilyPolicy", text);
  const name = externalName.replace(/\.$/, "");
  if (name === "") yield required("spec.externalName");
  else yield* isDns1123Subdomain("spec.externalName", name);
}

function* validateServicePort(path: string, port: ServicePort, needsName: boolean, names: Set<string>): Iterable<FieldError> {
  const { name = "", protocol, targetPort, appProtocol } = port;
  if (needsName && name === "") yield required(child(path, "name"));
  else if (name !== "") {
    yield* isDns1123Label(child(path, "name"), name);
    if (names.has(name)) yield duplicate(child(path, "name"), name);
    names.add(name);
  }
  yield* problems(child(path, "port"), port.port ?? 0, portNumber(port.port ?? 0));
  yield* oneOf(child(path, "protocol"), protocol, PROTOCOLS);
  yield* validatePort(child(path, "targetPort"), targetPort);
  if (appProtocol !== undefined) yield* isQualifiedName(child(path, "appProtocol"), appProtocol);
}

function* validateAffinityConfig({ spec }: Readonly<Service>): Iterable<FieldError> {
  const path = "spec.sessionAffinityConfig";
  if (spec.sessionAffinity === "None" && spec.sessionAffinityConfig) yield forbidden(path, "must not be set when session affinity is None");
  if (spec.sessionAffinity !== "ClientIP") return;
  const when = "when session affinity type is ClientIP";
  const clientIp = spec.sessionAffinityConfig?.clientIP;
  const seconds = clientIp?.timeoutSeconds;
  if (!spec.sessionAffinityConfig) yield required(path, when);
  else if (!clientIp) yield required(child(path, "clientIP"), when);
  else if (seconds === undefined) yield required(child(path, "clientIP", "timeoutSeconds"), when);
  else if (seconds <= 0 || seconds > SESSION_SECONDS_MAX) yield invalid(child(path, "clientIP", "timeoutSeconds"), seconds, `must be greater than 0 and less than ${SESSION_SECONDS_MAX}`);
}

function* validatePortsTogether({ spec }: Readonly<Service>): Iterable<FieldError> {
  const ports = spec.ports ?? [];
  const at = (i: number): string => index("spec.ports", i);
  if (spec.type === "ClusterIP") for (const [i, { nodePort }] of ports.entries()) if (nodePort) yield forbidden(child(at(i), "nodePort"), "may not be used when `type` is 'ClusterIP'");
  const nodePorts = new Set<string>();
  for (const [i, { protocol, nodePort }] of ports.entries()) {
    if (!nodePort) continue;
    if (nodePorts.has(`${protocol}/${nodePort}`)) yield duplicate(child(at(i), "nodePort"), nodePort);
    nodePorts.add(`${protocol}/${nodePort}`);
  }
  const numbers = new Set<string>();
  for (const [i, { protocol, port }] of ports.entries()) {
    if (numbers.has(`${protocol}/${port}`)) yield duplicate(at(i), { Name: "", Protocol: protocol, AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 });
    numbers.add(`${protocol}/${port}`);
  }
}

function* validateLoadBalancerFields(service: Readonly<Service>, old: Readonly<Service> | undefined): Iterable<FieldError> {
  const { spec, metadata } = service;
  const isLoadBalancer = spec.type === "LoadBalancer";
  const annotation = metadata.annotations?.[SOURCE_RANGES];
  if ((spec.loadBalancerSourceRanges ?? []).length > 0) {
    const path = "spec.LoadBalancerSourceRanges";
    if (!isLoadBalancer) yield forbidden(path, ONLY_LOAD_BALANCERS);
    const known = new Set((old?.spec.loadBalancerSourceRanges ?? []).map((range) => range.trim()));
    for (const [i, range] of spec.loadBalancerSourceRanges!.entries()) yield* legacyCidr(index(path, i), range.trim(), known);
  } else if (annotation !== undefined) {
    const path = key("metadata.annotations", SOURCE_RANGES);
    if (!isLoadBalancer) yield forbidden(path, ONLY_LOAD_BALANCERS);
    if (old?.metadata.annotations?.[SOURCE_RANGES] !== annotation && annotation.trim() !== "")
      for (const range of annotation.trim().split(",")) yield* legacyCidr(path, range.trim());
  }
  if (spec.allocateLoadBalancerNodePorts !== undefined && !isLoadBalancer) yield forbidden("spec.allocateLoadBalancerNodePorts", ONLY_LOAD_BALANCERS);
  if (isLoadBalancer && spec.allocateLoadBalancerNodePorts === undefined) yield required("allocateLoadBalancerNodePorts");
  yield* validateLoadBalancerClass(service);
}

function* validateLoadBalancerClass({ spec: { type, loadBalancerClass } }: Readonly<Service>): Iterable<FieldError> {
  if (loadBalancerClass === undefined) return;
  if (type === "LoadBalancer") yield* isQualifiedName("spec.loadBalancerClass", loadBalancerClass);
  else yield forbidden("spec.loadBalancerClass", ONLY_LOAD_BALANCERS);
}

function* validateTraffic(service: Readonly<Service>): Iterable<FieldError> {
  const { type, externalTrafficPolicy = "", healthCheckNodePort = 0, internalTrafficPolicy, trafficDistribution } = service.spec;
  if (isExternallyAccessible(service)) yield* oneOf("spec.externalTrafficPolicy", externalTrafficPolicy, TRAFFIC_POLICIES);
  else if (externalTrafficPolicy) yield invalid("spec.externalTrafficPolicy", externalTrafficPolicy, "may only be set for externally-accessible services");
  if (needsHealthCheck(service)) {
    if (healthCheckNodePort === 0) yield required("spec.healthCheckNodePort");
    else yield* problems("spec.healthCheckNodePort", healthCheckNodePort, portNumber(healthCheckNodePort));
  } else if (healthCheckNodePort !== 0) yield invalid("spec.healthCheckNodePort", healthCheckNodePort, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
  if (internalTrafficPolicy === undefined) {
    if (type === "NodePort" || type === "LoadBalancer" || type === "ClusterIP") yield required("spec.internalTrafficPolicy");
  } else if (!TRAFFIC_POLICIES.includes(internalTrafficPolicy)) yield notSupported("spec.internalTrafficPolicy", internalTrafficPolicy, TRAFFIC_POLICIES);
  if (trafficDistribution !== undefined && !DISTRIBUTIONS.includes(trafficDistribution)) yield notSupported("spec.trafficDistribution", trafficDistribution, DISTRIBUTIONS);
}

function* validateServiceUpdate(next: Readonly<Service>, old: Readonly<Service>): Iterable<FieldError> {
  yield* validateClusterIpChange(next, old);
  yield* validateFamilyChange(next, old);
  if (old.spec.type === "LoadBalancer" && next.spec.type === "LoadBalancer" && old.spec.loadBalancerClass !== next.spec.loadBalancerClass)
    yield invalid("spec.loadBalancerClass", next.spec.loadBalancerClass, "may not change once set");
  yield* validateLoadBalancerClass(next); // once more below, as upstream does
  if (needsHealthCheck(old) && needsHealthCheck(next) && old.spec.healthCheckNodePort !== next.spec.healthCheckNodePort) yield forbidden("spec.healthCheckNodePort", "field is immutable");
}

export function* validateLoadBalancerStatus(path: string, status: LoadBalancerStatus | undefined, old: LoadBalancerStatus | undefined, type: string | undefined): Iterable<FieldError> {
  const at = child(path, "ingress");
  const ingress = status?.ingress ?? [];
  if (type !== "LoadBalancer" && ingress.length > 0) { yield forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'"); return; }
  const known = new Set((old?.ingress ?? []).flatMap(({ ip }) => (ip ? [ip] : [])));
  for (const [i, { ip = "", ipMode, hostname = "" }] of ingress.entries()) {
    const item = index(at, i);
    if (ip !== "") yield* legacyIp(child(item, "ip"), ip, known);
    if (ipMode === undefined) {
      if (ip !== "") yield required(child(item, "ipMode"), "must be specified when `ip` is set");
    } else if (ip === "") yield forbidden(child(item, "ipMode"), "may not be specified when `ip` is not set");
    else if (ipMode !== "VIP" && ipMode !== "Proxy") yield notSupported(child(item, "ipMode"), ipMode, ["Proxy", "VIP"]);
    if (hostname === "") continue;
    yield* problems(child(item, "hostname"), hostname, dns1123Subdomain(hostname));
    if (parseAddress(hostname)) yield invalid(child(item, "hostname"), hostname, "must be a DNS name, not an IP address");
  }
}
