/** What a volume is, and what of it may change. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidatePersistentVolumeSpec */
import { posix } from "node:path";
import { child, type FieldError, FIELD_IMMUTABLE, forbidden, invalid, key, notSupported, required } from "../../../api/meta/field-error.ts";
import type { PersistentVolume, PersistentVolumeSpec } from "../../../api/gen/core.v1.ts";
import { labelValue } from "../../../api/meta/names.ts";
import { annotationsOf } from "../../../api/meta/object-meta.ts";
import { internalForm } from "../../../api/schema/internal-form.ts";
import { jsonDiff } from "../checks/diff.ts";
import { semanticEqual } from "../checks/equal.ts";
import { keepsFieldsOf } from "../../generic/switched-on.ts";
import { positiveQuantity, volumeQuantity } from "../checks/resources.ts";
import { immutable, isDns1123Subdomain, oneOfOptional } from "../checks/values.ts";
import { validateAccessModes, VOLUME_MODES } from "../persistent-volume-claim/validation.ts";
import { validateNodeSelector } from "../pod/validation/affinity.ts";
import { persistentGlusterfs, persistentIscsi, persistentSourceChecks } from "../pod/validation/volume-sources.ts";

const MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options";
const MOUNTED = [
  "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs", "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk",
] as const satisfies readonly (keyof PersistentVolumeSpec)[];
const RECLAIM_POLICIES = ["Delete", "Recycle", "Retain"];
const COLLISION_NAMES: Readonly<Record<string, string>> = { cephfs: "cephFS" };
const ERROR_NAMES: Readonly<Record<string, string>> = { gcePersistentDisk: "persistentDisk" };
/** In the order in which upstream looks at them: the first is the one that counts. */
const SOURCES = [
  "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume",
  "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi",
] as const;

