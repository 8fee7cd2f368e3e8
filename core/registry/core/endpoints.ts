/** Endpoints (v1): where a service's pods are, in the form EndpointSlices have replaced. Source: kubernetes v1.36 pkg/registry/core/endpoint/strategy.go */
import { child, type FieldError, index, required } from "../../api/meta/field-error.ts";
import type { EndpointAddress, EndpointPort, Endpoints, EndpointSubset } from "../../api/gen/core.v1.ts";
import { portNumber } from "../../api/meta/names.ts";
import { defineResource } from "../generic/resource.ts";
import { semanticEqual } from "./checks/equal.ts";
import { endpointIp, ipWarnings, legacyIp } from "./checks/ip.ts";
import { isDns1123Label, isDns1123Subdomain, isQualifiedName, oneOf, problems } from "./checks/values.ts";
import { PROTOCOLS } from "./pod/validation/containers.ts";

const MANAGED_BY = "endpoints.kubernetes.io/managed-by";
const CONTROLLER = "endpoint-controller";

export const endpoints = defineResource<Endpoints>({
  group: "", version: "v1", kind: "Endpoints", plural: "endpoints",
  generation: false,
  createOnUpdate: true,
  defaults({ subsets }) { for (const { ports } of subsets ?? []) for (const port of ports ?? []) port.protocol ||= "TCP"; },
  *validate(object, old) {
    const errors = (object.subsets ?? []).flatMap((subset, i) => [...validateSubset(index("subsets", i), subset)]);
    if (!old || !semanticEqual(old.subsets, object.subsets)) yield* errors;
  },
  *warnings({ metadata, subsets }) {
    if (metadata.labels?.[MANAGED_BY] === CONTROLLER) return;
    for (const [i, subset] of (subsets ?? []).entries())
      for (const field of ["addresses", "notReadyAddresses"] as const)
        for (const [j, { ip }] of (subset[field] ?? []).entries()) yield* ipWarnings(child(index(child(index("subsets", i), field), j), "ip"), ip);
  },
});

function* validateSubset(path: string, { addresses = [], notReadyAddresses = [], ports = [] }: EndpointSubset): Iterable<FieldError> {
  if (addresses.length === 0 && notReadyAddresses.length === 0) yield required(path, "must specify `addresses` or `notReadyAddresses`");
  for (const [i, address] of addresses.entries()) yield* validateAddress(index(child(path, "addresses"), i), address);
  for (const [i, address] of notReadyAddresses.entries()) yield* validateAddress(index(child(path, "notReadyAddresses"), i), address);
  for (const [i, port] of ports.entries()) yield* validatePort(index(child(path, "ports"), i), port, ports.length > 1);
}

function* validateAddress(path: string, { ip, hostname, nodeName }: EndpointAddress): Iterable<FieldError> {
  yield* legacyIp(child(path, "ip"), ip);
  if (hostname) yield* isDns1123Label(child(path, "hostname"), hostname);
  if (nodeName !== undefined) yield* isDns1123Subdomain(child(path, "nodeName"), nodeName);
  yield* endpointIp(child(path, "ip"), ip);
}

function* validatePort(path: string, { name, port, protocol, appProtocol }: EndpointPort, needsName: boolean): Iterable<FieldError> {
  if (name) yield* isDns1123Label(child(path, "name"), name);
  else if (needsName) yield required(child(path, "name"));
  yield* problems(child(path, "port"), port, portNumber(port));
  yield* oneOf(child(path, "protocol"), protocol, PROTOCOLS);
  if (appProtocol !== undefined) yield* isQualifiedName(child(path, "appProtocol"), appProtocol);
}
