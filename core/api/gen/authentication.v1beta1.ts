// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
export type ExtraValue = string[];
export interface SelfSubjectReview {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  status?: SelfSubjectReviewStatus | undefined;
}
export interface SelfSubjectReviewStatus {
  userInfo?: import("./authentication.v1.ts").UserInfo | undefined;
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
