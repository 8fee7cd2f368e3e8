// Written by core/api/schema/generate.ts from facts.txt.
import type { ObjectMeta } from "../meta/object-meta.ts";
import type { PreemptionPolicy } from "./core.v1.ts";
export interface PriorityClass {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  value?: number | undefined;
  globalDefault?: boolean | undefined;
  description?: string | undefined;
  preemptionPolicy?: PreemptionPolicy | undefined;
}
