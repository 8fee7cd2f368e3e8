// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { ConditionStatus, PersistentVolumeClaim, PodTemplateSpec } from "./core.v1.ts";
import type { LabelSelector } from "./meta.v1.ts";
export interface ControllerRevision {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  data?: unknown | undefined;
  revision: number;
}
export interface DaemonSet {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: DaemonSetSpec;
  status?: DaemonSetStatus | undefined;
}
export interface DaemonSetCondition {
  type: DaemonSetConditionType;
  status: ConditionStatus;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type DaemonSetConditionType = string;
export interface DaemonSetSpec {
  selector?: LabelSelector | undefined;
  template: PodTemplateSpec;
  updateStrategy?: DaemonSetUpdateStrategy | undefined;
  minReadySeconds?: number | undefined;
  revisionHistoryLimit?: number | undefined;
}
export interface DaemonSetStatus {
  currentNumberScheduled: number;
  numberMisscheduled: number;
  desiredNumberScheduled: number;
  numberReady: number;
  observedGeneration?: number | undefined;
  updatedNumberScheduled?: number | undefined;
  numberAvailable?: number | undefined;
  numberUnavailable?: number | undefined;
  collisionCount?: number | undefined;
  conditions?: DaemonSetCondition[] | undefined;
}
export interface DaemonSetUpdateStrategy {
  type?: DaemonSetUpdateStrategyType | undefined;
  rollingUpdate?: RollingUpdateDaemonSet | undefined;
}
export type DaemonSetUpdateStrategyType = "OnDelete" | "RollingUpdate";
export interface Deployment {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: DeploymentSpec;
  status?: DeploymentStatus | undefined;
}
export interface DeploymentCondition {
  type: DeploymentConditionType;
  status: ConditionStatus;
  lastUpdateTime?: string | undefined;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type DeploymentConditionType = string;
export interface DeploymentSpec {
  replicas?: number | undefined;
  selector?: LabelSelector | undefined;
  template: PodTemplateSpec;
  strategy?: DeploymentStrategy | undefined;
  minReadySeconds?: number | undefined;
  revisionHistoryLimit?: number | undefined;
  paused?: boolean | undefined;
  progressDeadlineSeconds?: number | undefined;
}
export interface DeploymentStatus {
  observedGeneration?: number | undefined;
  replicas?: number | undefined;
  updatedReplicas?: number | undefined;
  readyReplicas?: number | undefined;
  availableReplicas?: number | undefined;
  unavailableReplicas?: number | undefined;
  terminatingReplicas?: number | undefined;
  conditions?: DeploymentCondition[] | undefined;
  collisionCount?: number | undefined;
}
export interface DeploymentStrategy {
  type?: DeploymentStrategyType | undefined;
  rollingUpdate?: RollingUpdateDeployment | undefined;
}
export type DeploymentStrategyType = "Recreate" | "RollingUpdate";
export type PersistentVolumeClaimRetentionPolicyType = string;
export type PodManagementPolicyType = "OrderedReady" | "Parallel";
export interface ReplicaSet {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ReplicaSetSpec;
  status?: ReplicaSetStatus | undefined;
}
export interface ReplicaSetCondition {
  type: ReplicaSetConditionType;
  status: ConditionStatus;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type ReplicaSetConditionType = string;
export interface ReplicaSetSpec {
  replicas?: number | undefined;
  minReadySeconds?: number | undefined;
  selector?: LabelSelector | undefined;
  template?: PodTemplateSpec | undefined;
}
export interface ReplicaSetStatus {
  replicas: number;
  fullyLabeledReplicas?: number | undefined;
  readyReplicas?: number | undefined;
  availableReplicas?: number | undefined;
  terminatingReplicas?: number | undefined;
  observedGeneration?: number | undefined;
  conditions?: ReplicaSetCondition[] | undefined;
}
export interface RollingUpdateDaemonSet {
  maxUnavailable?: number | string | undefined;
  maxSurge?: number | string | undefined;
}
export interface RollingUpdateDeployment {
  maxUnavailable?: number | string | undefined;
  maxSurge?: number | string | undefined;
}
export interface RollingUpdateStatefulSetStrategy {
  partition?: number | undefined;
  maxUnavailable?: number | string | undefined;
}
export interface StatefulSet {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: StatefulSetSpec;
  status?: StatefulSetStatus | undefined;
}
export interface StatefulSetCondition {
  type: StatefulSetConditionType;
  status: ConditionStatus;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type StatefulSetConditionType = string;
export interface StatefulSetOrdinals {
  start?: number | undefined;
}
export interface StatefulSetPersistentVolumeClaimRetentionPolicy {
  whenDeleted?: PersistentVolumeClaimRetentionPolicyType | undefined;
  whenScaled?: PersistentVolumeClaimRetentionPolicyType | undefined;
}
export interface StatefulSetSpec {
  replicas?: number | undefined;
  selector?: LabelSelector | undefined;
  template: PodTemplateSpec;
  volumeClaimTemplates?: PersistentVolumeClaim[] | undefined;
  serviceName?: string | undefined;
  podManagementPolicy?: PodManagementPolicyType | undefined;
  updateStrategy?: StatefulSetUpdateStrategy | undefined;
  revisionHistoryLimit?: number | undefined;
  minReadySeconds?: number | undefined;
  persistentVolumeClaimRetentionPolicy?: StatefulSetPersistentVolumeClaimRetentionPolicy | undefined;
  ordinals?: StatefulSetOrdinals | undefined;
}
export interface StatefulSetStatus {
  observedGeneration?: number | undefined;
  replicas: number;
  readyReplicas?: number | undefined;
  currentReplicas?: number | undefined;
  updatedReplicas?: number | undefined;
  currentRevision?: string | undefined;
  updateRevision?: string | undefined;
  collisionCount?: number | undefined;
  conditions?: StatefulSetCondition[] | undefined;
  availableReplicas: number;
}
export interface StatefulSetUpdateStrategy {
  type?: StatefulSetUpdateStrategyType | undefined;
  rollingUpdate?: RollingUpdateStatefulSetStrategy | undefined;
}
export type StatefulSetUpdateStrategyType = "OnDelete" | "RollingUpdate";
