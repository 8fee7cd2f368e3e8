/** How a status says whether all is well. */
import type { Condition } from "../api/gen/meta.v1.ts";

export interface Problem { readonly reason: string; readonly message: string }

export type StatusCondition = Omit<Condition, "lastTransitionTime">;

export function condition(type: string, problem: Problem | undefined, { reason, message, observedGeneration }: { readonly reason: string; readonly message: string; readonly observedGeneration: number }): StatusCondition {
  return problem ? { type, status: "False", observedGeneration, ...problem } : { type, status: "True", reason, message, observedGeneration };
}
