/**
 * The whole spec of a pod, of a pod itself or of a template.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidatePodSpec, validatePodMetadataAndSpec
 */
import { child, duplicate, type FieldError, forbidden, index, invalid, key, NO_FIELD, notFound, required } from "../../../../api/meta/field-error.ts";
import type { Pod, PodResourceClaim, PodSpec } from "../../../../api/gen/core.v1.ts";
import { validateLabels } from "../../../../api/meta/label-selector.ts";
import { rangeMessage } from "../../../../api/meta/names.ts";
import type { TemplateMeta } from "../../../../api/meta/object-meta.ts";
import { internalForm } from "../../../../api/schema/internal-form.ts";
import { isDns1123Label, isDns1123Subdomain, isQualifiedName, oneOf } from "../../checks/values.ts";
import { containersOf } from "../containers.ts";
import { DELETION_COST, isDeletionCost, type PodRules } from "../rules.ts";
import { validateAffinity, validateTolerations } from "./affinity.ts";
import { type ContainerContext, validateContainers, validateEphemeralContainers, validateImageUnpadded, validateInitContainers } from "./containers.ts";
import { validateDnsConfig, validateHostAliases, validateHostnameOverride, validateHostNetwork, validateHostUsers } from "./host.ts";
import { validateOverhead, validatePodResources } from "./resources.ts";
import { validatePodSecurityContext, validateProfileAnnotations } from "./security.ts";
import { validateSpread } from "./spread.ts";
import { readTolerations } from "./toleration-annotation.ts";
import { validateVolumes } from "./volumes.ts";
import { validateHostProcess, validateOs } from "./windows.ts";

export const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";
const TOLERATIONS_ANNOTATION = "scheduler.alpha.kubernetes.io/tolerations";
export const INT32_MAX = 2 ** 31 - 1;

/** Everything about a pod that holds at a create as at an update. */
export function* validatePod(pod: Readonly<Pod>, rules: PodRules): Iterable<FieldError> {
  const { spec, metadata } = pod;
  yield* validatePodAnnotations("metadata.annotations", metadata.annotations ?? {}, spec, rules);
  yield* validatePodSpec("spec", spec, metadata, rules);
  if (!spec.serviceAccountName) yield* validateNoTokens(spec);
  for (const { container, path, kind } of containersOf(spec)) if (kind !== "ephemeral") yield* validateImageUnpadded(path, container);
}

function* validateNoTokens(spec: Readonly<PodSpec>): Iterable<FieldError> {
  for (const [i, { projected }] of (spec.volumes ?? []).entries())
    for (const [j, { serviceAccountToken }] of (projected?.sources ?? []).entries())
      if (serviceAccountToken)
        yield forbidden(child(index(child(index("spec.volumes", i), "projected", "sources"), j), "serviceAccountToken"), "must not be specified when serviceAccountName is not set");
}

export function* validatePodAnnotations(path: string, annotations: Readonly<Record<string, string>>, spec: Readonly<PodSpec>, rules: PodRules): Iterable<FieldError> {
  const mirror = annotations[MIRROR_ANNOTATION];
  if (mirror !== undefined && !spec.nodeName) yield invalid(key(path, MIRROR_ANNOTATION), mirror, "must set spec.nodeName if mirror pod annotation is set");
  const tolerations = annotations[TOLERATIONS_ANNOTATION];
  if (tolerations) {
    const parsed = readTolerations(tolerations);
    if (typeof parsed === "string") yield invalid(path, TOLERATIONS_ANNOTATION, parsed);
    else yield* validateTolerations(child(path, TOLERATIONS_ANNOTATION), parsed, rules.allowComparisonTolerations);
  }
  if (!rules.allowInvalidDeletionCost && !isDeletionCost(annotations[DELETION_COST])) yield invalid(key(path, DELETION_COST), annotations[DELETION_COST], "must be a 32bit integer");
  yield* validateProfileAnnotations(path, annotations, spec);
}

