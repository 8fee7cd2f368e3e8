/**
 * What a ResourceClaim takes of a quota: devices of a class, and as much of the extended resources that stand for the class. A pod that asks for such a resource takes it
 * itself; of the claim that is then made for it counts what goes beyond.
 *
 * Source: kubernetes v1.36 pkg/quota/v1/evaluator/core/resource_claims.go
 */
import type { Pod } from "../gen/core.v1.ts";
import type { DeviceClass, DeviceSubRequest, ResourceClaim } from "../gen/resource.v1.ts";
import { annotationsOf, controllerOf, isControlledBy, type ObjectKey, objectKey, namespaceOf } from "../meta/object-meta.ts";
import { parseQuantity, type Quantity, quantityOf, subQuantity } from "../meta/quantity.ts";
import { add, type Amounts } from "./amounts.ts";
import { isExtendedRequest, podUsage } from "./pod-usage.ts";

/** What decides of a claim besides itself. */
export interface Surroundings {
  readonly classes: { list(): Iterable<Readonly<DeviceClass>> };
  readonly pods: { get(key: ObjectKey): Readonly<Pod> | undefined };
  readonly claims: { inNamespace(namespace: string): Iterable<Readonly<ResourceClaim>> };
}

const COUNT = "count/resourceclaims.resource.k8s.io";
const OF_CLASS = ".deviceclass.resource.k8s.io/devices";
const REQUESTS = "requests.";
const CLASS_PREFIX = "deviceclass.resource.kubernetes.io/";
const EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim";
/** What "all devices" is counted as. Source: resource.k8s.io/v1 AllocationResultsMaxSize */
const DEVICES_MAX = 32;

export function mayBeClaimResource(name: string): boolean { return name === COUNT || name.endsWith(OF_CLASS) || isExtendedRequest(name); }

/** Of names of extended resources, those behind which there is a class. */
export function isClaimResource(name: string, { classes }: Pick<Surroundings, "classes">): boolean {
  if (!isExtendedRequest(name)) return mayBeClaimResource(name);
  const resource = name.slice(REQUESTS.length);
  return [...classes.list()].some(({ metadata, spec }) => resource === spec.extendedResourceName || resource === CLASS_PREFIX + metadata.name);
}

export function claimUsage(claim: Readonly<ResourceClaim>, nowMs: number, around: Surroundings): Amounts {
  let devices: Amounts = new Map();
  for (const { exactly, firstAvailable = [] } of claim.spec?.devices?.requests ?? []) {
    const most = new Map<string, number>(); // of alternatives, each class at its most
    for (const one of firstAvailable.length > 0 ? firstAvailable : exactly ? [exactly] : []) most.set(one.deviceClassName, Math.max(most.get(one.deviceClassName) ?? 0, devicesOf(one)));
    devices = add(devices, new Map([...most].map(([name, count]) => [name, quantityOf(count)])));
  }
  const resourceOf = new Map([...around.classes.list()].map(({ metadata, spec }) => [metadata.name, spec.extendedResourceName]));
  const extended = [...devices].flatMap(([name, count]) => [CLASS_PREFIX + name, resourceOf.get(name)].flatMap((resource): [string, Quantity][] => (resource ? [[REQUESTS + resource, count]] : [])));
  const pod = extended.length === 0 ? undefined : podBehind(claim, around);
  const taken: Amounts = pod ? podUsage(pod, nowMs) : new Map();
  const beyond = extended.map(([name, count]): [string, Quantity] => [name, taken.has(name) ? subQuantity(count, taken.get(name)!) : count]);
  return new Map([[COUNT, parseQuantity("1")], ...[...devices].map(([name, count]): [string, Quantity] => [name + OF_CLASS, count]), ...beyond.filter(([, count]) => count.sign > 0)]);
}

function devicesOf({ allocationMode, count }: Pick<DeviceSubRequest, "allocationMode" | "count">): number {
  return allocationMode === "All" ? DEVICES_MAX : allocationMode === "ExactCount" ? count ?? 0 : 0;
}

/** The pod for whose extended resources the claim was made: the one it names or, before it names one, the first that was made for it. Others who say so of theirs get nothing for it. */
function podBehind(claim: Readonly<ResourceClaim>, { pods, claims }: Surroundings): Readonly<Pod> | undefined {
  const owner = controllerOf(claim);
  if (!isExtendedClaim(claim) || owner?.kind !== "Pod" || owner.apiVersion !== "v1") return undefined;
  const pod = pods.get(objectKey(namespaceOf(claim), owner.name));
  if (pod?.metadata.uid !== owner.uid) return undefined;
  const named = pod.status?.extendedResourceClaimStatus?.resourceClaimName;
  if (named !== undefined) return named === claim.metadata.name ? pod : undefined;
  const isFirst = [...claims.inNamespace(namespaceOf(claim))].every((other) => !isExtendedClaim(other) || !isControlledBy(other, pod) || !isBefore(other, claim));
  return isFirst ? pod : undefined;
}

function isExtendedClaim(claim: Readonly<ResourceClaim>): boolean { return annotationsOf(claim)[EXTENDED_CLAIM] === "true"; }

function isBefore({ metadata: a }: Readonly<ResourceClaim>, { metadata: b }: Readonly<ResourceClaim>): boolean {
  return a.creationTimestamp === b.creationTimestamp ? a.name < b.name : a.creationTimestamp < b.creationTimestamp;
}
