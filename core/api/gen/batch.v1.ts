// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { ConditionStatus, ObjectReference, PodConditionType, PodTemplateSpec } from "./core.v1.ts";
import type { LabelSelector } from "./meta.v1.ts";
export type CompletionMode = "Indexed" | "NonIndexed";
export type ConcurrencyPolicy = "Allow" | "Forbid" | "Replace";
export interface CronJob {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: CronJobSpec;
  status?: CronJobStatus | undefined;
}
export interface CronJobSpec {
  schedule: string;
  timeZone?: string | undefined;
  startingDeadlineSeconds?: number | undefined;
  concurrencyPolicy?: ConcurrencyPolicy | undefined;
  suspend?: boolean | undefined;
  jobTemplate: JobTemplateSpec;
  successfulJobsHistoryLimit?: number | undefined;
  failedJobsHistoryLimit?: number | undefined;
}
export interface CronJobStatus {
  active?: ObjectReference[] | undefined;
  lastScheduleTime?: string | undefined;
  lastSuccessfulTime?: string | undefined;
}
export interface Job {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: JobSpec;
  status?: JobStatus | undefined;
}
export interface JobCondition {
  type: JobConditionType;
  status: ConditionStatus;
  lastProbeTime?: string | undefined;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type JobConditionType = string;
export interface JobSpec {
  parallelism?: number | undefined;
  completions?: number | undefined;
  activeDeadlineSeconds?: number | undefined;
  podFailurePolicy?: PodFailurePolicy | undefined;
  successPolicy?: SuccessPolicy | undefined;
  backoffLimit?: number | undefined;
  backoffLimitPerIndex?: number | undefined;
  maxFailedIndexes?: number | undefined;
  selector?: LabelSelector | undefined;
  manualSelector?: boolean | undefined;
  template: PodTemplateSpec;
  ttlSecondsAfterFinished?: number | undefined;
  completionMode?: CompletionMode | undefined;
  suspend?: boolean | undefined;
  podReplacementPolicy?: PodReplacementPolicy | undefined;
  managedBy?: string | undefined;
}
export interface JobStatus {
  conditions?: JobCondition[] | undefined;
  startTime?: string | undefined;
  completionTime?: string | undefined;
  active?: number | undefined;
  succeeded?: number | undefined;
  failed?: number | undefined;
  terminating?: number | undefined;
  completedIndexes?: string | undefined;
  failedIndexes?: string | undefined;
  uncountedTerminatedPods?: UncountedTerminatedPods | undefined;
  ready?: number | undefined;
}
export interface JobTemplateSpec {
  metadata?: Partial<ObjectMeta> | undefined;
  spec?: JobSpec | undefined;
}
export interface PodFailurePolicy {
  rules: PodFailurePolicyRule[];
}
export type PodFailurePolicyAction = "Count" | "FailIndex" | "FailJob" | "Ignore";
export type PodFailurePolicyOnExitCodesOperator = "In" | "NotIn";
export interface PodFailurePolicyOnExitCodesRequirement {
  containerName?: string | undefined;
  operator: PodFailurePolicyOnExitCodesOperator;
  values: number[];
}
export interface PodFailurePolicyOnPodConditionsPattern {
  type: PodConditionType;
  status?: ConditionStatus | undefined;
}
export interface PodFailurePolicyRule {
  action: PodFailurePolicyAction;
  onExitCodes?: PodFailurePolicyOnExitCodesRequirement | undefined;
  onPodConditions?: PodFailurePolicyOnPodConditionsPattern[] | undefined;
}
export type PodReplacementPolicy = "Failed" | "TerminatingOrFailed";
export interface SuccessPolicy {
  rules: SuccessPolicyRule[];
}
export interface SuccessPolicyRule {
  succeededIndexes?: string | undefined;
  succeededCount?: number | undefined;
}
export interface UncountedTerminatedPods {
  succeeded?: string[] | undefined;
  failed?: string[] | undefined;
}
