// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
export type ConditionStatus = string;
export interface ExemptPriorityLevelConfiguration {
  nominalConcurrencyShares?: number | undefined;
  lendablePercent?: number | undefined;
}
export interface FlowDistinguisherMethod {
  type: FlowDistinguisherMethodType;
}
export type FlowDistinguisherMethodType = string;
export interface FlowSchema {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: FlowSchemaSpec;
  status?: FlowSchemaStatus | undefined;
}
export interface FlowSchemaCondition {
  type?: FlowSchemaConditionType | undefined;
  status?: ConditionStatus | undefined;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type FlowSchemaConditionType = string;
export interface FlowSchemaSpec {
  priorityLevelConfiguration: PriorityLevelConfigurationReference;
  matchingPrecedence?: number | undefined;
  distinguisherMethod?: FlowDistinguisherMethod | undefined;
  rules?: PolicyRulesWithSubjects[] | undefined;
}
export interface FlowSchemaStatus {
  conditions?: FlowSchemaCondition[] | undefined;
}
export interface GroupSubject {
  name: string;
}
export interface LimitResponse {
  type: LimitResponseType;
  queuing?: QueuingConfiguration | undefined;
}
export type LimitResponseType = string;
export interface LimitedPriorityLevelConfiguration {
  nominalConcurrencyShares?: number | undefined;
  limitResponse?: LimitResponse | undefined;
  lendablePercent?: number | undefined;
  borrowingLimitPercent?: number | undefined;
}
export interface NonResourcePolicyRule {
  verbs: string[];
  nonResourceURLs: string[];
}
export interface PolicyRulesWithSubjects {
  subjects: Subject[];
  resourceRules?: ResourcePolicyRule[] | undefined;
  nonResourceRules?: NonResourcePolicyRule[] | undefined;
}
export interface PriorityLevelConfiguration {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: PriorityLevelConfigurationSpec;
  status?: PriorityLevelConfigurationStatus | undefined;
}
export interface PriorityLevelConfigurationCondition {
  type?: PriorityLevelConfigurationConditionType | undefined;
  status?: ConditionStatus | undefined;
  lastTransitionTime?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
}
export type PriorityLevelConfigurationConditionType = string;
export interface PriorityLevelConfigurationReference {
  name: string;
}
export interface PriorityLevelConfigurationSpec {
  type: PriorityLevelEnablement;
  limited?: LimitedPriorityLevelConfiguration | undefined;
  exempt?: ExemptPriorityLevelConfiguration | undefined;
}
export interface PriorityLevelConfigurationStatus {
  conditions?: PriorityLevelConfigurationCondition[] | undefined;
}
export type PriorityLevelEnablement = string;
export interface QueuingConfiguration {
  queues?: number | undefined;
  handSize?: number | undefined;
  queueLengthLimit?: number | undefined;
}
export interface ResourcePolicyRule {
  verbs: string[];
  apiGroups: string[];
  resources: string[];
  clusterScope?: boolean | undefined;
  namespaces?: string[] | undefined;
}
export interface ServiceAccountSubject {
  namespace: string;
  name: string;
}
export interface Subject {
  kind: SubjectKind;
  user?: UserSubject | undefined;
  group?: GroupSubject | undefined;
  serviceAccount?: ServiceAccountSubject | undefined;
}
export type SubjectKind = string;
export interface UserSubject {
  name: string;
}
