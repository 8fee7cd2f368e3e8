/**
 * The status a kubelet, the scheduler or a controller reports for a pod.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidatePodStatusUpdate
 */
import { child, duplicate, type FieldError, forbidden, index, internal, invalid, key, notSupported, required, tooLong } from "../../../../api/meta/field-error.ts";
import type { Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus } from "../../../../api/gen/core.v1.ts";
import { byteLength } from "../../../../api/meta/byte-length.ts";
import { userId } from "../../../../api/meta/names.ts";
import { parseQuantity } from "../../../../api/meta/quantity.ts";
import { isNativeResource } from "../../../../api/meta/resource-names.ts";
import { familyOf, isDualStack, legacyIp } from "../../checks/ip.ts";
import { immutable, isDns1123Label, isDns1123Subdomain, isQualifiedName, problems } from "../../checks/values.ts";
import type { PodRules } from "../rules.ts";
import { validatePodAnnotations } from "./spec.ts";
import { validateAnnotationUpdates } from "./update.ts";

const SYSTEM_CONDITIONS = ["PodScheduled", "Ready", "Initialized"];
const NOT_NEGATIVE = "must be a non-negative integer";
const HEALTHS = ["Healthy", "Unhealthy", "Unknown"];
const HEALTH_MESSAGE_BYTES_MAX = 1024;
const IMAGE_REF_BYTES_MAX = 256;

export function* validateStatusUpdate(next: Readonly<Pod>, old: Readonly<Pod>, rules: PodRules): Iterable<FieldError> {
  const annotations = next.metadata.annotations ?? {};
  yield* validateAnnotationUpdates(annotations, old.metadata.annotations ?? {});
  yield* validatePodAnnotations("metadata.annotations", annotations, next.spec, rules);
  const status = next.status ?? {};
  const before = old.status ?? {};
  yield* validateConditions("status.conditions", status.conditions ?? []);
  yield* validateNomination(status.nominatedNodeName ?? "", before.nominatedNodeName ?? "", old.spec.nodeName ?? "");
  if ((status.observedGeneration ?? 0) < 0) yield invalid("status.observedGeneration", status.observedGeneration, NOT_NEGATIVE);
  yield* immutable("status.qosClass", status.qosClass, before.qosClass);
  yield* validateTransitions("status.containerStatuses", status.containerStatuses, before.containerStatuses, old.spec, old.spec.containers);
  yield* validateTransitions("status.initContainerStatuses", status.initContainerStatuses, before.initContainerStatuses, old.spec, old.spec.initContainers ?? []);
  yield* validateTransitions("status.ephemeralContainerStatuses", status.ephemeralContainerStatuses, before.ephemeralContainerStatuses, old.spec, undefined);
  yield* validateClaimStatuses(status, next.spec);
  yield* validateAddresses("status.podIPs", (status.podIPs ?? []).map(({ ip }) => ip), new Set((before.podIPs ?? []).map(({ ip }) => ip)));
  const hostIps = (status.hostIPs ?? []).map(({ ip }) => ip);
  if (hostIps.length > 0 && (status.hostIP ?? "") !== hostIps[0]) yield invalid("status.hostIPs[0].ip", hostIps[0], "must be equal to `hostIP`");
  yield* validateAddresses("status.hostIPs", hostIps, new Set((before.hostIPs ?? []).map(({ ip }) => ip)));
  const statuses = ([["containerStatuses", next.spec.containers], ["initContainerStatuses", next.spec.initContainers ?? []], ["ephemeralContainerStatuses", undefined]] as const)
    .map(([field, containers]) => ({ path: child("status", field), told: status[field] ?? [], containers }));
  for (const { path, told } of statuses) yield* validateUsers(path, told, next.spec.os?.name);
  for (const { path, told, containers } of statuses) yield* validateAllocated(path, told, containers);
  if (rules.checksImageVolumes) for (const { path, told } of statuses) yield* validateImageVolumes(path, told);
}

/** Which image a volume has. Upstream's path is of the type, not of the field. */
function* validateImageVolumes(path: string, statuses: readonly ContainerStatus[]): Iterable<FieldError> {
  for (const [i, { volumeMounts = [] }] of statuses.entries()) {
    for (const [j, { volumeStatus }] of volumeMounts.entries()) {
      if (!volumeStatus?.image) continue;
      const at = child(index(child(index(path, i), "volumeMounts"), j), "volumeStatus", "imageVolumeStatus", "imageRef"), { imageRef = "" } = volumeStatus.image;
      if (imageRef === "") yield required(at, "imageRef must not be empty");
      if (byteLength(imageRef) > IMAGE_REF_BYTES_MAX) yield tooLong(at, IMAGE_REF_BYTES_MAX);
    }
  }
}

