/**
 * EndpointSlice (discovery.k8s.io/v1): addresses behind a service, a slice of them.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/service-resources/endpoint-slice-v1/
 * Source: kubernetes v1.36 pkg/registry/discovery/endpointslice/strategy.go, pkg/apis/discovery/{v1/defaults,validation/validation}.go
 */
import { child, duplicate, type FieldError, index, invalid, notSupported, required, tooMany } from "../../api/meta/field-error.ts";
import type { Endpoint, EndpointHints, EndpointPort, EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { dns1123Subdomain, labelValue } from "../../api/meta/names.ts";
import { isFullyQualifiedDomainName } from "../../api/meta/domains.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { endpointIp, familyOf, ipWarnings, legacyIp, strictIp } from "../core/checks/ip.ts";
import { immutable, isDns1123Label, isDns1123Subdomain, isQualifiedName, oneOf, problems } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";

const ENDPOINTS_MAX = 1000;
const ADDRESSES_MAX = 100;
const PORTS_MAX = 20_000;
const HINTS_MAX = 8;
const ADDRESS_TYPES = ["FQDN", "IPv4", "IPv6"];
const PROTOCOLS = ["SCTP", "TCP", "UDP"];
const MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
/** Controllers that write whatever the pods and Endpoints say. */
const OWN_CONTROLLERS = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

export const endpointSlices = defineResource<EndpointSlice>({
  group: "discovery.k8s.io", version: "v1", kind: "EndpointSlice", plural: "endpointslices",
  defaults({ ports }) {
    for (const port of ports ?? []) {
      port.name ??= "";
      port.protocol ??= "TCP";
    }
  },
  prepareForCreate: dropTopology,
  prepareForUpdate(next, old) { if (!semanticEqual(next.endpoints, old.endpoints)) dropTopology(next); },
  generation: (next, old) => !semanticEqual(contentOf(next), contentOf(old)),

  *validate({ addressType, ports, endpoints }, old) {
    yield* oneOf("addressType", addressType, ADDRESS_TYPES);
    yield* validatePorts("ports", ports ?? []);
    if (!old || !semanticEqual(old.endpoints, endpoints)) yield* validateEndpoints("endpoints", endpoints ?? [], addressType);
  },
  validateUpdate: (next, old) => immutable("addressType", next.addressType ?? "", old.addressType),
  *warnings({ metadata, addressType, endpoints }, old) {
    if (!old && addressType === "FQDN") yield "spec.addressType: FQDN endpoints are deprecated";
    if (OWN_CONTROLLERS.includes(metadata.labels?.[MANAGED_BY] ?? "")) return;
    for (const [i, { addresses }] of (endpoints ?? []).entries())
      for (const [j, address] of (addresses ?? []).entries()) yield* ipWarnings(index(child(index("endpoints", i), "addresses"), j), address);
  },
});

/** v1 has no topology; what old clients wrote there stays as long as the endpoints do. */
function dropTopology({ endpoints }: EndpointSlice): void {
  for (const endpoint of endpoints ?? []) delete endpoint.deprecatedTopology;
}

/** What its consumers look at: labels say whose endpoints these are. */
function contentOf({ addressType, endpoints, ports, metadata }: Readonly<EndpointSlice>): unknown { return { addressType, endpoints, ports, labels: metadata.labels ?? {} }; }

function* validatePorts(path: string, ports: readonly EndpointPort[]): Iterable<FieldError> {
  if (ports.length > PORTS_MAX) { yield tooMany(path, ports.length, PORTS_MAX); return; }
  const names = new Set<string>();
  for (const [i, { name = "", protocol, appProtocol }] of ports.entries()) {
    const at = index(path, i);
    if (name !== "") yield* isDns1123Label(child(at, "name"), name);
    if (names.has(name)) yield duplicate(child(at, "name"), name);
    names.add(name);
    if (protocol === undefined) yield required(child(at, "protocol"));
    else if (!PROTOCOLS.includes(protocol)) yield notSupported(child(at, "protocol"), protocol, PROTOCOLS);
    if (appProtocol !== undefined) yield* isQualifiedName(child(at, "appProtocol"), appProtocol);
  }
}

function* validateEndpoints(path: string, endpoints: readonly Endpoint[], type: string): Iterable<FieldError> {
  if (endpoints.length > ENDPOINTS_MAX) { yield tooMany(path, endpoints.length, ENDPOINTS_MAX); return; }
  for (const [i, { addresses, nodeName, hostname, hints }] of endpoints.entries()) {
    const at = index(path, i);
    yield* validateAddresses(child(at, "addresses"), addresses ?? [], type);
    if (nodeName !== undefined) yield* isDns1123Subdomain(child(at, "nodeName"), nodeName);
    if (hostname !== undefined) yield* isDns1123Label(child(at, "hostname"), hostname);
    if (hints) yield* validateHints(child(at, "hints"), hints);
  }
}

function* validateAddresses(path: string, addresses: readonly string[], type: string): Iterable<FieldError> {
  if (addresses.length === 0) yield required(path, "must contain at least 1 address");
  else if (addresses.length > ADDRESSES_MAX) yield tooMany(path, addresses.length, ADDRESSES_MAX);
  for (const [i, address] of addresses.entries()) {
    const at = index(path, i);
    if (type === "FQDN") yield* isFullyQualifiedDomainName(at, address);
    if (type !== "IPv4" && type !== "IPv6") continue;
    const wrong = [...(type === "IPv4" ? legacyIp(at, address) : strictIp(at, address))];
    yield* wrong;
    if (wrong.length > 0) continue;
    if (familyOf(address) !== type) yield invalid(path, address, `must be an ${type} address`);
    yield* endpointIp(at, address);
  }
}

function* validateHints(path: string, { forZones = [], forNodes = [] }: EndpointHints): Iterable<FieldError> {
  for (const [name, list, check] of [["forZones", forZones, labelValue], ["forNodes", forNodes, dns1123Subdomain]] as const) {
    const at = child(path, name);
    if (list.length > HINTS_MAX) { yield tooMany(at, list.length, HINTS_MAX); return; }
    for (const [i, hint] of list.entries()) {
      const nameAt = child(index(at, i), "name");
      if (list.findIndex((other) => other.name === hint.name) < i) yield duplicate(nameAt, hint.name);
      yield* problems(nameAt, hint.name, check(hint.name));
    }
  }
}
