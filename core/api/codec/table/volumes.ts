/** Volumes, claims and CSI. Source: kubernetes v1.36 pkg/printers/internalversion/printers.go, pkg/apis/core/helper/helpers.go */
import type { PersistentVolume, PersistentVolumeAccessMode, PersistentVolumeClaim } from "../../gen/core.v1.ts";
import type { CSIDriver, CSINode, StorageClass, VolumeAttachment, VolumeAttributesClass } from "../../gen/storage.v1.ts";
import { DEFAULT_CLASS_ANNOTATIONS } from "../../meta/default-class.ts";
import { annotationsOf } from "../../meta/object-meta.ts";
import { AGE, BOOLEAN, column, CORE, fieldColumn, INTEGER, NAME, WIDE } from "./columns.ts";
import { since } from "./human-duration.ts";
import { printer } from "./printer.ts";

const STORAGE = "api.storage.v1";
/** Where a claim named its class before there was a field for it. */
const STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

const SHORT_MODES: readonly [mode: PersistentVolumeAccessMode, short: string][] = [
  ["ReadWriteOnce", "RWO"], ["ReadOnlyMany", "ROX"], ["ReadWriteMany", "RWX"], ["ReadWriteOncePod", "RWOP"],
];

function accessModes(modes: readonly PersistentVolumeAccessMode[] | undefined): string {
  return SHORT_MODES.filter(([mode]) => modes?.includes(mode)).map(([, short]) => short).join(",");
}

export const persistentVolumes = printer<PersistentVolume>({
  columns: [
    NAME,
    fieldColumn("Capacity", `${CORE}.PersistentVolumeSpec.capacity`),
    fieldColumn("Access Modes", `${CORE}.PersistentVolumeSpec.accessModes`),
    fieldColumn("Reclaim Policy", `${CORE}.PersistentVolumeSpec.persistentVolumeReclaimPolicy`),
    fieldColumn("Status", `${CORE}.PersistentVolumeStatus.phase`),
    fieldColumn("Claim", `${CORE}.PersistentVolumeSpec.claimRef`),
    column("StorageClass", "StorageClass of the pv"),
    column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
    fieldColumn("Reason", `${CORE}.PersistentVolumeStatus.reason`),
    AGE,
    fieldColumn("VolumeMode", `${CORE}.PersistentVolumeSpec.volumeMode`, WIDE),
  ],
  cells(volume, nowMs) {
    const { metadata, spec, status } = volume;
    return [
      metadata.name,
      spec?.capacity?.["storage"] ?? "0",
      accessModes(spec?.accessModes),
      spec?.persistentVolumeReclaimPolicy ?? "",
      metadata.deletionTimestamp ? "Terminating" : status?.phase ?? "",
      spec?.claimRef ? `${spec.claimRef.namespace ?? ""}/${spec.claimRef.name ?? ""}` : "",
      annotationsOf(volume)[STORAGE_CLASS_ANNOTATION] ?? spec?.storageClassName ?? "",
      spec?.volumeAttributesClassName ?? "<unset>",
      status?.reason ?? "",
      since(metadata.creationTimestamp, nowMs),
      spec?.volumeMode ?? "<unset>",
    ];
  },
});

export const persistentVolumeClaims = printer<PersistentVolumeClaim>({
  columns: [
    NAME,
    fieldColumn("Status", `${CORE}.PersistentVolumeClaimStatus.phase`),
    fieldColumn("Volume", `${CORE}.PersistentVolumeClaimSpec.volumeName`),
    fieldColumn("Capacity", `${CORE}.PersistentVolumeClaimStatus.capacity`),
    fieldColumn("Access Modes", `${CORE}.PersistentVolumeClaimStatus.accessModes`),
    column("StorageClass", "StorageClass of the pvc"),
    column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
    AGE,
    fieldColumn("VolumeMode", `${CORE}.PersistentVolumeClaimSpec.volumeMode`, WIDE),
  ],
  cells(claim, nowMs) {
    const { metadata, spec, status } = claim;
    const bound = Boolean(spec?.volumeName);
    return [
      metadata.name,
      metadata.deletionTimestamp ? "Terminating" : status?.phase ?? "",
      spec?.volumeName ?? "",
      bound ? status?.capacity?.["storage"] ?? "0" : "",
      bound ? accessModes(status?.accessModes) : "",
      annotationsOf(claim)[STORAGE_CLASS_ANNOTATION] ?? spec?.storageClassName ?? "",
      spec?.volumeAttributesClassName ?? "<unset>",
      since(metadata.creationTimestamp, nowMs),
      spec?.volumeMode ?? "<unset>",
    ];
  },
});

