/**
 * Service (v1): one address, and one name, for a set of pods.
 *
 *   create   clusterIP and clusterIPs say the same → families, addresses and node ports are allocated
 *   update   what was allocated and is not mentioned stays → fields the new type cannot have go → what is missing is allocated
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/
 * Source: kubernetes v1.36 pkg/registry/core/service/{strategy.go,storage/storage.go}
 */
import type { Service } from "../../../api/gen/core.v1.ts";
import { dns1123Label } from "../../../api/meta/names.ts";
import { defineResource, type Resource } from "../../generic/resource.ts";
import { ingressWarnings } from "../checks/ip.ts";
import { statusPart } from "../status-part.ts";
import { type AddressObjects, addressesOf, releaseAddresses, withAddressObjects } from "./allocator/address-objects.ts";
import { type AllocatorOptions, ServiceAllocator } from "./allocator/allocator.ts";
import { allocateWithClaims, type Claims } from "./allocator/claims.ts";
import { defaultService } from "./defaults.ts";
import { isExternallyAccessible, mayHaveNodePorts, needsClusterIp, needsHealthCheck, needsNodePorts, nodePortsOf, sameList } from "./shape.ts";
import { validateLoadBalancerStatus, validateService } from "./validation.ts";
import { serviceWarnings } from "./warnings.ts";

/** `claims`: where other servers allocate from the same ranges. `addressObjects`: where there is an object for each address. */
export function serviceDefinition({ claims, addressObjects, ...options }: AllocatorOptions & { readonly claims?: Claims | undefined; readonly addressObjects?: AddressObjects | undefined }): Resource<Service> {
  const allocator = new ServiceAllocator(options);
  const allocated = (next: Service, old: Readonly<Service> | undefined, dryRun: boolean) => (claims && !dryRun ? allocateWithClaims(allocator, next, old, claims) : allocator.allocate(next, old, { dryRun }));
  return defineResource<Service>({
    group: "", version: "v1", kind: "Service", plural: "services",
    createOnUpdate: true,
    generation: false,
    validateName: dns1123Label,
    defaults: defaultService,
    onRead: withoutInternalPolicy,

    prepareForCreate(service) {
      service.status = { loadBalancer: {} };
      const { spec } = service;
      if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP];
    },
    prepareForUpdate(next, old) {
      keepAllocated(next, old);
      alignClusterIps(next, old);
      dropForType(next, old);
    },
    async allocate(next, old, context) {
      const named = [...(next.spec.clusterIPs ?? [])];
      const allocation = await allocated(next, old, context.dryRun);
      return addressObjects && !context.dryRun ? await withAddressObjects(allocation, { next, old, named, objects: addressObjects }) : allocation;
    },
    async afterDelete(service) {
      if (addressObjects) await releaseAddresses(addressObjects, addressesOf(service), service);
    },


    validate: validateService,
    warnings: serviceWarnings,
    fields: ({ spec }) => ({ "spec.clusterIP": spec.clusterIP ?? "", "spec.type": spec.type ?? "" }),
    subresources: {
      status: statusPart<Service>({
        validate: (next, old) => validateLoadBalancerStatus("status.loadBalancer", next.status?.loadBalancer, old.status?.loadBalancer, next.spec.type),
        warnings: ({ status }) => ingressWarnings(status?.loadBalancer?.ingress),
      }),
    },
  });
}

/** A client that does not know what was allocated does not give it up. Mutates `next`. */
function keepAllocated(next: Service, old: Readonly<Service>): void {
  if (needsClusterIp(old) && needsClusterIp(next)) {
    if (!next.spec.clusterIP && old.spec.clusterIP) next.spec.clusterIP = old.spec.clusterIP;
    if (!next.spec.clusterIPs?.length && old.spec.clusterIPs?.length) next.spec.clusterIPs = [...old.spec.clusterIPs];
  }
  if (needsNodePorts(old) && needsNodePorts(next)) {
    const used = new Set(nodePortsOf(next));
    const byName = new Map((old.spec.ports ?? []).map(({ name = "", nodePort = 0 }) => [name, nodePort]));
    for (const port of next.spec.ports ?? []) {
      const before = byName.get(port.name ?? "") ?? 0;
      if (!port.nodePort && before !== 0 && !used.has(before)) port.nodePort = before;
    }
  }
  if (needsHealthCheck(old) && needsHealthCheck(next) && !next.spec.healthCheckNodePort && old.spec.healthCheckNodePort)
    next.spec.healthCheckNodePort = old.spec.healthCheckNodePort;
}

/** Clients that know only one of clusterIP and clusterIPs change only that one. Mutates `next`. */
function alignClusterIps({ spec }: Service, { spec: before }: Readonly<Service>): void {
  const [ip, oldIp] = [spec.clusterIP ?? "", before.clusterIP ?? ""];
  if (ip === oldIp) {
    if (!spec.clusterIPs?.length && before.clusterIPs?.length) spec.clusterIPs = [...before.clusterIPs];
  } else if (sameList(before.clusterIPs, spec.clusterIPs)) {
    if (oldIp !== "" && ip === "") delete spec.clusterIPs;
    else spec.clusterIPs = [ip];
  }
}

/** An alias keeps what it was given, for when it is none any more, and shows none. */
function withoutInternalPolicy(service: Readonly<Service>): Readonly<Service> {
  if (service.spec.type !== "ExternalName" || service.spec.internalTrafficPolicy === undefined) return service;
  const { internalTrafficPolicy: _, ...spec } = service.spec;
  return { ...service, spec };
}

/** What the old type had and the new one cannot have goes, unless the client has changed it: then validation says so. Mutates `next`. */
function dropForType(next: Service, old: Readonly<Service>): void {
  const { spec } = next;
  const before = old.spec;
  if (needsClusterIp(old) && !needsClusterIp(next)) {
    if ((spec.clusterIP ?? "") === (before.clusterIP ?? "") && sameList(before.clusterIPs, spec.clusterIPs)) {
      delete spec.clusterIP;
      delete spec.clusterIPs;
    }
    if (sameList(before.ipFamilies, spec.ipFamilies)) delete spec.ipFamilies;
    if (before.ipFamilyPolicy === spec.ipFamilyPolicy) delete spec.ipFamilyPolicy;
  }
  if (mayHaveNodePorts(old) && !mayHaveNodePorts(next)) {
    const had = new Set(nodePortsOf(old));
    if (nodePortsOf(next).every((port) => had.has(port))) for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (needsHealthCheck(old) && !needsHealthCheck(next) && before.healthCheckNodePort === spec.healthCheckNodePort) delete spec.healthCheckNodePort;
  if (before.type === "LoadBalancer" && spec.type !== "LoadBalancer") {
    if (before.allocateLoadBalancerNodePorts === spec.allocateLoadBalancerNodePorts) delete spec.allocateLoadBalancerNodePorts;
    if (before.loadBalancerClass === spec.loadBalancerClass) delete spec.loadBalancerClass;
  }
  if (isExternallyAccessible(old) && !isExternallyAccessible(next) && before.externalTrafficPolicy === spec.externalTrafficPolicy) delete spec.externalTrafficPolicy;
  if (spec.type !== "LoadBalancer") next.status = { ...next.status, loadBalancer: {} };
}
