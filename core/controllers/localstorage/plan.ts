/** Claims of local-path classes, and the volumes made for them: which directory on which node, what cannot be had, and when it is to go. */
import type { Node, PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import type { StorageClass } from "../../api/gen/storage.v1.ts";
import { annotationsOf, hasFinalizer, isDeleting, labelsOf, type NewObject, namespaceOf } from "../../api/meta/object-meta.ts";

export const PROVISIONER = "coracle.io/local-path";
/** Keeps the volume's object until its directory is gone, whoever deletes it. */
export const FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer";
const NODE_ANNOTATION = "coracle.io/local-path-node";
const DIRECTORY_ANNOTATION = "coracle.io/local-path-directory";
const PROVISIONED_BY = "pv.kubernetes.io/provisioned-by";
const HOSTNAME_LABEL = "kubernetes.io/hostname";

type Claim = Readonly<PersistentVolumeClaim>;
type Volume = Readonly<PersistentVolume>;

/** Whether the binder has handed the claim to us and it has no volume yet. */
export function wantsVolume(claim: Claim): boolean {
  return !isDeleting(claim) && !claim.spec.volumeName && annotationsOf(claim)["volume.kubernetes.io/storage-provisioner"] === PROVISIONER;
}

/** What a claim asks that a directory cannot give; undefined: nothing. */
export function refusal({ spec }: Claim): string | undefined {
  if (spec.selector !== undefined) return "claim.Spec.Selector is not supported";
  if (spec.volumeMode === "Block") return "block volumes are not supported";
  if (spec.dataSource !== undefined || spec.dataSourceRef !== undefined) return "a data source is not supported";
  if (spec.accessModes?.some((mode) => mode !== "ReadWriteOnce" && mode !== "ReadWriteOncePod")) return "Only support ReadWriteOnce access mode";
  return undefined;
}

export function volumeName({ metadata: { uid } }: Claim): string { return `pvc-${uid}`; }

/** Of a file system's names, in bytes. */
const NAME_MAX = 255;

/** Says by its name whose data it is; of a long name as much as there is room for. */
export function directoryName(claim: Claim): string { return `${volumeName(claim)}_${namespaceOf(claim)}_${claim.metadata.name}`.slice(0, NAME_MAX); }

export function volumeFor(claim: Claim, { storageClass, node, path }: { readonly storageClass: Readonly<StorageClass>; readonly node: Readonly<Node>; readonly path: string }): NewObject<PersistentVolume> {
  const { apiVersion, kind, metadata: { name, uid, resourceVersion }, spec } = claim;
  const policy = storageClass.reclaimPolicy ?? "Delete";
  return {
    apiVersion: "v1", kind: "PersistentVolume",
    metadata: {
      name: volumeName(claim), annotations: { [PROVISIONED_BY]: PROVISIONER, [NODE_ANNOTATION]: node.metadata.name, [DIRECTORY_ANNOTATION]: directoryName(claim) },
      ...(policy === "Delete" ? { finalizers: [FINALIZER] } : {}),
    },
    spec: {
      capacity: { storage: spec.resources?.requests?.["storage"] ?? "0" }, accessModes: [...(spec.accessModes ?? [])], volumeMode: "Filesystem", persistentVolumeReclaimPolicy: policy, storageClassName: storageClass.metadata.name,
      claimRef: { apiVersion, kind, namespace: namespaceOf(claim), name, uid, resourceVersion },
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: HOSTNAME_LABEL, operator: "In", values: [labelsOf(node)[HOSTNAME_LABEL] ?? node.metadata.name] }] }] } },
    },
  };
}

/** The finalizer of a volume that is to be kept now: left on it, it could never be deleted. */
export function isOrphanedFinalizer(volume: Volume): boolean {
  return annotationsOf(volume)[PROVISIONED_BY] === PROVISIONER && volume.spec.persistentVolumeReclaimPolicy !== "Delete" && hasFinalizer(volume, FINALIZER);
}

/** Where the data of a volume is that nobody wants any more; undefined: it is wanted, or not ours. */
export function doomedDirectory(volume: Volume): { readonly node: string; readonly name: string } | undefined {
  const { [PROVISIONED_BY]: provisioner, [NODE_ANNOTATION]: node, [DIRECTORY_ANNOTATION]: name } = annotationsOf(volume);
  if (provisioner !== PROVISIONER || node === undefined || name === undefined || volume.spec.persistentVolumeReclaimPolicy !== "Delete") return undefined;
  const { phase } = volume.status ?? {};
  const isDoomed = phase === "Released" || (isDeleting(volume) && hasFinalizer(volume, FINALIZER) && phase !== "Bound");
  return isDoomed ? { node, name } : undefined;
}
