// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { Condition } from "./meta.v1.ts";
export interface BasicSchedulingPolicy {}
export type DisruptionMode = "Pod" | "PodGroup";
export interface GangSchedulingPolicy {
  minCount: number;
}
export interface PodGroup {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: PodGroupSpec;
  status?: PodGroupStatus | undefined;
}
export interface PodGroupResourceClaim {
  name: string;
  resourceClaimName?: string | undefined;
  resourceClaimTemplateName?: string | undefined;
}
export interface PodGroupResourceClaimStatus {
  name: string;
  resourceClaimName?: string | undefined;
}
export interface PodGroupSchedulingConstraints {
  topology?: TopologyConstraint[] | undefined;
}
export interface PodGroupSchedulingPolicy {
  basic?: BasicSchedulingPolicy | undefined;
  gang?: GangSchedulingPolicy | undefined;
}
export interface PodGroupSpec {
  podGroupTemplateRef?: PodGroupTemplateReference | undefined;
  schedulingPolicy: PodGroupSchedulingPolicy;
  schedulingConstraints?: PodGroupSchedulingConstraints | undefined;
  resourceClaims?: PodGroupResourceClaim[] | undefined;
  disruptionMode?: DisruptionMode | undefined;
  priorityClassName?: string | undefined;
  priority?: number | undefined;
}
export interface PodGroupStatus {
  conditions?: Condition[] | undefined;
  resourceClaimStatuses?: PodGroupResourceClaimStatus[] | undefined;
}
export interface PodGroupTemplate {
  name: string;
  schedulingPolicy: PodGroupSchedulingPolicy;
  schedulingConstraints?: PodGroupSchedulingConstraints | undefined;
  resourceClaims?: PodGroupResourceClaim[] | undefined;
  disruptionMode?: DisruptionMode | undefined;
  priorityClassName?: string | undefined;
  priority?: number | undefined;
}
export interface PodGroupTemplateReference {
  workload?: WorkloadPodGroupTemplateReference | undefined;
}
export interface TopologyConstraint {
  key: string;
}
export interface TypedLocalObjectReference {
  apiGroup?: string | undefined;
  kind: string;
  name: string;
}
export interface Workload {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: WorkloadSpec;
}
export interface WorkloadPodGroupTemplateReference {
  workloadName: string;
  podGroupTemplateName: string;
}
export interface WorkloadSpec {
  controllerRef?: TypedLocalObjectReference | undefined;
  podGroupTemplates: PodGroupTemplate[];
}