function* validateConditions(path: string, conditions: readonly PodCondition[]): Iterable<FieldError> {
  for (const [i, { type, observedGeneration }] of conditions.entries()) {
    const at = index(path, i);
    if ((observedGeneration ?? 0) < 0) yield invalid(child(at, "observedGeneration"), observedGeneration, NOT_NEGATIVE);
    if (!SYSTEM_CONDITIONS.includes(type)) yield* isQualifiedName(child(at, "Type"), type);
  }
}

function* validateNomination(next: string, old: string, boundTo: string): Iterable<FieldError> {
  if (next === "" || next === old) return;
  yield* isDns1123Subdomain("status.nominatedNodeName", next);
  if (boundTo !== "") yield forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node");
}

/** A container that has ended for good does not run again. `containers` undefined: ephemeral ones, which never run twice. */
function* validateTransitions(
  path: string, next: readonly ContainerStatus[] = [], old: readonly ContainerStatus[] = [], spec: Readonly<PodSpec>, containers: readonly Container[] | undefined,
): Iterable<FieldError> {
  if (!old.some(({ state }) => state?.terminated) || (containers !== undefined && restartsAll(spec))) return;
  const [statuses, byName] = [firstByName(next), firstByName(containers ?? [])];
  for (const [i, { name, state }] of old.entries()) {
    if (!state?.terminated) continue;
    const now = statuses.get(name);
    if (!now || now.state?.terminated) continue;
    const container = byName.get(name);
    if (container && mayRestart(container, spec, state.terminated.exitCode ?? 0)) continue;
    yield forbidden(child(index(path, i), "state"), "may not be transitioned to non-terminated state");
  }
}

function firstByName<T extends { readonly name: string }>(items: readonly T[]): ReadonlyMap<string, T> {
  const found = new Map<string, T>();
  for (const item of items) if (!found.has(item.name)) found.set(item.name, item);
  return found;
}

/** One container's end may start all of them again. */
function restartsAll(spec: Readonly<PodSpec>): boolean {
  return [...(spec.containers ?? []), ...(spec.initContainers ?? [])].some(({ restartPolicyRules }) => (restartPolicyRules ?? []).some(({ action }) => action === "RestartAllContainers"));
}

