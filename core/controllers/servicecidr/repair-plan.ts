/**
 * What is wrong between Services and the IPAddresses of their addresses, and how it is mended. Pure.
 *
 * Source: kubernetes v1.36 pkg/registry/core/service/ipallocator/controller/repairip.go
 */
import type { Service } from "../../api/gen/core.v1.ts";
import type { IPAddress, ServiceCIDR } from "../../api/gen/networking.v1.ts";
import { keyOf, labelsOf, type NewObject, namespaceOf, objectKey, type ObjectKey } from "../../api/meta/object-meta.ts";
import { type Cidr, cidrContains, cidrSize, formatIp, type Ip, parseCidr, parseIp } from "../../net/cidr.ts";

const MANAGED_BY = "ipaddress.kubernetes.io/managed-by";
const FAMILY = "ipaddress.kubernetes.io/ip-family";
const ALLOCATOR = "ipallocator.k8s.io";
/** How long a request may take: an IPAddress is there before its Service is. */
const REQUEST_MS = 60_000;
/** How long a Service may be shown before what was made or deleted with it. */
const SETTLE_MS = 5_000;

/** What users are told. */
export interface Told { readonly reason: string; readonly message: string }

export type ServiceStep =
  | { readonly type: "tell"; readonly told: Told }
  | { readonly type: "create" | "replace"; readonly address: string; readonly told?: Told };

export type AddressPlan = { readonly type: "keep" } | { readonly type: "again"; readonly inMs: number } | { readonly type: "delete"; readonly told: Told };

export interface Known {
  readonly service: (key: ObjectKey) => Readonly<Service> | undefined;
  readonly address: (name: string) => Readonly<IPAddress> | undefined;
  readonly ranges: readonly Readonly<ServiceCIDR>[];
}

/** Whether a service may have the address out of this range: not the first, and of IPv4 not the last. Source: kubernetes v1.36 pkg/api/servicecidr/servicecidr.go PrefixContainsIP */
export function holdsAddress(range: Cidr, ip: Ip): boolean {
  return cidrContains(range, ip) && ip.value !== range.base && !(ip.family === 4 && ip.value === range.base + cidrSize(range) - 1n);
}

/** As IPAddresses are named. */
export function addressesOf({ spec }: Readonly<Service>): string[] {
  if (spec.type === "ExternalName") return [];
  const all = spec.clusterIPs?.length ? spec.clusterIPs : spec.clusterIP ? [spec.clusterIP] : [];
  return all.flatMap((text) => {
    const ip = parseIp(text); // "None" and "" are none
    return ip ? [formatIp(ip)] : [];
  });
}

export function planService(service: Readonly<Service>, known: Known): ServiceStep[] {
  const { namespace = "", name } = service.metadata;
  return addressesOf(service).flatMap((address): ServiceStep[] => {
    const family = familyOf(address);
    if (!isInRange(address, known.ranges))
      return [tell("ClusterIPOutOfRange", `Cluster IP [${family}]: ${address} is not within any configured Service CIDR; please recreate service`)];
    const found = known.address(address);
    if (!found) return [{ type: "create", address, told: { reason: "ClusterIPNotAllocated", message: `Cluster IP [${family}]: ${address} is not allocated; repairing` } }];
    const wrong: ServiceStep = { type: "replace", address, told: { reason: "ClusterIPNotAllocated", message: `the ClusterIP [${family}]: ${address} for Service ${namespace}/${name} has a wrong reference; repairing` } };
    const parent = parentOf(found);
    if (parent === undefined) return [wrong];
    const steps: ServiceStep[] = [];
    if (parent !== keyOf(service)) {
      const other = known.service(parent);
      if (!other) return [wrong];
      if (addressesOf(other).includes(address)) steps.push(tell("ClusterIPAlreadyAllocated", `Cluster IP [${family}]:${address} was assigned to multiple services; please recreate service`));
    }
    if (labelsOf(found)[FAMILY] !== family || !isOurs(found)) steps.push({ type: "replace", address });
    return steps;
  });
}

/** `strayMs`: for how long nobody has been seen to have it. */
export function planAddress(address: Readonly<IPAddress>, { service: serviceOf }: Pick<Known, "service">, { nowMs, strayMs }: { readonly nowMs: number; readonly strayMs: number }): AddressPlan {
  if (!isOurs(address)) return { type: "keep" }; // somebody else's
  const { name, creationTimestamp } = address.metadata;
  const parent = parentOf(address);
  const stray = (told: Told): AddressPlan => (strayMs < SETTLE_MS ? { type: "again", inMs: SETTLE_MS - strayMs } : { type: "delete", told });
  if (parent === undefined) return stray({ reason: "IPAddressNotAllocated", message: `IPAddress ${name} appears to have been modified, not referencing a Service ${shown(address)}: cleaning up` });
  const ageMs = Math.max(strayMs, nowMs - Date.parse(creationTimestamp)); // the clock that it was made by may have been ahead
  const service = serviceOf(parent);
  const owner = `${address.spec.parentRef?.namespace ?? ""}/${address.spec.parentRef?.name ?? ""}`;
  if (service && addressesOf(service).includes(name)) return { type: "keep" };
  if ((!service || service.spec.type === "ExternalName") && ageMs < REQUEST_MS) return { type: "again", inMs: REQUEST_MS - ageMs }; // it may be about to be written
  return stray(service ? { reason: "IPAddressWrongReference", message: `IPAddress: ${name} for Service ${owner} has a wrong reference; cleaning up` }
    : { reason: "IPAddressNotAllocated", message: `IPAddress: ${name} for Service ${owner} appears to have leaked: cleaning up` });
}

export function addressFor(address: string, service: Readonly<Service>): NewObject<IPAddress> {
  return {
    apiVersion: "networking.k8s.io/v1", kind: "IPAddress",
    metadata: { name: address, labels: { [FAMILY]: familyOf(address), [MANAGED_BY]: ALLOCATOR } },
    spec: { parentRef: { resource: "services", namespace: namespaceOf(service), name: service.metadata.name } },
  };
}

function tell(reason: string, message: string): ServiceStep { return { type: "tell", told: { reason, message } }; }

function familyOf(address: string): string { return address.includes(":") ? "IPv6" : "IPv4"; }

function isOurs(address: Readonly<IPAddress>): boolean { return labelsOf(address)[MANAGED_BY] === ALLOCATOR; }

function isInRange(address: string, ranges: readonly Readonly<ServiceCIDR>[]): boolean {
  const ip = parseIp(address)!;
  return ranges.length === 0 || ranges.some(({ spec }) => (spec.cidrs ?? []).some((text) => {
    const cidr = parseCidr(text);
    return cidr !== undefined && holdsAddress(cidr, ip);
  }));
}

/** The Service that it is of. */
function parentOf({ spec: { parentRef } }: Readonly<IPAddress>): ObjectKey | undefined {
  return parentRef?.resource === "services" && !parentRef.group ? objectKey(parentRef.namespace ?? "", parentRef.name ?? "") : undefined;
}

/** As Go's %v prints it. */
function shown({ spec: { parentRef } }: Readonly<IPAddress>): string {
  const { group = "", resource = "", namespace = "", name = "" } = parentRef ?? {};
  return `&ParentReference{Group:${group},Resource:${resource},Namespace:${namespace},Name:${name},}`;
}
