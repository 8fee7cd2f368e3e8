// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { ResourceList, Toleration } from "./core.v1.ts";
export interface Overhead {
  podFixed?: ResourceList | undefined;
}
export interface RuntimeClass {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  handler: string;
  overhead?: Overhead | undefined;
  scheduling?: Scheduling | undefined;
}
export interface Scheduling {
  nodeSelector?: Record<string, string> | undefined;
  tolerations?: Toleration[] | undefined;
}
