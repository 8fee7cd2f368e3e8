/** Conditions, as most status objects carry them: a list with one of each type. */

export function findCondition<C extends { readonly type: string }>(conditions: readonly C[] | undefined, type: string): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** Whether the condition of this type is there, and holds. */
export function isConditionTrue(conditions: readonly { readonly type: string; readonly status: string }[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === "True";
}

/** Of a node, a pod, or whatever else says so of itself. */
export function isReady({ status }: { readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] | undefined } | undefined }): boolean {
  return isConditionTrue(status?.conditions, "Ready");
}
