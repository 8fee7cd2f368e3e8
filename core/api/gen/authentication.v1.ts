// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
export interface BoundObjectReference {
  kind?: string | undefined;
  apiVersion?: string | undefined;
  name?: string | undefined;
  uid?: string | undefined;
}
export type ExtraValue = string[];
export interface SelfSubjectReview {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  status?: SelfSubjectReviewStatus | undefined;
}
export interface SelfSubjectReviewStatus {
  userInfo?: UserInfo | undefined;
}
export interface TokenRequest {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: TokenRequestSpec;
  status?: TokenRequestStatus | undefined;
}
export interface TokenRequestSpec {
  audiences?: string[] | undefined;
  expirationSeconds?: number | undefined;
  boundObjectRef?: BoundObjectReference | undefined;
}
export interface TokenRequestStatus {
  token: string;
  expirationTimestamp: string;
}
export interface TokenReview {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: TokenReviewSpec;
  status?: TokenReviewStatus | undefined;
}
export interface TokenReviewSpec {
  token?: string | undefined;
  audiences?: string[] | undefined;
}
export interface TokenReviewStatus {
  authenticated?: boolean | undefined;
  user?: UserInfo | undefined;
  audiences?: string[] | undefined;
  error?: string | undefined;
}
export interface UserInfo {
  username?: string | undefined;
  uid?: string | undefined;
  groups?: string[] | undefined;
  extra?: Record<string, ExtraValue> | undefined;
}
