// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { CoordinatedLeaseStrategy } from "./coordination.v1.ts";
export interface LeaseCandidate {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: LeaseCandidateSpec;
}
export interface LeaseCandidateSpec {
  leaseName: string;
  pingTime?: string | undefined;
  renewTime?: string | undefined;
  binaryVersion: string;
  emulationVersion?: string | undefined;
  strategy?: CoordinatedLeaseStrategy | undefined;
}
