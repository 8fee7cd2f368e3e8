// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { PersistentVolumeSpec } from "./core.v1.ts";
import type { LabelSelector } from "./meta.v1.ts";
export interface CSIStorageCapacity {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  nodeTopology?: LabelSelector | undefined;
  storageClassName: string;
  capacity?: string | undefined;
  maximumVolumeSize?: string | undefined;
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
export interface VolumeError {
  time?: string | undefined;
  message?: string | undefined;
  errorCode?: number | undefined;
}
