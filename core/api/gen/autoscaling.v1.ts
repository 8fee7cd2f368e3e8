// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
export interface CrossVersionObjectReference {
  kind: string;
  name: string;
  apiVersion?: string | undefined;
}
export interface HorizontalPodAutoscaler {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: HorizontalPodAutoscalerSpec;
  status?: HorizontalPodAutoscalerStatus | undefined;
}
export interface HorizontalPodAutoscalerSpec {
  scaleTargetRef: CrossVersionObjectReference;
  minReplicas?: number | undefined;
  maxReplicas: number;
  targetCPUUtilizationPercentage?: number | undefined;
}
export interface HorizontalPodAutoscalerStatus {
  observedGeneration?: number | undefined;
  lastScaleTime?: string | undefined;
  currentReplicas: number;
  desiredReplicas: number;
  currentCPUUtilizationPercentage?: number | undefined;
}
export interface Scale {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ScaleSpec;
  status?: ScaleStatus | undefined;
}
export interface ScaleSpec {
  replicas?: number | undefined;
}
export interface ScaleStatus {
  replicas: number;
  selector?: string | undefined;
}
