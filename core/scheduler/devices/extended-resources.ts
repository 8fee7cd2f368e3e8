/**
 * Extended resources that stand for devices: `example.com/gpu: 1` in a container, where a DeviceClass has that extendedResourceName, or
 * `deviceclass.resource.kubernetes.io/<class>: 1`. On nodes that do not offer the resource themselves, a claim is made of it.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
 *         staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache
 */
import type { Container, ContainerExtendedResourceRequest, Node, Pod } from "../../api/gen/core.v1.ts";
import type { DeviceClass, DeviceRequest, ResourceClaim } from "../../api/gen/resource.v1.ts";
import { annotationsOf, isControlledBy, namespaceOf } from "../../api/meta/object-meta.ts";
import { parseQuantity } from "../../api/meta/quantity.ts";
import type { Requests } from "../pod-requests.ts";

/** Before the name of a class: the resource that it stands behind anyway. */
export const CLASS_PREFIX = "deviceclass.resource.kubernetes.io/";
const EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim";

/** Whether devices may stand behind a resource of this name. */
export function isExtendedResource(name: string): boolean {
  return name.startsWith(CLASS_PREFIX) || (name.includes("/") && !name.includes("kubernetes.io/") && !name.startsWith("requests."));
}

/** The class behind a resource; of several the newest, then the first by name. */
export function classBehind(resource: string, classes: Iterable<Readonly<DeviceClass>>): Readonly<DeviceClass> | undefined {
  const own = [...classes].filter(({ metadata, spec }) => spec.extendedResourceName === resource || resource === CLASS_PREFIX + metadata.name);
  return own.sort((a, b) => Date.parse(b.metadata.creationTimestamp) - Date.parse(a.metadata.creationTimestamp) || (a.metadata.name < b.metadata.name ? -1 : 1))[0];
}

/** Resources the pod asks for that a class stands behind. */
export function backedResources(requests: Requests, classOf: (resource: string) => Readonly<DeviceClass> | undefined): string[] {
  return Object.keys(requests).filter((name) => requests[name]! > 0 && isExtendedResource(name) && classOf(name) !== undefined).sort();
}

/** Those the node does not offer itself. */
export function neededOn({ status }: Readonly<Node>, resources: readonly string[]): string[] {
  return resources.filter((name) => parseQuantity(status?.allocatable?.[name] ?? "0").sign === 0);
}

export interface ExtendedClaim {
  readonly claim: Readonly<ResourceClaim>;
  /** Which container's resource is served by which request. */
  readonly mappings: readonly ContainerExtendedResourceRequest[];
}

/** A claim as it would be; it has no name yet. */
export function extendedClaim(pod: Readonly<Pod>, resources: readonly string[], { uid, classOf }: { readonly uid: string; readonly classOf: (resource: string) => Readonly<DeviceClass> | undefined }): ExtendedClaim {
  const parts = resources.map((resource) => requestsFor(pod, resource, classOf(resource)?.metadata.name ?? ""));
  const requests = parts.flatMap((part) => part.requests).sort((a, b) => (a.name < b.name ? -1 : 1));
  const { name } = pod.metadata;
  return {
    mappings: parts.flatMap((part) => part.mappings),
    claim: {
      apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim",
      metadata: {
        name: "<extended-resources>", namespace: namespaceOf(pod), uid, generateName: `${name}-extended-resources-`, creationTimestamp: pod.metadata.creationTimestamp, resourceVersion: "0",
        ownerReferences: [{ apiVersion: "v1", kind: "Pod", name, uid: pod.metadata.uid, controller: true }], annotations: { [EXTENDED_CLAIM]: "true" },
      },
      spec: { devices: { requests } },
    },
  };
}

/** Of an earlier attempt. */
export function isExtendedClaimOf(claim: Readonly<ResourceClaim>, pod: Readonly<Pod>): boolean {
  return annotationsOf(claim)[EXTENDED_CLAIM] === "true" && isControlledBy(claim, pod);
}

interface Made { readonly request: DeviceRequest | undefined; readonly mappings: ContainerExtendedResourceRequest[] }

/** Init containers use the devices of those that run after them, and beyond these share one request: only one of them runs at a time. */
function requestsFor({ spec }: Readonly<Pod>, resource: string, className: string): { readonly requests: DeviceRequest[]; readonly mappings: ContainerExtendedResourceRequest[] } {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const inits = spec.initContainers?.length ?? 0;
  const isShort = (i: number): boolean => i < inits && containers[i]!.restartPolicy !== "Always";
  const long = containers.map((container, i) => (isShort(i) ? undefined : requestOf(i, container, { resource, className, reusable: [] })));
  const short = containers.flatMap((container, i) => (isShort(i) ? [requestOf(i, container, { resource, className, reusable: long.slice(i).flatMap((one) => one?.request ?? []) })] : []));
  const own = short.flatMap(({ request }) => request ?? []);
  const largest = own.reduce<DeviceRequest | undefined>((most, one) => (most === undefined || countOf(most) < countOf(one) ? one : most), undefined);
  const names = new Set(own.map(({ name }) => name));
  const shared = short.flatMap(({ mappings }) => mappings).map((one) => (largest && names.has(one.requestName) ? { ...one, requestName: largest.name } : one));
  return { requests: [...(largest ? [largest] : []), ...long.flatMap((one) => one?.request ?? [])], mappings: [...long.flatMap((one) => one?.mappings ?? []), ...shared] };
}

function requestOf(at: number, { name, resources }: Container, { resource, className, reusable }: { readonly resource: string; readonly className: string; readonly reusable: readonly DeviceRequest[] }): Made {
  const asked = resources?.requests?.[resource];
  const wanted = asked === undefined ? 0 : parseQuantity(asked).number();
  const mappings: ContainerExtendedResourceRequest[] = [];
  if (wanted === 0) return { request: undefined, mappings };
  let had = 0;
  for (const one of reusable) {
    had += countOf(one);
    mappings.push({ containerName: name, resourceName: resource, requestName: one.name });
    if (had >= wanted) return { request: undefined, mappings };
  }
  const requestName = `container-${at}-request-${Object.keys(resources!.requests!).sort().indexOf(resource)}`;
  mappings.push({ containerName: name, resourceName: resource, requestName });
  return { request: { name: requestName, exactly: { deviceClassName: className, allocationMode: "ExactCount", count: wanted - had } }, mappings };
}

function countOf({ exactly }: DeviceRequest): number {
  return exactly?.count ?? 0;
}
