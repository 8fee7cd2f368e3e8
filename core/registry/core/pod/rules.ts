/**
 * What is let pass because it was stored before it was forbidden, or because only pods, not templates, are held to it.
 *
 * Source: kubernetes v1.36 pkg/api/pod/util.go GetValidationOptionsFromPodSpecAndMeta
 */
import type { LabelSelector } from "../../../api/gen/meta.v1.ts";
import type { PodAffinityTerm, PodSpec, TopologySpreadConstraint } from "../../../api/gen/core.v1.ts";
import { validateLabelSelector } from "../../../api/meta/label-selector.ts";
import { labelValue } from "../../../api/meta/names.ts";
import type { TemplateMeta } from "../../../api/meta/object-meta.ts";
import { keepsFieldsOf } from "../../generic/switched-on.ts";
import { localNonReserved } from "../checks/paths.ts";
import { isDivisibleHugePage, isHugePage, type ResourceList } from "../checks/resources.ts";
import { containersOf } from "./containers.ts";
import { hasHostSysctl } from "./validation/sysctls.ts";

export interface PodRules {
  /** A pod itself, not the template of one. */
  readonly isPod: boolean;
  readonly allowInvalidDeletionCost: boolean;
  readonly allowIndivisibleHugePages: boolean;
  readonly allowInvalidLabelValueInSelector: boolean;
  readonly allowInvalidLabelValueInNodeAffinity: boolean;
  readonly allowInvalidSpreadSelector: boolean;
  /** matchLabelKeys of a spread constraint repeat keys of its selector. */
  readonly allowRepeatedSpreadKeys: boolean;
  readonly allowNonLocalTokenPath: boolean;
  readonly allowHostSysctls: boolean;
  readonly allowRestartContainerInInit: boolean;
  readonly allowVolumeDevicesInUserNamespace: boolean;
  readonly allowHostNetworkInUserNamespace: boolean;
  readonly allowComparisonTolerations: boolean;
  readonly allowSeLinuxMountOption: boolean;
  /** What a status tells of the images of volumes is looked at. */
  readonly checksImageVolumes: boolean;
}

/** What is being replaced, if anything is. */
export interface OldPod { readonly spec?: Readonly<PodSpec> | undefined; readonly metadata?: Readonly<TemplateMeta> | undefined }

export function podRules(isPod: boolean, old?: OldPod): PodRules {
  const spec = old?.spec;
  return {
    isPod,
    allowInvalidDeletionCost: old !== undefined && !isDeletionCost(old.metadata?.annotations?.[DELETION_COST]),
    allowIndivisibleHugePages: spec !== undefined && hugePageLists(spec).some(hasIndivisible),
    allowInvalidLabelValueInSelector: spec !== undefined && affinityTerms(spec).some(({ labelSelector, namespaceSelector }) => hasInvalidValue(labelSelector) || hasInvalidValue(namespaceSelector)),
    allowInvalidLabelValueInNodeAffinity: spec !== undefined && hasInvalidNodeAffinityValue(spec),
    allowInvalidSpreadSelector: (spec?.topologySpreadConstraints ?? []).some(({ labelSelector }) => validateLabelSelector(labelSelector, "").length > 0),
    allowRepeatedSpreadKeys: (spec?.topologySpreadConstraints ?? []).some(repeatsKeys),
    allowNonLocalTokenPath: (spec?.volumes ?? []).some(({ projected }) =>
      (projected?.sources ?? []).some(({ serviceAccountToken }) => serviceAccountToken !== undefined && [...localNonReserved("", serviceAccountToken.path)].length > 0)),
    allowHostSysctls: spec !== undefined && hasHostSysctl(spec),
    allowRestartContainerInInit: (spec?.initContainers ?? []).some(({ restartPolicy, resizePolicy }) =>
      restartPolicy !== "Always" && (resizePolicy ?? []).some((policy) => policy.restartPolicy === "RestartContainer")),
    allowVolumeDevicesInUserNamespace: spec?.hostUsers === false && [...containersOf(spec)].some(({ container }) => (container.volumeDevices ?? []).length > 0),
    allowHostNetworkInUserNamespace: keepsFieldsOf("UserNamespacesHostNetworkSupport") || (spec?.hostUsers === false && spec.hostNetwork === true),
    allowComparisonTolerations: keepsFieldsOf("TaintTolerationComparisonOperators") || (spec?.tolerations ?? []).some(({ operator }) => operator === "Lt" || operator === "Gt"),
    allowSeLinuxMountOption: spec?.securityContext?.seLinuxChangePolicy !== undefined,
    checksImageVolumes: keepsFieldsOf("ImageVolumeWithDigest"),
  };
}

export const DELETION_COST = "controller.kubernetes.io/pod-deletion-cost";

/** An int32 without a plus sign or leading zeros; absent is fine. */
export function isDeletionCost(text: string | undefined): boolean {
  return text === undefined || (/^(0|-\d+|[1-9]\d*)$/.test(text) && Math.abs(Number(text) + 0.5) < 2 ** 31);
}

function hugePageLists(spec: Readonly<PodSpec>): (ResourceList | undefined)[] {
  return [spec.overhead, ...[...containersOf(spec)].flatMap(({ container }) => [container.resources?.limits, container.resources?.requests])];
}

function hasIndivisible(list: ResourceList | undefined): boolean {
  return Object.entries(list ?? {}).some(([name, value]) => isHugePage(name) && !isDivisibleHugePage(name, value));
}

function affinityTerms({ affinity }: Readonly<PodSpec>): PodAffinityTerm[] {
  return [affinity?.podAffinity, affinity?.podAntiAffinity].flatMap((part) => [
    ...(part?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(part?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ]);
}

function hasInvalidValue(selector: Readonly<LabelSelector> | undefined): boolean {
  return (selector?.matchExpressions ?? []).some(({ values }) => (values ?? []).some(isInvalidValue));
}

function hasInvalidNodeAffinityValue({ affinity }: Readonly<PodSpec>): boolean {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms.some(({ matchExpressions }) => (matchExpressions ?? []).some(({ values }) => (values ?? []).some(isInvalidValue)));
}

function isInvalidValue(value: string): boolean { return labelValue(value).length > 0; }

function repeatsKeys({ matchLabelKeys, labelSelector }: TopologySpreadConstraint): boolean {
  if (!matchLabelKeys?.length) return false;
  const [seen, merged] = [new Set(Object.keys(labelSelector?.matchLabels ?? {})), new Set(matchLabelKeys)];
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    if (seen.has(key) && merged.has(key)) return true;
    seen.add(key);
  }
  return false;
}
