/**
 * ServiceCIDR and IPAddress (networking.k8s.io/v1): ranges of service addresses, and single addresses somebody has.
 *
 * Services get theirs from the allocator in core/registry/core/service, which reads them off the services; these objects are for others to read and write.
 *
 * Source: kubernetes v1.36 pkg/registry/networking/{servicecidr,ipaddress}/strategy.go, pkg/apis/networking/validation/validation.go
 */
import type { IPAddress, ParentReference, ServiceCIDR } from "../../api/gen/networking.v1.ts";
import { child, type FieldError, FIELD_IMMUTABLE, index, invalid, required } from "../../api/meta/field-error.ts";
import { pathSegmentName } from "../../api/meta/names.ts";
import { parseRange, strictCidr, strictIp } from "../core/checks/ip.ts";
import { immutableStruct, isDns1123Subdomain, problems } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { validateSegment } from "./typed-reference.ts";

const CIDRS = "spec.cidrs";

export const serviceRanges = defineResource<ServiceCIDR>({
  group: "networking.k8s.io", version: "v1", kind: "ServiceCIDR", plural: "servicecidrs", generation: false,
  prepareForCreate(object) { object.status = {}; },
  *validate({ spec }, old) { if (!old) yield* validateCidrs(CIDRS, spec.cidrs ?? []); },
  *validateUpdate(next, old) {
    const [before, after] = [old.spec.cidrs ?? [], next.spec.cidrs ?? []];
    const extended = before.length === 1 && after.length === 2;
    if (before.length !== after.length && !extended) { yield invalid(CIDRS, next.spec.cidrs ?? null, FIELD_IMMUTABLE); return; }
    for (const [i, cidr] of before.entries()) if (cidr !== after[i]) yield invalid(index(CIDRS, i), after[i], FIELD_IMMUTABLE);
    if (extended) yield* validateCidrs(CIDRS, after);
  },
  subresources: { status: statusPart<ServiceCIDR>({ keepsMetadata: true }) },
});

function* validateCidrs(path: string, cidrs: readonly string[]): Iterable<FieldError> {
  if (cidrs.length === 0) { yield required(path, "at least one CIDR required"); return; }
  if (cidrs.length > 2) { yield invalid(path, { CIDRs: cidrs }, "may only hold up to 2 values"); return; }
  for (const [i, cidr] of cidrs.entries()) yield* strictCidr(index(path, i), cidr);
  const [first, second] = cidrs.map((cidr) => parseRange(cidr)?.address.family);
  if (first !== undefined && first === second) yield invalid(path, cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
}

export const ipAddresses = defineResource<IPAddress>({
  group: "networking.k8s.io", version: "v1", kind: "IPAddress", plural: "ipaddresses", generation: false, takesBaseAsName: true, updateOrder: "change last",
  *validateName(name) { for (const { detail } of strictIp("", name)) yield detail; },
  *validate({ spec }) {
    if (spec.parentRef) yield* validateParent("spec.parentRef", spec.parentRef);
    else yield required("spec.parentRef");
  },
  validateUpdate: (next, old) => immutableStruct("spec.parentRef", "networking.v1.ParentReference", next.spec.parentRef, old.spec.parentRef),
});

function* validateParent(path: string, { group, resource, name, namespace }: ParentReference): Iterable<FieldError> {
  if (group) yield* isDns1123Subdomain(child(path, "group"), group);
  yield* validateSegment(child(path, "resource"), resource);
  yield* validateSegment(child(path, "name"), name);
  if (namespace) yield* problems(child(path, "namespace"), namespace, pathSegmentName(namespace));
}
