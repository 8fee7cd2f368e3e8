/** Kinds of volumes that were part of Kubernetes: the provisioner in their classes, their field in a pod or a PersistentVolume, and the CSI driver that took their place. Source: kubernetes v1.36 csi-translation-lib/plugins */
import type { PersistentVolumeSpec, Volume } from "../gen/core.v1.ts";

const IN_TREE: readonly (readonly [provisioner: string, field: keyof Volume & keyof PersistentVolumeSpec, driver: string])[] = [
  ["kubernetes.io/aws-ebs", "awsElasticBlockStore", "ebs.csi.aws.com"], ["kubernetes.io/gce-pd", "gcePersistentDisk", "pd.csi.storage.gke.io"], ["kubernetes.io/cinder", "cinder", "cinder.csi.openstack.org"],
  ["kubernetes.io/azure-disk", "azureDisk", "disk.csi.azure.com"], ["kubernetes.io/azure-file", "azureFile", "file.csi.azure.com"], ["kubernetes.io/vsphere-volume", "vsphereVolume", "csi.vsphere.vmware.com"],
  ["kubernetes.io/portworx-volume", "portworxVolume", "pxd.portworx.com"],
];

/** Who provisions for a class today. */
export function provisionerNow(provisioner: string): string { return IN_TREE.find(([name]) => name === provisioner)?.[2] ?? provisioner; }

/** Undefined: no CSI driver is behind it. */
export function driverOfSource(source: Readonly<Volume> | Readonly<PersistentVolumeSpec>): string | undefined {
  return source.csi?.driver ?? IN_TREE.find(([, field]) => source[field])?.[2];
}
