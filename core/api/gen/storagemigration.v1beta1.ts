// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { Condition, GroupResource } from "./meta.v1.ts";
export interface StorageVersionMigration {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: StorageVersionMigrationSpec;
  status?: StorageVersionMigrationStatus | undefined;
}
export interface StorageVersionMigrationSpec {
  resource: GroupResource;
}
export interface StorageVersionMigrationStatus {
  conditions?: Condition[] | undefined;
  resourceVersion?: string | undefined;
}
