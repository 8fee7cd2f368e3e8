/**
 * PersistentVolumeClaim (v1): a wish for a volume. dataSource and dataSourceRef say the same, whichever of them the client knows.
 *
 * Source: kubernetes v1.36 pkg/registry/core/persistentvolumeclaim/strategy.go, pkg/api/persistentvolumeclaim/util.go
 */
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec, TypedLocalObjectReference } from "../../../api/gen/core.v1.ts";
import { defineResource } from "../../generic/resource.ts";
import { keepsFieldsOf } from "../../generic/switched-on.ts";
import { statusPart } from "../status-part.ts";
import { defaultClaim } from "./defaults.ts";
import { nameSourceTwice, validateClaimSpec, validateClaimStatus, validateClaimUpdate } from "./validation.ts";
import { claimWarnings } from "./warnings.ts";

const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

export const persistentVolumeClaims = defineResource<PersistentVolumeClaim>({
  group: "", version: "v1", kind: "PersistentVolumeClaim", plural: "persistentvolumeclaims",
  generation: false,
  defaults: defaultClaim,
  prepareForCreate(claim) {
    claim.status = {};
    alignDataSources(claim.spec, undefined);
  },
  onceStored: (claim) => ({ ...claim, status: { phase: "Pending" } }),
  prepareForUpdate(next, old) { alignDataSources(next.spec, old.spec); },
  validate: ({ spec }, old) => validateClaimSpec("spec", spec, old?.spec),
  validateUpdate: validateClaimUpdate,
  *warnings({ metadata, spec }) {
    if (metadata.annotations?.[CLASS_ANNOTATION] !== undefined) yield `metadata.annotations[${CLASS_ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead`;
    yield* claimWarnings("spec", spec);
  },
  subresources: { status: statusPart<PersistentVolumeClaim>({ validate: validateClaimStatus }) },
});

function alignDataSources(spec: PersistentVolumeClaimSpec, old: Readonly<PersistentVolumeClaimSpec> | undefined): void {
  if (spec.dataSourceRef?.namespace && !old?.dataSourceRef && !keepsFieldsOf("CrossNamespaceVolumeDataSource")) delete spec.dataSourceRef; // of another namespace
  if (!old?.dataSource && !old?.dataSourceRef && !spec.dataSourceRef && !isClaimOrSnapshot(spec.dataSource)) delete spec.dataSource;
  nameSourceTwice(spec);
}

/** The only sources there were before any kind could be one. */
function isClaimOrSnapshot(source: TypedLocalObjectReference | undefined): boolean {
  const group = source?.apiGroup ?? "";
  return (source?.kind === "PersistentVolumeClaim" && group === "") || (source?.kind === "VolumeSnapshot" && group === "snapshot.storage.k8s.io");
}
