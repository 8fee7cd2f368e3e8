/**
 * Fields behind feature gates that are off in v1.36: dropped from what a client sends, unless the object has them already.
 *
 * Source: kubernetes v1.36 pkg/api/pod/util.go dropDisabledFields, pkg/features/kube_features.go
 */
import type { Container, PodSpec, PodStatus, VolumeMountStatus, VolumeProjection } from "../../../api/gen/core.v1.ts";
import { keepsFieldsOf } from "../../generic/switched-on.ts";
import { containersOf } from "./containers.ts";

/** Sources of projected volumes, each with its gate. */
const SOURCES = [["clusterTrustBundle", "ClusterTrustBundleProjection"], ["podCertificate", "PodCertificateRequest"]] as const;

/** Mutates `spec`. Gates: ContainerStopSignals, ClusterTrustBundleProjection, PodCertificateRequest, GenericWorkload. */
export function dropDisabledFields(spec: PodSpec, old?: Readonly<PodSpec>): void {
  if (!keepsFieldsOf("ContainerStopSignals") && !usesStopSignals(old)) for (const { container } of containersOf(spec)) dropStopSignal(container);
  const sources = projections(spec);
  for (const [source, gate] of SOURCES) {
    const used = keepsFieldsOf(gate) ? [] : sources.filter((projection) => projection[source] !== undefined);
    if (used.length > 0 && !projections(old).some((projection) => projection[source])) for (const projection of used) delete projection[source];
  }
  if (!keepsFieldsOf("GenericWorkload") && !old?.schedulingGroup) delete spec.schedulingGroup;
}

function dropStopSignal(container: Pick<Container, "lifecycle">): void {
  if (container.lifecycle?.stopSignal === undefined) return;
  delete container.lifecycle.stopSignal;
  if (Object.keys(container.lifecycle).length === 0) delete container.lifecycle;
}

function usesStopSignals(spec: Readonly<PodSpec> | undefined): boolean {
  return spec !== undefined && [...containersOf(spec)].some(({ container }) => container.lifecycle?.stopSignal !== undefined);
}

function projections(spec: Readonly<PodSpec> | undefined): VolumeProjection[] { return (spec?.volumes ?? []).flatMap(({ projected }) => projected?.sources ?? []); }

/** Mutates `status`. Gates: ImageVolumeWithDigest, DRANodeAllocatableResources. */
export function dropDisabledStatusFields(status: PodStatus | undefined, old: Readonly<PodStatus> | undefined): void {
  if (!keepsFieldsOf("ImageVolumeWithDigest") && !mounts(old).some(({ volumeStatus }) => volumeStatus)) for (const mount of mounts(status)) delete mount.volumeStatus;
  if (status && !old?.nodeAllocatableResourceClaimStatuses?.length) delete status.nodeAllocatableResourceClaimStatuses;
}

function mounts({ containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] }: Readonly<PodStatus> = {}): VolumeMountStatus[] {
  return [containerStatuses, initContainerStatuses, ephemeralContainerStatuses].flat().flatMap(({ volumeMounts }) => volumeMounts ?? []);
}
