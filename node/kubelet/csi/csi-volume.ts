/**
 * A CSI volume as a pod uses it, and what its driver is told of it. Pure.
 *
 * Source: kubernetes v1.36 pkg/volume/csi/{csi_mounter,csi_block,csi_attacher,csi_client,csi_util}.go
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { CSIVolumeSource, PersistentVolume, PersistentVolumeAccessMode, Pod, SecretReference, Volume } from "../../../core/api/gen/core.v1.ts";
import type { CSIDriver } from "../../../core/api/gen/storage.v1.ts";
import type { VolumeCapability, VolumeCapabilityAccessModeMode } from "../plugins/gen/csi.v1.ts";

export interface CsiVolume {
  /** Of the PersistentVolume; of an inline volume, its name in the pod. */
  readonly specName: string;
  readonly driver: string;
  readonly handle: string;
  readonly lifecycle: "Persistent" | "Ephemeral";
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly block: boolean;
  readonly attributes: Readonly<Record<string, string>>;
  /** What its driver is told. */
  readonly accessMode: PersistentVolumeAccessMode;
  /** One node writes to it, be it among other ways to use it. */
  readonly forOneNode: boolean;
  readonly mountOptions: readonly string[];
  readonly stageSecret: SecretReference | undefined;
  readonly publishSecret: SecretReference | undefined;
  readonly expandSecret: SecretReference | undefined;
}

/** `readOnly`: of the pod's own word; what the source says of that is for whoever attaches it. */
export function persistentVolume({ metadata, spec }: PersistentVolume, { readOnly, block }: { readonly readOnly: boolean; readonly block: boolean }): CsiVolume {
  const csi = spec.csi!;
  return {
    specName: metadata.name, driver: csi.driver, handle: csi.volumeHandle, lifecycle: "Persistent", fsType: csi.fsType ?? "", readOnly, block,
    attributes: csi.volumeAttributes ?? {}, accessMode: spec.accessModes?.[0] ?? "ReadWriteOnce", forOneNode: spec.accessModes?.some((mode) => mode === "ReadWriteOnce" || mode === "ReadWriteOncePod") ?? false, mountOptions: spec.mountOptions ?? [],
    stageSecret: csi.nodeStageSecretRef, publishSecret: csi.nodePublishSecretRef, expandSecret: csi.nodeExpandSecretRef,
  };
}

export function inlineVolume(pod: Pod, { name }: Volume, csi: CSIVolumeSource): CsiVolume {
  const secret = csi.nodePublishSecretRef;
  return {
    specName: name, driver: csi.driver, handle: `csi-${sha256(pod.metadata.uid + name)}`, lifecycle: "Ephemeral", fsType: csi.fsType ?? "", readOnly: csi.readOnly ?? false, block: false,
    attributes: csi.volumeAttributes ?? {}, accessMode: "ReadWriteOnce", forOneNode: true, mountOptions: [], stageSecret: undefined,
    publishSecret: secret ? { name: secret.name, namespace: pod.metadata.namespace } : undefined, expandSecret: undefined,
  };
}

/** Of one volume on this node, whoever uses it; and as the cluster knows it in status.volumesInUse. */
export function volumeKey({ driver, handle }: Pick<CsiVolume, "driver" | "handle">): string {
  return `kubernetes.io/csi/${driver}^${handle}`;
}

/** The VolumeAttachment that says the volume is here. */
export function attachmentName({ driver, handle }: Pick<CsiVolume, "driver" | "handle">, nodeName: string): string {
  return `csi-${sha256(handle + driver + nodeName)}`;
}

export interface Places {
  /** A directory, in which it is noted what the volume is. */
  readonly note: string;
  readonly target: string;
  /** Of a device: the directory of its own around one of the two, which goes with the last of what is in it. */
  readonly around?: string | undefined;
}

/** Where a volume is staged, where it is published for a pod, and where it is noted what it is. The layout is upstream's. */
export function stagingDirectory(dataDir: string, volume: Pick<CsiVolume, "driver" | "handle" | "specName" | "block">): Places {
  const root = join(dataDir, "plugins/kubernetes.io/csi");
  if (volume.block) {
    const around = join(root, "volumeDevices", volume.specName);
    return { note: join(around, "data"), target: join(root, "volumeDevices/staging", volume.specName), around };
  }
  const directory = join(root, volume.driver, sha256(volume.handle));
  return { note: directory, target: join(directory, "globalmount") };
}

