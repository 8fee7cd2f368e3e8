// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { Condition, LabelSelector, StatusReason } from "./meta.v1.ts";
export interface ApplyConfiguration {
  expression?: string | undefined;
}
export interface AuditAnnotation {
  key: string;
  valueExpression: string;
}
export interface ExpressionWarning {
  fieldRef: string;
  warning: string;
}
export type FailurePolicyType = "Fail" | "Ignore";
export interface JSONPatch {
  expression?: string | undefined;
}
export type MatchCondition = import("./admissionregistration.v1.ts").MatchCondition;
export type MatchPolicyType = "Equivalent" | "Exact";
export interface MatchResources {
  namespaceSelector?: LabelSelector | undefined;
  objectSelector?: LabelSelector | undefined;
  resourceRules?: NamedRuleWithOperations[] | undefined;
  excludeResourceRules?: NamedRuleWithOperations[] | undefined;
  matchPolicy?: MatchPolicyType | undefined;
}
export interface MutatingAdmissionPolicy {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: MutatingAdmissionPolicySpec;
}
export interface MutatingAdmissionPolicyBinding {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: MutatingAdmissionPolicyBindingSpec;
}
export interface MutatingAdmissionPolicyBindingSpec {
  policyName?: string | undefined;
  paramRef?: ParamRef | undefined;
  matchResources?: MatchResources | undefined;
}
export interface MutatingAdmissionPolicySpec {
  paramKind?: ParamKind | undefined;
  matchConstraints?: MatchResources | undefined;
  variables?: Variable[] | undefined;
  mutations?: Mutation[] | undefined;
  failurePolicy?: FailurePolicyType | undefined;
  matchConditions?: MatchCondition[] | undefined;
  reinvocationPolicy?: ReinvocationPolicyType | undefined;
}
export interface Mutation {
  patchType: PatchType;
  applyConfiguration?: ApplyConfiguration | undefined;
  jsonPatch?: JSONPatch | undefined;
}
export interface NamedRuleWithOperations extends RuleWithOperations {
  resourceNames?: string[] | undefined;
}
export interface ParamKind {
  apiVersion?: string | undefined;
  kind?: string | undefined;
}
export interface ParamRef {
  name?: string | undefined;
  namespace?: string | undefined;
  selector?: LabelSelector | undefined;
  parameterNotFoundAction?: ParameterNotFoundActionType | undefined;
}
export type ParameterNotFoundActionType = "Allow" | "Deny";
export type PatchType = "ApplyConfiguration" | "JSONPatch";
export type ReinvocationPolicyType = import("./admissionregistration.v1.ts").ReinvocationPolicyType;
export type RuleWithOperations = import("./admissionregistration.v1.ts").RuleWithOperations;
export interface TypeChecking {
  expressionWarnings?: ExpressionWarning[] | undefined;
}
export interface ValidatingAdmissionPolicy {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ValidatingAdmissionPolicySpec;
  status?: ValidatingAdmissionPolicyStatus | undefined;
}
export interface ValidatingAdmissionPolicyBinding {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ValidatingAdmissionPolicyBindingSpec;
}
export interface ValidatingAdmissionPolicyBindingSpec {
  policyName?: string | undefined;
  paramRef?: ParamRef | undefined;
  matchResources?: MatchResources | undefined;
  validationActions?: ValidationAction[] | undefined;
}
export interface ValidatingAdmissionPolicySpec {
  paramKind?: ParamKind | undefined;
  matchConstraints?: MatchResources | undefined;
  validations?: Validation[] | undefined;
  failurePolicy?: FailurePolicyType | undefined;
  auditAnnotations?: AuditAnnotation[] | undefined;
  matchConditions?: MatchCondition[] | undefined;
  variables?: Variable[] | undefined;
}
export interface ValidatingAdmissionPolicyStatus {
  observedGeneration?: number | undefined;
  typeChecking?: TypeChecking | undefined;
  conditions?: Condition[] | undefined;
}
export interface Validation {
  expression: string;
  message?: string | undefined;
  reason?: StatusReason | undefined;
  messageExpression?: string | undefined;
}
export type ValidationAction = "Audit" | "Deny" | "Warn";
export interface Variable {
  name: string;
  expression: string;
}
