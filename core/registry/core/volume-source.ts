/** What a volume's source is without being told: the same in a pod and in a PersistentVolume. Source: kubernetes v1.36 pkg/apis/core/v1/defaults.go */
import type { PersistentVolumeSpec, Volume } from "../../api/gen/core.v1.ts";

type Source = Pick<Volume | PersistentVolumeSpec, "hostPath" | "iscsi" | "azureDisk" | "rbd" | "scaleIO">;

export function defaultVolumeSource({ hostPath, iscsi, azureDisk, rbd, scaleIO }: Source): void {
  if (hostPath) hostPath.type ??= "";
  if (iscsi) iscsi.iscsiInterface ||= "default";
  if (azureDisk) {
    azureDisk.cachingMode ??= "ReadWrite";
    azureDisk.kind ??= "Shared";
    azureDisk.fsType ??= "ext4";
    azureDisk.readOnly ??= false;
  }
  if (rbd) {
    rbd.pool ||= "rbd";
    rbd.user ||= "admin";
    rbd.keyring ||= "/etc/ceph/keyring";
  }
  if (scaleIO) {
    scaleIO.storageMode ||= "ThinProvisioned";
    scaleIO.fsType ||= "xfs";
  }
}