export function publishTarget(dataDir: string, podUid: string, { specName, block }: Pick<CsiVolume, "specName" | "block">): Places {
  if (block) {
    const around = join(dataDir, "plugins/kubernetes.io/csi/volumeDevices/publish", specName);
    return { note: join(dataDir, "pods", podUid, "volumeDevices/kubernetes.io~csi", specName), target: join(around, podUid), around };
  }
  const directory = join(dataDir, "pods", podUid, "volumes/kubernetes.io~csi", specName);
  return { note: directory, target: join(directory, "mount") };
}

export interface DriverFacts {
  readonly fineAccessModes: boolean;
  readonly mountsGroup: boolean;
}

export function capabilityOf(volume: CsiVolume, { fineAccessModes }: Pick<DriverFacts, "fineAccessModes">, group: number | undefined): VolumeCapability {
  const mode = accessModeOf(volume.accessMode, fineAccessModes);
  if (volume.block) return { block: {}, access_mode: { mode } };
  return { mount: { fs_type: volume.fsType, mount_flags: [...volume.mountOptions], ...(group === undefined ? {} : { volume_mount_group: String(group) }) }, access_mode: { mode } };
}

function accessModeOf(mode: PersistentVolumeAccessMode, fine: boolean): VolumeCapabilityAccessModeMode {
  switch (mode) {
    case "ReadOnlyMany": return "MULTI_NODE_READER_ONLY";
    case "ReadWriteMany": return "MULTI_NODE_MULTI_WRITER";
    case "ReadWriteOncePod": return fine ? "SINGLE_NODE_SINGLE_WRITER" : "SINGLE_NODE_WRITER";
    default: return fine ? "SINGLE_NODE_MULTI_WRITER" : "SINGLE_NODE_WRITER";
  }
}

/** Who gives the volume to the pod's fsGroup: the driver as it mounts, we afterwards, or nobody. */
export function groupOf(pod: Pod, volume: CsiVolume, driver: CSIDriver | undefined, { mountsGroup }: Pick<DriverFacts, "mountsGroup">): { readonly byDriver: number | undefined; readonly byUs: boolean } {
  const group = pod.spec.securityContext?.fsGroup;
  if (group === undefined || volume.block) return { byDriver: undefined, byUs: false };
  if (mountsGroup) return { byDriver: group, byUs: false };
  const policy = driver?.spec.fsGroupPolicy ?? "ReadWriteOnceWithFSType";
  if (policy === "None" || volume.readOnly) return { byDriver: undefined, byUs: false };
  return { byDriver: undefined, byUs: policy === "File" || (volume.fsType !== "" && volume.forOneNode) };
}

/** What a driver that asks for it is told of the pod. */
export function podInfo(pod: Pod, volume: CsiVolume): Record<string, string> {
  return {
    "csi.storage.k8s.io/pod.name": pod.metadata.name, "csi.storage.k8s.io/pod.namespace": pod.metadata.namespace ?? "", "csi.storage.k8s.io/pod.uid": pod.metadata.uid,
    "csi.storage.k8s.io/serviceAccount.name": pod.spec.serviceAccountName ?? "", "csi.storage.k8s.io/ephemeral": String(volume.lifecycle === "Ephemeral"),
  };
}

/** Throws what upstream says of a driver that is not made for this use. */
export function checkLifecycle(volume: CsiVolume, driver: CSIDriver | undefined): void {
  const modes = driver?.spec.volumeLifecycleModes ?? ["Persistent"];
  if (modes.includes(volume.lifecycle) || (driver === undefined && volume.lifecycle === "Persistent")) return;
  if (driver === undefined) throw new Error(`volume mode "${volume.lifecycle}" not supported by driver ${volume.driver} (no CSIDriver object)`);
  throw new Error(`volume mode "${volume.lifecycle}" not supported by driver ${volume.driver} (only supports [${modes.map((mode) => JSON.stringify(mode)).join(" ")}])`);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