function mayRestart(container: Readonly<Container>, spec: Readonly<PodSpec>, exitCode: number): boolean {
  if (container.restartPolicy !== undefined) {
    for (const { exitCodes } of container.restartPolicyRules ?? []) {
      const listed = (exitCodes?.values ?? []).includes(exitCode);
      if (exitCodes && (exitCodes.operator === "In" ? listed : !listed)) return true;
    }
  }
  const policy = container.restartPolicy ?? spec.restartPolicy;
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

function* validateAddresses(path: string, ips: readonly string[], known: ReadonlySet<string>): Iterable<FieldError> {
  for (const [i, ip] of ips.entries()) yield* legacyIp(index(path, i), ip, known);
  const none = ips.findIndex((ip) => familyOf(ip) === undefined);
  if (ips.length > 1 && none >= 0) yield internal(path, `failed to check for dual stack with error:invalid IP[${none}]: ${ips[none]}`);
  if (ips.length > 1 && (ips.length > 2 || !isDualStack(ips))) yield invalid(path, ips.map((ip) => ({ IP: ip })), "may specify no more than one IP for each IP family");
}

function* validateUsers(path: string, statuses: readonly ContainerStatus[], os = "linux"): Iterable<FieldError> {
  for (const [i, { user }] of statuses.entries()) {
    const linux = user?.linux;
    if (!linux) continue;
    const at = child(index(path, i), "user", "linux");
    if (os === "windows") { yield forbidden(at, "cannot be set for a windows pod"); continue; }
    yield* problems(child(at, "uid"), linux.uid, userId(linux.uid));
    yield* problems(child(at, "gid"), linux.gid, userId(linux.gid));
    for (const [g, group] of (linux.supplementalGroups ?? []).entries()) yield* problems(index(child(at, "supplementalGroups"), g), group, userId(group));
  }
}

/** The health of devices a container holds. `containers` undefined: ephemeral containers, which hold none. */
function* validateAllocated(path: string, statuses: readonly ContainerStatus[], containers: readonly Container[] | undefined): Iterable<FieldError> {
  if (!statuses.some(({ allocatedResourcesStatus }) => allocatedResourcesStatus?.length)) return;
  const byName = firstByName(containers ?? []);
  for (const [i, { name, allocatedResourcesStatus }] of statuses.entries()) {
    const at = child(index(path, i), "allocatedResourcesStatus");
    if (!allocatedResourcesStatus?.length) continue;
    if (!containers) { yield forbidden(at, "must not be specified in container status"); continue; }
    const container = byName.get(name);
    const held = container && heldBy(container);
    for (const [j, resource] of allocatedResourcesStatus.entries()) {
      if (held && !held.has(resource.name)) yield notHeld(child(index(at, j), "name"), resource.name);
      const seen = new Set<string>();
      for (const [k, { health, message, resourceID }] of (resource.resources ?? []).entries()) {
        const item = index(child(index(at, j), "resources"), k);
        if (!HEALTHS.includes(health ?? "")) yield notSupported(child(item, "health"), health ?? "", HEALTHS);
        if (message === "") yield required(child(item, "message"), "must be non-empty if specified");
        else if (message !== undefined && Buffer.byteLength(message) > HEALTH_MESSAGE_BYTES_MAX) yield tooLong(child(item, "message"), HEALTH_MESSAGE_BYTES_MAX);
        if (seen.has(resourceID)) yield duplicate(child(item, "resourceID"), resourceID);
        seen.add(resourceID);
      }
    }
  }
}

function heldBy({ resources }: Readonly<Container>): ReadonlySet<string> {
  return new Set([...(resources?.claims ?? []).map((claim) => `claim:${claim.name}${claim.request ? `/${claim.request}` : ""}`), ...Object.keys(resources?.requests ?? {})]);
}

function notHeld(path: string, name: string): FieldError {
  return invalid(path, name, name.startsWith("claim:")
    ? "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
    : "must match one of the container's resource requests");
}

function* validateClaimStatuses(status: PodStatus, spec: Readonly<PodSpec>): Iterable<FieldError> {
  const seen = new Set<string>();
  const claims = new Set(status.resourceClaimStatuses?.length ? (spec.resourceClaims ?? []).map(({ name }) => name) : []);
  for (const [i, { name, resourceClaimName }] of (status.resourceClaimStatuses ?? []).entries()) {
    const at = index("status.resourceClaimStatuses", i);
    if (!claims.has(name)) yield invalid(child(at, "name"), name, "must match the name of an entry in `spec.resourceClaims`");
    if (seen.has(name)) yield duplicate(child(at, "name"), name);
    seen.add(name);
    if (resourceClaimName !== undefined) yield* isDns1123Subdomain(child(at, "resourceClaimName"), resourceClaimName);
  }
  yield* validateExtendedClaim(status, spec);
  yield* validateNodeAllocatable(status, spec);
}

function* validateExtendedClaim({ extendedResourceClaimStatus: extended }: PodStatus, spec: Readonly<PodSpec>): Iterable<FieldError> {
  if (!extended) return;
  const path = "status.extendedResourceClaimStatus";
  const containers = new Map([...(spec.initContainers ?? []), ...(spec.containers ?? [])].map((container) => [container.name, container])); // of those with one name the last counts
  const mappings = extended.requestMappings ?? [];
  if (mappings.length === 0) yield required(child(path, "requestMappings"), "at least one request mapping is required");
  const seen = new Set<string>();
  for (const [i, { containerName, resourceName, requestName }] of mappings.entries()) {
    const at = index(child(path, "requestMappings"), i);
    const container = containers.get(containerName);
    if (!container) yield invalid(child(at, "containerName"), containerName, "must match the name of an entry in spec.initContainers.name or spec.containers.name");
    else if (container.resources?.requests?.[resourceName] === undefined)
      yield invalid(child(at, "resourceName"), resourceName, "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests");
    yield* isDns1123Label(child(path, "requestName"), requestName);
    const mapping = `${containerName}\n${resourceName}\n${requestName}`;
    if (seen.has(mapping)) {
      yield duplicate(child(at, "containerName"), containerName);
      yield duplicate(child(at, "resourceName"), resourceName);
      yield duplicate(child(at, "requestName"), requestName);
    }
    seen.add(mapping);
  }
  if (!extended.resourceClaimName) yield required(child(path, "resourceClaimName"));
  else yield* isDns1123Subdomain(child(path, "resourceClaimName"), extended.resourceClaimName);
}

function* validateNodeAllocatable(status: PodStatus, spec: Readonly<PodSpec>): Iterable<FieldError> {
  if (!status.nodeAllocatableResourceClaimStatuses?.length) return;
  const claims = new Set([...(spec.resourceClaims ?? []), ...(status.resourceClaimStatuses ?? [])].map((claim) => claim.resourceClaimName));
  for (const [i, { resourceClaimName, containers, resources }] of status.nodeAllocatableResourceClaimStatuses.entries()) {
    const at = index("status.nodeAllocatableResourceClaimStatuses", i);
    if (!resourceClaimName) yield required(child(at, "resourceClaimName"), "must not be empty");
    if (!claims.has(resourceClaimName)) yield invalid(child(at, "resourceClaimName"), resourceClaimName, "no mapping found in pod reference");
    if (!containers?.length) yield required(child(at, "containers"), "must not be empty");
    const entries = Object.entries(resources ?? {});
    if (entries.length === 0) yield required(child(at, "resources"), "must not be empty");
    for (const [name, value] of entries) {
      const itemPath = key(child(at, "resources"), name);
      if (!isNativeResource(name)) yield invalid(itemPath, name, "must be a node allocatable resource name");
      if (parseQuantity(value).sign < 0) yield invalid(itemPath, value, "must be non-negative");
    }
  }
}
