// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { ConditionStatus } from "./core.v1.ts";
export interface CertificateSigningRequest {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: CertificateSigningRequestSpec;
  status?: CertificateSigningRequestStatus | undefined;
}
export interface CertificateSigningRequestCondition {
  type: RequestConditionType;
  status: ConditionStatus;
  reason?: string | undefined;
  message?: string | undefined;
  lastUpdateTime?: string | undefined;
  lastTransitionTime?: string | undefined;
}
export interface CertificateSigningRequestSpec {
  request: string;
  signerName: string;
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
export type ExtraValue = string[];
export type KeyUsage = "any" | "cert";
export type RequestConditionType = string;
