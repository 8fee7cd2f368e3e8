// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
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
