/** How a LUN of an iSCSI target is called wherever nodes and controllers speak of it. Source: kubernetes v1.36 pkg/volume/iscsi/iscsi.go GetVolumeName, portalMounter */
import type { ISCSIPersistentVolumeSource, ISCSIVolumeSource } from "../gen/core.v1.ts";

export type IscsiSource = ISCSIVolumeSource | ISCSIPersistentVolumeSource;

export const ISCSI_VOLUMES = "kubernetes.io/iscsi/";
const PORT_DEFAULT = 3260;

/** host:port */
export function iscsiPortal(portal: string): string {
  return /^(\[.*\]|[^:]*)$/.test(portal) ? `${portal}:${PORT_DEFAULT}` : portal;
}

/** In status.volumesInUse and volumesAttached of Nodes. Unlike upstream's always with the port: two ways to write a portal are one disk. */
export function iscsiVolumeName({ targetPortal, iqn, lun }: Pick<IscsiSource, "targetPortal" | "iqn" | "lun">): string {
  return `${ISCSI_VOLUMES}${iscsiPortal(targetPortal)}:${iqn}:${lun}`;
}
