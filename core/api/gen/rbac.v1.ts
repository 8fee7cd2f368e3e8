// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { LabelSelector } from "./meta.v1.ts";
export interface AggregationRule {
  clusterRoleSelectors?: LabelSelector[] | undefined;
}
export interface ClusterRole {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  rules?: PolicyRule[] | undefined;
  aggregationRule?: AggregationRule | undefined;
}
export interface ClusterRoleBinding {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  subjects?: Subject[] | undefined;
  roleRef: RoleRef;
}
export interface PolicyRule {
  verbs: string[];
  apiGroups?: string[] | undefined;
  resources?: string[] | undefined;
  resourceNames?: string[] | undefined;
  nonResourceURLs?: string[] | undefined;
}
export interface Role {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  rules?: PolicyRule[] | undefined;
}
export interface RoleBinding {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  subjects?: Subject[] | undefined;
  roleRef: RoleRef;
}
export interface RoleRef {
  apiGroup?: string | undefined;
  kind: string;
  name: string;
}
export interface Subject {
  kind: string;
  apiGroup?: string | undefined;
  name: string;
  namespace?: string | undefined;
}
