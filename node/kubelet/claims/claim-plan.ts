/**
 * Which ResourceClaims a pod uses, which drivers prepare them, and which prepared devices each of its containers gets. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/dra/manager.go, staging/src/k8s.io/dynamic-resource-allocation/resourceclaim
 */
import type { Pod, ResourceHealth, ResourceStatus } from "../../../core/api/gen/core.v1.ts";
import type { ResourceClaim } from "../../../core/api/gen/resource.v1.ts";
import { claimStatusesOf } from "../../../core/api/meta/pod-references.ts";
import { allContainers } from "../pod-spec.ts";

/** One claim as the pod calls it. */
export interface PodClaim {
  /** In spec.resourceClaims; "": made by the scheduler for extended resources. */
  readonly podName: string;
  /** Of the object. */
  readonly name: string;
  /** It was made for the pod, of a template. */
  readonly isMade?: boolean | undefined;
}

/** Throws while the object of a claim has not been made yet, as of a pod that nobody has scheduled. */
export function claimsOfPod(pod: Pod): PodClaim[] {
  const statuses = claimStatusesOf(pod);
  const missing = (pod.spec.resourceClaims ?? []).find(({ name, resourceClaimName }) => !resourceClaimName && !statuses.has(name));
  if (missing) throw new Error(`pod claim ${missing.name}: ResourceClaim not created yet`);
  return madeClaims(pod);
}

/** Those whose objects have been made. */
function madeClaims(pod: Pod): PodClaim[] {
  const statuses = claimStatusesOf(pod);
  const claims = (pod.spec.resourceClaims ?? []).flatMap(({ name, resourceClaimName }): PodClaim[] => {
    if (resourceClaimName) return [{ podName: name, name: resourceClaimName }];
    const status = statuses.get(name);
    return status?.resourceClaimName ? [{ podName: name, name: status.resourceClaimName, isMade: true }] : []; // not yet, or none is needed
  });
  const extended = pod.status?.extendedResourceClaimStatus?.resourceClaimName;
  return extended ? [...claims, { podName: "", name: extended }] : claims;
}

/** Throws why the pod may not use it. */
export function checkClaim({ metadata: pod }: Pod, { metadata: { name, namespace, uid, ownerReferences }, status }: Readonly<ResourceClaim>, { isMade = false }: Pick<PodClaim, "isMade">): void {
  if (isMade && !ownerReferences?.some((owner) => owner.controller === true && owner.uid === pod.uid)) throw new Error(`ResourceClaim ${namespace}/${name} was not created for Pod ${pod.namespace}/${pod.name} (Pod is not owner)`);
  if (!status?.reservedFor?.some((user) => user.uid === pod.uid)) throw new Error(`pod ${pod.name} (${pod.uid}) is not allowed to use ResourceClaim ${name} (${uid})`);
  if (!status.allocation) throw new Error(`ResourceClaim ${name}: not allocated`);
}

export function driversOf(claim: Readonly<ResourceClaim>): string[] {
  return [...new Set((claim.status?.allocation?.devices?.results ?? []).map(({ driver }) => driver))];
}

export interface PreparedDevice {
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly requests: readonly string[];
  readonly cdiIds: readonly string[];
  /** Of a device that several claims have a part of. */
  readonly shareId?: string | undefined;
}

export interface PreparedClaim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly drivers: readonly string[];
  readonly pods: readonly string[];
  /** Absent: it may have been begun. */
  readonly devices?: readonly PreparedDevice[] | undefined;
}

/** What a container gets of the pod's claims: each once, in the pod's order, whatever it asks of it one by one. */
export function devicesOfContainer(pod: Pod, container: string, preparedAs: (objectName: string) => PreparedClaim | undefined): { readonly claim: PreparedClaim; readonly devices: readonly PreparedDevice[] }[] {
  const spec = allContainers(pod.spec).find((one) => one.container.name === container)?.container;
  const mapped = (pod.status?.extendedResourceClaimStatus?.requestMappings ?? []).filter((mapping) => mapping.containerName === container).map(({ requestName }) => requestName);
  return madeClaims(pod).flatMap(({ podName, name }) => {
    const wanted: readonly (string | undefined)[] = podName === "" ? mapped : (spec?.resources?.claims ?? []).filter((one) => one.name === podName).map(({ request }) => request);
    const claim = wanted.length === 0 ? undefined : preparedAs(name);
    if (!claim) return [];
    const wantsAll = wanted.some((request) => !request);
    const devices = (claim.devices ?? []).filter(({ requests }) => wantsAll || requests.length === 0 || requests.some((one) => wanted.includes(one) || wanted.includes(one.split("/")[0]!)));
    return [{ claim, devices }];
  });
}

/** For the container's status: how what it has of its claims is, under upstream's names. Claims of the scheduler's making are the extended resources', and not told of. */
export function claimHealth(pod: Pod, container: string, { preparedAs, healthOf }: {
  readonly preparedAs: (objectName: string) => PreparedClaim | undefined;
  readonly healthOf: (device: PreparedDevice) => Pick<ResourceHealth, "health" | "message">;
}): ResourceStatus[] {
  const wanted = pod.spec.containers.find(({ name }) => name === container)?.resources?.claims ?? [];
  if (wanted.length === 0) return [];
  const named = new Map(madeClaims(pod).map((claim) => [claim.podName, claim.name]));
  return wanted.flatMap(({ name, request }) => {
    const prepared = named.has(name) ? preparedAs(named.get(name)!) : undefined;
    const base = request?.split("/")[0];
    const devices = (prepared?.devices ?? []).filter(({ requests }) => base === undefined || requests.length === 0 || requests.some((one) => one.split("/")[0] === base));
    const resources = new Map(devices.map((device) => [device.cdiIds[0] ?? `${device.driver}/${device.pool}/${device.device}`, device]));
    if (resources.size === 0) return [];
    return [{ name: request ? `claim:${name}/${request}` : `claim:${name}`, resources: [...resources].map(([resourceID, device]) => ({ resourceID, ...healthOf(device) })) }];
  });
}
