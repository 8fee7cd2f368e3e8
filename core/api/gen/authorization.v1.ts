// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { FieldSelectorRequirement, LabelSelectorRequirement } from "./meta.v1.ts";
export type ExtraValue = string[];
export interface FieldSelectorAttributes {
  rawSelector?: string | undefined;
  requirements?: FieldSelectorRequirement[] | undefined;
}
export interface LabelSelectorAttributes {
  rawSelector?: string | undefined;
  requirements?: LabelSelectorRequirement[] | undefined;
}
export interface LocalSubjectAccessReview {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: SubjectAccessReviewSpec;
  status?: SubjectAccessReviewStatus | undefined;
}
export interface NonResourceAttributes {
  path?: string | undefined;
  verb?: string | undefined;
}
export interface NonResourceRule {
  verbs: string[];
  nonResourceURLs?: string[] | undefined;
}
export interface ResourceAttributes {
  namespace?: string | undefined;
  verb?: string | undefined;
  group?: string | undefined;
  version?: string | undefined;
  resource?: string | undefined;
  subresource?: string | undefined;
  name?: string | undefined;
  fieldSelector?: FieldSelectorAttributes | undefined;
  labelSelector?: LabelSelectorAttributes | undefined;
}
export interface ResourceRule {
  verbs: string[];
  apiGroups?: string[] | undefined;
  resources?: string[] | undefined;
  resourceNames?: string[] | undefined;
}
export interface SelfSubjectAccessReview {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: SelfSubjectAccessReviewSpec;
  status?: SubjectAccessReviewStatus | undefined;
}
export interface SelfSubjectAccessReviewSpec {
  resourceAttributes?: ResourceAttributes | undefined;
  nonResourceAttributes?: NonResourceAttributes | undefined;
}
export interface SelfSubjectRulesReview {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: SelfSubjectRulesReviewSpec;
  status?: SubjectRulesReviewStatus | undefined;
}
export interface SelfSubjectRulesReviewSpec {
  namespace?: string | undefined;
}
export interface SubjectAccessReview {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: SubjectAccessReviewSpec;
  status?: SubjectAccessReviewStatus | undefined;
}
export interface SubjectAccessReviewSpec {
  resourceAttributes?: ResourceAttributes | undefined;
  nonResourceAttributes?: NonResourceAttributes | undefined;
  user?: string | undefined;
  groups?: string[] | undefined;
  extra?: Record<string, ExtraValue> | undefined;
  uid?: string | undefined;
}
export interface SubjectAccessReviewStatus {
  allowed: boolean;
  denied?: boolean | undefined;
  reason?: string | undefined;
  evaluationError?: string | undefined;
}
export interface SubjectRulesReviewStatus {
  resourceRules: ResourceRule[];
  nonResourceRules: NonResourceRule[];
  incomplete: boolean;
  evaluationError?: string | undefined;
}
