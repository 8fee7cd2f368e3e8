// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { ConditionStatus } from "./core.v1.ts";
import type { LabelSelector } from "./meta.v1.ts";
export interface ContainerResourceMetricSource {
  name: string;
  target: MetricTarget;
  container: string;
}
export interface ContainerResourceMetricStatus {
  name: string;
  current: MetricValueStatus;
  container: string;
}
export interface CrossVersionObjectReference {
  kind: string;
  name: string;
  apiVersion?: string | undefined;
}
export interface ExternalMetricSource {
  metric: MetricIdentifier;
  target: MetricTarget;
}
export interface ExternalMetricStatus {
  metric: MetricIdentifier;
  current: MetricValueStatus;
}
export interface HPAScalingPolicy {
  type: HPAScalingPolicyType;
  value: number;
  periodSeconds: number;
}
export type HPAScalingPolicyType = string;
export interface HPAScalingRules {
  stabilizationWindowSeconds?: number | undefined;
  selectPolicy?: ScalingPolicySelect | undefined;
  policies?: HPAScalingPolicy[] | undefined;
  tolerance?: string | undefined;
}
export interface HorizontalPodAutoscaler {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: HorizontalPodAutoscalerSpec;
  status?: HorizontalPodAutoscalerStatus | undefined;
}
export interface HorizontalPodAutoscalerBehavior {
  scaleUp?: HPAScalingRules | undefined;
  scaleDown?: HPAScalingRules | undefined;
}
export interface HorizontalPodAutoscalerCondition {
  type: HorizontalPodAutoscalerConditionType;
  status: ConditionStatus;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type HorizontalPodAutoscalerConditionType = string;
export interface HorizontalPodAutoscalerSpec {
  scaleTargetRef: CrossVersionObjectReference;
  minReplicas?: number | undefined;
  maxReplicas: number;
  metrics?: MetricSpec[] | undefined;
  behavior?: HorizontalPodAutoscalerBehavior | undefined;
}
export interface HorizontalPodAutoscalerStatus {
  observedGeneration?: number | undefined;
  lastScaleTime?: string | undefined;
  currentReplicas?: number | undefined;
  desiredReplicas: number;
  currentMetrics: MetricStatus[];
  conditions?: HorizontalPodAutoscalerCondition[] | undefined;
}
export interface MetricIdentifier {
  name: string;
  selector?: LabelSelector | undefined;
}
export type MetricSourceType = string;
export interface MetricSpec {
  type: MetricSourceType;
  object?: ObjectMetricSource | undefined;
  pods?: PodsMetricSource | undefined;
  resource?: ResourceMetricSource | undefined;
  containerResource?: ContainerResourceMetricSource | undefined;
  external?: ExternalMetricSource | undefined;
}
export interface MetricStatus {
  type: MetricSourceType;
  object?: ObjectMetricStatus | undefined;
  pods?: PodsMetricStatus | undefined;
  resource?: ResourceMetricStatus | undefined;
  containerResource?: ContainerResourceMetricStatus | undefined;
  external?: ExternalMetricStatus | undefined;
}
export interface MetricTarget {
  type: MetricTargetType;
  value?: string | undefined;
  averageValue?: string | undefined;
  averageUtilization?: number | undefined;
}
export type MetricTargetType = string;
export interface MetricValueStatus {
  value?: string | undefined;
  averageValue?: string | undefined;
  averageUtilization?: number | undefined;
}
export interface ObjectMetricSource {
  describedObject: CrossVersionObjectReference;
  target: MetricTarget;
  metric: MetricIdentifier;
}
export interface ObjectMetricStatus {
  metric: MetricIdentifier;
  current: MetricValueStatus;
  describedObject: CrossVersionObjectReference;
}
export interface PodsMetricSource {
  metric: MetricIdentifier;
  target: MetricTarget;
}
export interface PodsMetricStatus {
  metric: MetricIdentifier;
  current: MetricValueStatus;
}
export interface ResourceMetricSource {
  name: string;
  target: MetricTarget;
}
export interface ResourceMetricStatus {
  name: string;
  current: MetricValueStatus;
}
export type ScalingPolicySelect = string;