export function* validateVolumeSpec(path: string, spec: Readonly<PersistentVolumeSpec>, name: string, old?: Readonly<PersistentVolumeSpec>): Iterable<FieldError> {
  if (!spec.accessModes?.length) yield required(child(path, "accessModes"));
  yield* validateAccessModes(child(path, "accessModes"), spec.accessModes ?? []);
  yield* validateCapacity(child(path, "capacity"), spec.capacity);
  yield* oneOfOptional(child(path, "persistentVolumeReclaimPolicy"), spec.persistentVolumeReclaimPolicy, RECLAIM_POLICIES);
  const affinityPath = child(path, "nodeAffinity");
  if (spec.nodeAffinity) {
    if (spec.nodeAffinity.required) yield* validateNodeSelector(child(affinityPath, "required"), spec.nodeAffinity.required, hasInvalidValue(old));
    else yield required(child(affinityPath, "required"), "must specify required node constraints");
  }
  yield* validateSource(path, spec, name);
  if (spec.hostPath && posix.normalize(spec.hostPath.path) === "/" && spec.persistentVolumeReclaimPolicy === "Recycle")
    yield forbidden(child(path, "persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'");
  if (spec.storageClassName) yield* isDns1123Subdomain(child(path, "storageClassName"), spec.storageClassName);
  yield* oneOfOptional(child(path, "volumeMode"), spec.volumeMode, VOLUME_MODES);
  const attributes = spec.volumeAttributesClassName;
  if (attributes === undefined) return;
  if (attributes === "") yield required(child(path, "volumeAttributesClassName"), "an empty string is disallowed");
  else yield* isDns1123Subdomain(child(path, "volumeAttributesClassName"), attributes);
  if (!spec.csi) yield required(child(path, "csi"), "has to be specified when using volumeAttributesClassName");
}

/** An annotation from before there was a field: for those volumes alone that a mount of the node's brings. One that was there already stays. Source: kubernetes v1.36 pkg/volume/validation/pv_validation.go */
export function* validateMountOptions(volume: Readonly<PersistentVolume>, old: Readonly<PersistentVolume> | undefined): Iterable<FieldError> {
  const isNew = annotationsOf(volume)[MOUNT_OPTIONS] !== undefined && (!old || annotationsOf(old)[MOUNT_OPTIONS] === undefined);
  if (isNew && !MOUNTED.some((field) => volume.spec[field] !== undefined))
    yield forbidden(child("metadata", "annotations", MOUNT_OPTIONS), "may not specify mount options for this volume type");
}

/** What an attachment carries itself instead of naming a volume: nothing but a CSI source and how it is used. */
export function* validateInlineVolume(path: string, spec: Readonly<PersistentVolumeSpec>): Iterable<FieldError> {
  const misplaced = "may not be specified in the context of inline volumes";
  if (spec.claimRef) yield forbidden(child(path, "claimRef"), misplaced);
  if (Object.keys(spec.capacity ?? {}).length > 0) yield forbidden(child(path, "capacity"), misplaced);
  if (!spec.csi) yield required(child(path, "csi"), "has to be specified in the context of inline volumes");
  if (!spec.accessModes?.length) yield required(child(path, "accessModes"));
  yield* validateAccessModes(child(path, "accessModes"), spec.accessModes ?? []);
  if (spec.persistentVolumeReclaimPolicy && spec.persistentVolumeReclaimPolicy !== "Retain")
    yield forbidden(child(path, "persistentVolumeReclaimPolicy"), "may only be Retain in the context of inline volumes");
  if (spec.nodeAffinity) yield forbidden(child(path, "nodeAffinity"), misplaced);
  yield* validateSource(path, spec, "");
  if (spec.storageClassName) yield forbidden(child(path, "storageClassName"), misplaced);
  if (spec.volumeMode !== undefined && spec.volumeMode !== "Filesystem")
    yield forbidden(child(path, "volumeMode"), "may not specify volumeMode other than Filesystem in the context of inline volumes");
}

function* validateCapacity(path: string, capacity: Readonly<Record<string, string>> | undefined): Iterable<FieldError> {
  const names = Object.keys(capacity ?? {});
  if (names.length === 0) yield required(path);
  if (!names.includes("storage") || names.length > 1) yield notSupported(path, capacity, ["storage"]);
  for (const [name, value] of Object.entries(capacity ?? {})) {
    yield* volumeQuantity(key(path, name), value);
    yield* positiveQuantity(key(path, name), value);
  }
}

function hasInvalidValue(old: Readonly<PersistentVolumeSpec> | undefined): boolean {
  return (old?.nodeAffinity?.required?.nodeSelectorTerms ?? []).some(({ matchExpressions }) =>
    (matchExpressions ?? []).some(({ values }) => (values ?? []).some((value) => labelValue(value).length > 0)));
}

function* validateSource(path: string, spec: Readonly<PersistentVolumeSpec>, name: string): Iterable<FieldError> {
  let sources = 0;
  for (const field of SOURCES) {
    const source = spec[field];
    if (source === undefined) continue;
    if (sources > 0 && field !== "flexVolume") { yield forbidden(child(path, COLLISION_NAMES[field] ?? field), "may not specify more than 1 volume type"); continue; }
    sources++;
    const at = child(path, ERROR_NAMES[field] ?? field);
    if (field === "iscsi") yield* persistentIscsi(at, spec.iscsi!, name);
    else if (field === "glusterfs") yield* persistentGlusterfs(at, spec.glusterfs!);
    else yield* persistentSourceChecks[field](at, source as never);
    if (field === "local" && !spec.nodeAffinity) yield required(child(path, "nodeAffinity"), "Local volume requires node affinity");
  }
  if (sources === 0) yield required(path, "must specify a volume type");
}

/** Labels that got a new name: a volume may follow. */
const RENAMED_LABELS: Readonly<Record<string, string>> = {
  "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
  "beta.kubernetes.io/os": "kubernetes.io/os", "beta.kubernetes.io/arch": "kubernetes.io/arch", "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
};

const SOURCE = "io.k8s.api.core.v1.PersistentVolumeSource";

export function* validateVolumeUpdate(next: Readonly<PersistentVolume>, old: Readonly<PersistentVolume>): Iterable<FieldError> {
  yield* validateVolumeSpec("spec", next.spec, next.metadata.name, old.spec); // once more, as upstream does: the message has each error once, the causes twice
  const [before, after] = [sourceOf(old.spec), sourceOf(next.spec)];
  if (before.csi && !before.csi.controllerExpandSecretRef && after.csi?.controllerExpandSecretRef) {
    const { controllerExpandSecretRef: _, ...csi } = after.csi;
    after.csi = csi;
  }
  if (!semanticEqual(after, before)) yield forbidden("spec.persistentvolumesource", `spec.persistentvolumesource is immutable after creation\n${jsonDiff(internalForm(SOURCE, before), internalForm(SOURCE, after))}`);
  yield* immutable("volumeMode", next.spec.volumeMode, old.spec.volumeMode);
  if (old.spec.nodeAffinity && !keepsFieldsOf("MutablePVNodeAffinity") && !semanticEqual(withNewLabels(old.spec.nodeAffinity, next.spec.nodeAffinity), next.spec.nodeAffinity))
    yield invalid("nodeAffinity", next.spec.nodeAffinity && internalForm("io.k8s.api.core.v1.VolumeNodeAffinity", next.spec.nodeAffinity), `${FIELD_IMMUTABLE}, except for updating from beta label to GA`);
  if (old.spec.volumeAttributesClassName !== undefined && next.spec.volumeAttributesClassName === undefined)
    yield forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
}

function sourceOf(spec: Readonly<PersistentVolumeSpec>): PersistentVolumeSpec {
  return Object.fromEntries(SOURCES.flatMap((field) => (spec[field] === undefined ? [] : [[field, spec[field]]]))) as PersistentVolumeSpec;
}

type NodeAffinity = NonNullable<PersistentVolumeSpec["nodeAffinity"]>;

/** The old requirements, under the new names of their labels where `next` uses them. */
function withNewLabels(old: NodeAffinity, next: NodeAffinity | undefined): NodeAffinity {
  const renamed = structuredClone(old);
  for (const [i, term] of (renamed.required?.nodeSelectorTerms ?? []).entries()) {
    for (const part of ["matchExpressions", "matchFields"] as const)
      for (const [j, requirement] of (term[part] ?? []).entries()) {
        const key = next?.required?.nodeSelectorTerms?.[i]?.[part]?.[j]?.key;
        if (key !== undefined && (RENAMED_LABELS[requirement.key] ?? "") === key) requirement.key = key; // an empty one, too, as upstream; it is refused for that
      }
  }
  return renamed;
}
