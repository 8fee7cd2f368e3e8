// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { Condition, DeleteOptions, LabelSelector } from "./meta.v1.ts";
export interface Eviction {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  deleteOptions?: DeleteOptions | undefined;
}
export interface PodDisruptionBudget {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: PodDisruptionBudgetSpec;
  status?: PodDisruptionBudgetStatus | undefined;
}
export interface PodDisruptionBudgetSpec {
  minAvailable?: number | string | undefined;
  selector?: LabelSelector | undefined;
  maxUnavailable?: number | string | undefined;
  unhealthyPodEvictionPolicy?: UnhealthyPodEvictionPolicyType | undefined;
}
export interface PodDisruptionBudgetStatus {
  observedGeneration?: number | undefined;
  disruptedPods?: Record<string, string> | undefined;
  disruptionsAllowed: number;
  currentHealthy: number;
  desiredHealthy: number;
  expectedPods: number;
  conditions?: Condition[] | undefined;
}
export type UnhealthyPodEvictionPolicyType = "AlwaysAllow" | "IfHealthyBudget";
