// Written by core/api/schema/generate.ts from facts.txt.
import type { UserInfo } from "./authentication.v1.ts";
import type { GroupVersionKind, GroupVersionResource, Status } from "./meta.v1.ts";
export interface AdmissionRequest {
  uid?: string | undefined;
  kind?: GroupVersionKind | undefined;
  resource?: GroupVersionResource | undefined;
  subResource?: string | undefined;
  requestKind?: GroupVersionKind | undefined;
  requestResource?: GroupVersionResource | undefined;
  requestSubResource?: string | undefined;
  name?: string | undefined;
  namespace?: string | undefined;
  operation?: Operation | undefined;
  userInfo?: UserInfo | undefined;
  object?: unknown | undefined;
  oldObject?: unknown | undefined;
  dryRun?: boolean | undefined;
  options?: unknown | undefined;
}
export interface AdmissionResponse {
  uid?: string | undefined;
  allowed?: boolean | undefined;
  status?: Status | undefined;
  patch?: string | undefined;
  patchType?: PatchType | undefined;
  auditAnnotations?: Record<string, string> | undefined;
  warnings?: string[] | undefined;
}
export interface AdmissionReview {
  apiVersion: string;
  kind: string;
  request?: AdmissionRequest | undefined;
  response?: AdmissionResponse | undefined;
}
export type Operation = string;
export type PatchType = string;
