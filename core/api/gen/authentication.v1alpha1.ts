// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { UserInfo } from "./authentication.v1.ts";
export interface SelfSubjectReview {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  status?: SelfSubjectReviewStatus | undefined;
}
export interface SelfSubjectReviewStatus {
  userInfo?: UserInfo | undefined;
}
