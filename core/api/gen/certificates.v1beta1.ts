// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { ConditionStatus } from "./core.v1.ts";
import type { Condition } from "./meta.v1.ts";
export interface CertificateSigningRequest {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: CertificateSigningRequestSpec;
  status?: CertificateSigningRequestStatus | undefined;
}
export interface CertificateSigningRequestCondition {
  type: RequestConditionType;
  status?: ConditionStatus | undefined;
  reason?: string | undefined;
  message?: string | undefined;
  lastUpdateTime?: string | undefined;
  lastTransitionTime?: string | undefined;
}
export interface CertificateSigningRequestSpec {
  request: string;
  signerName?: string | undefined;
  expirationSeconds?: number | undefined;
  usages?: KeyUsage[] | undefined;
  username?: string | undefined;
  uid?: string | undefined;
  groups?: string[] | undefined;
  extra?: Record<string, ExtraValue> | undefined;
}
export interface CertificateSigningRequestStatus {
  conditions?: CertificateSigningRequestCondition[] | undefined;
  certificate?: string | undefined;
}
export interface ClusterTrustBundle {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: ClusterTrustBundleSpec;
}
export interface ClusterTrustBundleSpec {
  signerName?: string | undefined;
  trustBundle: string;
}
export type ExtraValue = string[];
export type KeyUsage = string;
export interface PodCertificateRequest {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: PodCertificateRequestSpec;
  status?: PodCertificateRequestStatus | undefined;
}
export interface PodCertificateRequestSpec {
  signerName: string;
  podName: string;
  podUID: string;
  serviceAccountName: string;
  serviceAccountUID: string;
  nodeName: string;
  nodeUID: string;
  maxExpirationSeconds?: number | undefined;
  pkixPublicKey?: string | undefined;
  proofOfPossession?: string | undefined;
  stubPKCS10Request: string;
  unverifiedUserAnnotations?: Record<string, string> | undefined;
}
export interface PodCertificateRequestStatus {
  conditions?: Condition[] | undefined;
  certificateChain?: string | undefined;
  notBefore?: string | undefined;
  beginRefreshAt?: string | undefined;
  notAfter?: string | undefined;
}
export type RequestConditionType = string;
