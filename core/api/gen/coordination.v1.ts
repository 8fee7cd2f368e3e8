// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
export type CoordinatedLeaseStrategy = string;
export interface Lease {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: LeaseSpec;
}
export interface LeaseSpec {
  holderIdentity?: string | undefined;
  leaseDurationSeconds?: number | undefined;
  acquireTime?: string | undefined;
  renewTime?: string | undefined;
  leaseTransitions?: number | undefined;
  strategy?: CoordinatedLeaseStrategy | undefined;
  preferredHolder?: string | undefined;
}