export const storageClasses = printer<StorageClass>({
  columns: [
    NAME,
    fieldColumn("Provisioner", `${STORAGE}.StorageClass.provisioner`),
    fieldColumn("ReclaimPolicy", `${STORAGE}.StorageClass.reclaimPolicy`),
    fieldColumn("VolumeBindingMode", `${STORAGE}.StorageClass.volumeBindingMode`),
    fieldColumn("AllowVolumeExpansion", `${STORAGE}.StorageClass.allowVolumeExpansion`),
    AGE,
  ],
  cells(object, nowMs) {
    const isDefault = DEFAULT_CLASS_ANNOTATIONS.some((name) => annotationsOf(object)[name] === "true");
    return [
      isDefault ? `${object.metadata.name} (default)` : object.metadata.name,
      object.provisioner,
      object.reclaimPolicy ?? "Delete",
      object.volumeBindingMode ?? "Immediate",
      object.allowVolumeExpansion ?? false,
      since(object.metadata.creationTimestamp, nowMs),
    ];
  },
});

export const volumeAttributesClasses = printer<VolumeAttributesClass>({
  columns: [NAME, fieldColumn("DriverName", `${STORAGE}.VolumeAttributesClass.driverName`), AGE],
  cells: ({ metadata, driverName }, nowMs) => [metadata.name, driverName, since(metadata.creationTimestamp, nowMs)],
});

export const volumeAttachments = printer<VolumeAttachment>({
  columns: [
    NAME,
    fieldColumn("Attacher", `${STORAGE}.VolumeAttachmentSpec.attacher`, { format: "name" }),
    fieldColumn("PV", `${STORAGE}.VolumeAttachmentSource.persistentVolumeName`),
    fieldColumn("Node", `${STORAGE}.VolumeAttachmentSpec.nodeName`),
    fieldColumn("Attached", `${STORAGE}.VolumeAttachmentStatus.attached`, BOOLEAN),
    AGE,
  ],
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name, spec?.attacher ?? "", spec?.source?.persistentVolumeName ?? "", spec?.nodeName ?? "", status?.attached ?? false,
    since(metadata.creationTimestamp, nowMs),
  ],
});

export const csiNodes = printer<CSINode>({
  columns: [NAME, column("Drivers", "Drivers indicates the number of CSI drivers registered on the node", INTEGER), AGE],
  cells: ({ metadata, spec }, nowMs) => [metadata.name, spec?.drivers?.length ?? 0, since(metadata.creationTimestamp, nowMs)],
});

export const csiDrivers = printer<CSIDriver>({
  columns: [
    NAME,
    fieldColumn("AttachRequired", `${STORAGE}.CSIDriverSpec.attachRequired`, BOOLEAN),
    fieldColumn("PodInfoOnMount", `${STORAGE}.CSIDriverSpec.podInfoOnMount`, BOOLEAN),
    fieldColumn("StorageCapacity", `${STORAGE}.CSIDriverSpec.storageCapacity`, BOOLEAN),
    fieldColumn("TokenRequests", `${STORAGE}.CSIDriverSpec.tokenRequests`),
    fieldColumn("RequiresRepublish", `${STORAGE}.CSIDriverSpec.requiresRepublish`, BOOLEAN),
    fieldColumn("Modes", `${STORAGE}.CSIDriverSpec.volumeLifecycleModes`),
    AGE,
  ],
  cells: ({ metadata, spec }, nowMs) => [
    metadata.name,
    spec?.attachRequired ?? true,
    spec?.podInfoOnMount ?? false,
    spec?.storageCapacity ?? false,
    spec?.tokenRequests ? spec.tokenRequests.map(({ audience }) => audience).join(",") : "<unset>",
    spec?.requiresRepublish ?? false,
    (spec?.volumeLifecycleModes ?? []).join(",") || "<none>",
    since(metadata.creationTimestamp, nowMs),
  ],
});