/** `metadata`: of the pod; a template has no name that volumes could be called after. */
export function* validatePodSpec(path: string, spec: Readonly<PodSpec>, metadata: Readonly<TemplateMeta> | undefined, rules: PodRules): Iterable<FieldError> {
  if (spec.terminationGracePeriodSeconds === undefined) yield required(child(path, "terminationGracePeriodSeconds"));
  const { errors, valid } = validateVolumes(child(path, "volumes"), spec.volumes ?? [], { rules, metadata });
  yield* errors;
  yield* validateResourceClaims(child(path, "resourceClaims"), spec.resourceClaims ?? [], metadata);
  const claimNames = new Set((spec.resourceClaims ?? []).map(({ name }) => name).filter(Boolean));
  const context: ContainerContext = { spec, volumes: valid, claimNames, rules };
  yield* validateContainers(child(path, "containers"), context);
  yield* validateInitContainers(child(path, "initContainers"), context);
  yield* validateEphemeralContainers(child(path, "ephemeralContainers"), context);
  yield* validatePodResources(path, spec, rules);
  yield* validateHostNetwork(path, spec, rules);
  yield* oneOf(child(path, "restartPolicy"), spec.restartPolicy, ["Always", "OnFailure", "Never"]);
  yield* oneOf(child(path, "dnsPolicy"), spec.dnsPolicy, ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
  yield* validateLabels(spec.nodeSelector, child(path, "nodeSelector"));
  yield* validatePodSecurityContext(child(path, "securityContext"), spec, rules);
  if (spec.affinity) yield* validateAffinity(child(path, "affinity"), spec.affinity, rules);
  yield* validateDnsConfig(child(path, "dnsConfig"), spec.dnsConfig, spec.dnsPolicy);
  for (const [i, { conditionType }] of (spec.readinessGates ?? []).entries()) yield* isQualifiedName(child(index(child(path, "readinessGates"), i), "conditionType"), conditionType);
  yield* validateSchedulingGates(child(path, "schedulingGates"), spec);
  yield* validateSpread(child(path, "topologySpreadConstraints"), spec.topologySpreadConstraints ?? [], rules);
  yield* validateHostProcess(path, spec);
  yield* validateHostUsers(path, spec, rules);
  yield* validateHostnameOverride(path, spec);
  yield* validateNames(path, spec);
  yield* validateTolerations(child(path, "tolerations"), spec.tolerations ?? [], rules.allowComparisonTolerations);
  yield* validateHostAliases(child(path, "hostAliases"), spec.hostAliases ?? []);
  if (spec.priorityClassName) yield* isDns1123Subdomain(child(path, "priorityClassName"), spec.priorityClassName);
  if (spec.runtimeClassName !== undefined) yield* isDns1123Subdomain(child(path, "runtimeClassName"), spec.runtimeClassName);
  if (spec.preemptionPolicy !== undefined) yield* oneOf(child(path, "preemptionPolicy"), spec.preemptionPolicy, ["PreemptLowerPriority", "Never"]);
  if (spec.overhead) yield* validateOverhead(child(path, "overhead"), spec.overhead, rules);
  yield* validateOs(path, spec);
  if (spec.schedulingGroup) yield* validateSchedulingGroup(child(path, "schedulingGroup"), spec.schedulingGroup.podGroupName);
  yield* validateFileKeyVolumes(path, spec);
}

function* validateNames(path: string, spec: Readonly<PodSpec>): Iterable<FieldError> {
  for (const field of ["serviceAccountName", "nodeName"] as const) if (spec[field]) yield* isDns1123Subdomain(child(path, field), spec[field]);
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && (deadline < 1 || deadline > INT32_MAX)) yield invalid(child(path, "activeDeadlineSeconds"), deadline, rangeMessage(1, INT32_MAX));
  for (const field of ["hostname", "subdomain"] as const) if (spec[field]) yield* isDns1123Label(child(path, field), spec[field]);
}

function* validateResourceClaims(path: string, claims: readonly PodResourceClaim[], metadata: Readonly<TemplateMeta> | undefined): Iterable<FieldError> {
  const names = new Set<string>();
  for (const [i, claim] of claims.entries()) {
    const at = index(path, i);
    if (metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined) { yield forbidden(NO_FIELD, "static pods do not support resource claims"); continue; }
    const { name, resourceClaimName, resourceClaimTemplateName } = claim;
    if (!name) yield required(child(at, "name"));
    else if (names.has(name)) yield duplicate(child(at, "name"), name);
    else yield* isDns1123Label(child(at, "name"), name);
    names.add(name);
    if (resourceClaimName !== undefined && resourceClaimTemplateName !== undefined) yield invalid(at, internalForm("io.k8s.api.core.v1.PodResourceClaim", claim), "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified");
    if (resourceClaimName === undefined && resourceClaimTemplateName === undefined) yield invalid(at, internalForm("io.k8s.api.core.v1.PodResourceClaim", claim), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    if (resourceClaimName !== undefined) yield* isDns1123Subdomain(child(at, "resourceClaimName"), resourceClaimName);
    if (resourceClaimTemplateName !== undefined) yield* isDns1123Subdomain(child(at, "resourceClaimTemplateName"), resourceClaimTemplateName);
  }
}

function* validateSchedulingGates(path: string, { schedulingGates }: Readonly<PodSpec>): Iterable<FieldError> {
  const seen = new Set<string>();
  for (const [i, { name }] of (schedulingGates ?? []).entries()) {
    yield* isQualifiedName(index(path, i), name);
    if (seen.has(name)) yield duplicate(index(path, i), name);
    seen.add(name);
  }
}

function* validateSchedulingGroup(path: string, name: string | undefined): Iterable<FieldError> {
  const at = child(path, "podGroupName");
  if (name === undefined) yield invalid(at, undefined, "must specify one of: `podGroupName`");
  else yield* isDns1123Subdomain(at, name);
}

/** Variables read from a file read it from a directory that is the pod's own. */
function* validateFileKeyVolumes(path: string, spec: Readonly<PodSpec>): Iterable<FieldError> {
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]));
  for (const { container, path: at } of containersOf(spec, path)) {
    for (const [i, { valueFrom }] of (container.env ?? []).entries()) {
      const name = valueFrom?.fileKeyRef?.volumeName;
      if (name === undefined) continue;
      const volumePath = child(index(child(at, "env"), i), "valueFrom", "fileKeyRef", "volumeName");
      const volume = volumes.get(name);
      if (!volume) yield notFound(volumePath, name);
      else if (!volume.emptyDir) yield invalid(volumePath, name, "referenced volume must be of type emptyDir");
    }
  }
}

