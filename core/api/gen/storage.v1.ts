// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { PersistentVolumeReclaimPolicy, PersistentVolumeSpec, TopologySelectorTerm } from "./core.v1.ts";
import type { LabelSelector } from "./meta.v1.ts";
export interface CSIDriver {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: CSIDriverSpec;
}
export interface CSIDriverSpec {
  attachRequired?: boolean | undefined;
  podInfoOnMount?: boolean | undefined;
  volumeLifecycleModes?: VolumeLifecycleMode[] | undefined;
  storageCapacity?: boolean | undefined;
  fsGroupPolicy?: FSGroupPolicy | undefined;
  tokenRequests?: TokenRequest[] | undefined;
  requiresRepublish?: boolean | undefined;
  seLinuxMount?: boolean | undefined;
  nodeAllocatableUpdatePeriodSeconds?: number | undefined;
  serviceAccountTokenInSecrets?: boolean | undefined;
  preventPodSchedulingIfMissing?: boolean | undefined;
}
export interface CSINode {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: CSINodeSpec;
}
export interface CSINodeDriver {
  name: string;
  nodeID: string;
  topologyKeys?: string[] | undefined;
  allocatable?: VolumeNodeResources | undefined;
}
export interface CSINodeSpec {
  drivers: CSINodeDriver[];
}
export interface CSIStorageCapacity {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  nodeTopology?: LabelSelector | undefined;
  storageClassName: string;
  capacity?: string | undefined;
  maximumVolumeSize?: string | undefined;
}
export type FSGroupPolicy = string;
export interface StorageClass {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  provisioner: string;
  parameters?: Record<string, string> | undefined;
  reclaimPolicy?: PersistentVolumeReclaimPolicy | undefined;
  mountOptions?: string[] | undefined;
  allowVolumeExpansion?: boolean | undefined;
  volumeBindingMode?: VolumeBindingMode | undefined;
  allowedTopologies?: TopologySelectorTerm[] | undefined;
}
export interface TokenRequest {
  audience: string;
  expirationSeconds?: number | undefined;
}
export interface VolumeAttachment {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: VolumeAttachmentSpec;
  status?: VolumeAttachmentStatus | undefined;
}
export interface VolumeAttachmentSource {
  persistentVolumeName?: string | undefined;
  inlineVolumeSpec?: PersistentVolumeSpec | undefined;
}
export interface VolumeAttachmentSpec {
  attacher: string;
  source: VolumeAttachmentSource;
  nodeName: string;
}
export interface VolumeAttachmentStatus {
  attached: boolean;
  attachmentMetadata?: Record<string, string> | undefined;
  attachError?: VolumeError | undefined;
  detachError?: VolumeError | undefined;
}
export interface VolumeAttributesClass {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  driverName: string;
  parameters?: Record<string, string> | undefined;
}
export type VolumeBindingMode = "Immediate" | "WaitForFirstConsumer";
export interface VolumeError {
  time?: string | undefined;
  message?: string | undefined;
  errorCode?: number | undefined;
}
export type VolumeLifecycleMode = string;
export interface VolumeNodeResources {
  count?: number | undefined;
}
