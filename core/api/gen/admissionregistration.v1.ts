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
export interface MatchCondition {
  name: string;
  expression: string;
}
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
export interface MutatingWebhook {
  name: string;
  clientConfig: WebhookClientConfig;
  rules?: RuleWithOperations[] | undefined;
  failurePolicy?: FailurePolicyType | undefined;
  matchPolicy?: MatchPolicyType | undefined;
  namespaceSelector?: LabelSelector | undefined;
  objectSelector?: LabelSelector | undefined;
  sideEffects?: SideEffectClass | undefined;
  timeoutSeconds?: number | undefined;
  admissionReviewVersions: string[];
  reinvocationPolicy?: ReinvocationPolicyType | undefined;
  matchConditions?: MatchCondition[] | undefined;
}
export interface MutatingWebhookConfiguration {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  webhooks?: MutatingWebhook[] | undefined;
}
export interface Mutation {
  patchType: PatchType;
  applyConfiguration?: ApplyConfiguration | undefined;
  jsonPatch?: JSONPatch | undefined;
}
export interface NamedRuleWithOperations extends RuleWithOperations {
  resourceNames?: string[] | undefined;
}
export type OperationType = "*" | "CONNECT" | "CREATE" | "DELETE" | "UPDATE";
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
export type ParameterNotFoundActionType = string;
export type PatchType = "ApplyConfiguration" | "JSONPatch";
export type ReinvocationPolicyType = "IfNeeded" | "Never";
export interface Rule {
  apiGroups?: string[] | undefined;
  apiVersions?: string[] | undefined;
  resources?: string[] | undefined;
  scope?: ScopeType | undefined;
}
export interface RuleWithOperations extends Rule {
  operations?: OperationType[] | undefined;
}
export type ScopeType = "*" | "Cluster" | "Namespaced";
export interface ServiceReference {
  namespace: string;
  name: string;
  path?: string | undefined;
  port?: number | undefined;
}
export type SideEffectClass = "None" | "NoneOnDryRun" | "Some" | "Unknown";
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
export interface ValidatingWebhook {
  name: string;
  clientConfig: WebhookClientConfig;
  rules?: RuleWithOperations[] | undefined;
  failurePolicy?: FailurePolicyType | undefined;
  matchPolicy?: MatchPolicyType | undefined;
  namespaceSelector?: LabelSelector | undefined;
  objectSelector?: LabelSelector | undefined;
  sideEffects?: SideEffectClass | undefined;
  timeoutSeconds?: number | undefined;
  admissionReviewVersions: string[];
  matchConditions?: MatchCondition[] | undefined;
}
export interface ValidatingWebhookConfiguration {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  webhooks?: ValidatingWebhook[] | undefined;
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
export interface WebhookClientConfig {
  url?: string | undefined;
  service?: ServiceReference | undefined;
  caBundle?: string | undefined;
}
