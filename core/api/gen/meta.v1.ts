// Written by core/api/schema/generate.ts from facts.txt.
import type { ListMeta, ObjectMeta } from "../meta/object-meta.ts";
export interface APIGroup {
  apiVersion: string;
  kind: string;
  name: string;
  versions: GroupVersionForDiscovery[];
  preferredVersion?: GroupVersionForDiscovery | undefined;
  serverAddressByClientCIDRs?: ServerAddressByClientCIDR[] | undefined;
}
export interface APIGroupList {
  apiVersion: string;
  kind: string;
  groups: APIGroup[];
}
export interface APIResource {
  name: string;
  singularName: string;
  namespaced: boolean;
  group?: string | undefined;
  version?: string | undefined;
  kind: string;
  verbs: string[];
  shortNames?: string[] | undefined;
  categories?: string[] | undefined;
  storageVersionHash?: string | undefined;
}
export interface APIResourceList {
  apiVersion: string;
  kind: string;
  groupVersion: string;
  resources: APIResource[];
}
export interface APIVersions {
  apiVersion: string;
  kind: string;
  versions: string[];
  serverAddressByClientCIDRs: ServerAddressByClientCIDR[];
}
export interface ApplyOptions {
  apiVersion: string;
  kind: string;
  dryRun?: string[] | undefined;
  force: boolean;
  fieldManager: string;
}
export type CauseType = string;
export interface Condition {
  type: string;
  status: ConditionStatus;
  observedGeneration?: number | undefined;
  lastTransitionTime: string;
  reason: string;
  message: string;
}
export type ConditionStatus = string;
export interface CreateOptions {
  apiVersion: string;
  kind: string;
  dryRun?: string[] | undefined;
  fieldManager?: string | undefined;
  fieldValidation?: string | undefined;
}
export interface DeleteOptions {
  apiVersion: string;
  kind: string;
  gracePeriodSeconds?: number | undefined;
  preconditions?: Preconditions | undefined;
  orphanDependents?: boolean | undefined;
  propagationPolicy?: DeletionPropagation | undefined;
  dryRun?: string[] | undefined;
  ignoreStoreReadErrorWithClusterBreakingPotential?: boolean | undefined;
}
export type DeletionPropagation = string;
export type FieldSelectorOperator = string;
export interface FieldSelectorRequirement {
  key: string;
  operator: FieldSelectorOperator;
  values?: string[] | undefined;
}
export interface GetOptions {
  apiVersion: string;
  kind: string;
  resourceVersion?: string | undefined;
}
export interface GroupKind {
  group: string;
  kind: string;
}
export interface GroupResource {
  group: string;
  resource: string;
}
export interface GroupVersion {
  group: string;
  version: string;
}
export interface GroupVersionForDiscovery {
  groupVersion: string;
  version: string;
}
export interface GroupVersionKind {
  group: string;
  version: string;
  kind: string;
}
export interface GroupVersionResource {
  group: string;
  version: string;
  resource: string;
}
export type IncludeObjectPolicy = string;
export interface LabelSelector {
  matchLabels?: Record<string, string> | undefined;
  matchExpressions?: LabelSelectorRequirement[] | undefined;
}
export type LabelSelectorOperator = string;
export interface LabelSelectorRequirement {
  key: string;
  operator: LabelSelectorOperator;
  values?: string[] | undefined;
}
export interface List {
  apiVersion: string;
  kind: string;
  metadata?: ListMeta | undefined;
  items: unknown[];
}
export interface ListOptions {
  apiVersion: string;
  kind: string;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  watch?: boolean | undefined;
  allowWatchBookmarks?: boolean | undefined;
  resourceVersion?: string | undefined;
  resourceVersionMatch?: ResourceVersionMatch | undefined;
  timeoutSeconds?: number | undefined;
  limit?: number | undefined;
  continue?: string | undefined;
  sendInitialEvents?: boolean | undefined;
  shardSelector?: string | undefined;
}
export type ManagedFieldsOperationType = string;
export interface PartialObjectMetadata {
  apiVersion: string;
  kind: string;
  metadata?: Partial<ObjectMeta> | undefined;
}
export interface PartialObjectMetadataList {
  apiVersion: string;
  kind: string;
  metadata?: ListMeta | undefined;
  items: PartialObjectMetadata[];
}
export interface PatchOptions {
  apiVersion: string;
  kind: string;
  dryRun?: string[] | undefined;
  force?: boolean | undefined;
  fieldManager?: string | undefined;
  fieldValidation?: string | undefined;
}
export interface Preconditions {
  uid?: string | undefined;
  resourceVersion?: string | undefined;
}
export type ResourceVersionMatch = string;
export interface RootPaths {
  paths: string[];
}
export type RowConditionType = string;
export interface ServerAddressByClientCIDR {
  clientCIDR: string;
  serverAddress: string;
}
export interface ShardInfo {
  selector: string;
}
export interface Status {
  apiVersion: string;
  kind: string;
  metadata?: ListMeta | undefined;
  status?: string | undefined;
  message?: string | undefined;
  reason?: StatusReason | undefined;
  details?: StatusDetails | undefined;
  code?: number | undefined;
}
export interface StatusCause {
  reason?: CauseType | undefined;
  message?: string | undefined;
  field?: string | undefined;
}
export interface StatusDetails {
  name?: string | undefined;
  group?: string | undefined;
  kind?: string | undefined;
  uid?: string | undefined;
  causes?: StatusCause[] | undefined;
  retryAfterSeconds?: number | undefined;
}
export type StatusReason = string;
export interface Table {
  apiVersion: string;
  kind: string;
  metadata?: ListMeta | undefined;
  columnDefinitions: TableColumnDefinition[];
  rows: TableRow[];
}
export interface TableColumnDefinition {
  name: string;
  type: string;
  format: string;
  description: string;
  priority: number;
}
export interface TableOptions {
  apiVersion: string;
  kind: string;
  includeObject?: IncludeObjectPolicy | undefined;
}
export interface TableRow {
  cells: Record<string, never>[];
  conditions?: TableRowCondition[] | undefined;
  object?: unknown | undefined;
}
export interface TableRowCondition {
  type: RowConditionType;
  status: ConditionStatus;
  reason?: string | undefined;
  message?: string | undefined;
}
export interface UpdateOptions {
  apiVersion: string;
  kind: string;
  dryRun?: string[] | undefined;
  fieldManager?: string | undefined;
  fieldValidation?: string | undefined;
}
export interface WatchEvent {
  type: string;
  object: unknown;
}
