// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
export type ConditionStatus = string;
export interface ServerStorageVersion {
  apiServerID?: string | undefined;
  encodingVersion?: string | undefined;
  decodableVersions?: string[] | undefined;
  servedVersions?: string[] | undefined;
}
export interface StorageVersion {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: Record<string, never>;
  status?: StorageVersionStatus | undefined;
}
export interface StorageVersionCondition {
  type: StorageVersionConditionType;
  status: ConditionStatus;
  observedGeneration?: number | undefined;
  lastTransitionTime?: string | undefined;
  reason: string;
  message?: string | undefined;
}
export type StorageVersionConditionType = string;
export interface StorageVersionStatus {
  storageVersions?: ServerStorageVersion[] | undefined;
  commonEncodingVersion?: string | undefined;
  conditions?: StorageVersionCondition[] | undefined;
}
