/** How controllers write lists of conditions, and compare a status with what it was. */
import { findCondition } from "../api/meta/conditions.ts";

interface ConditionLike { readonly type: string; readonly status: string; readonly reason?: string | undefined; readonly lastTransitionTime?: string | undefined }

/** Without the condition of this type. */
export function withoutCondition<C extends { readonly type: string }>(conditions: readonly C[] | undefined, type: string): C[] {
  return (conditions ?? []).filter((condition) => condition.type !== type);
}

/**
 * With `condition` in place of the one of its type, at the end. The list as it was if that says the same already (status and reason);
 * the time of the last transition is kept while the status stays.
 */
export function withCondition<C extends ConditionLike>(conditions: readonly C[] | undefined, condition: C): C[] {
  const old = findCondition(conditions, condition.type);
  if (old !== undefined && old.status === condition.status && old.reason === condition.reason) return [...(conditions ?? [])];
  const kept = old !== undefined && old.status === condition.status ? { ...condition, lastTransitionTime: old.lastTransitionTime } : condition;
  return [...withoutCondition(conditions, condition.type), kept];
}

/** Equal as the API sees it: what is absent, null, 0, "", false or empty is one and the same, for the server may leave it out. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b || (isEmpty(a) && isEmpty(b))) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => sameValue(item, b[i]));
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].every((key) => sameValue(left[key], right[key]));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === 0 || value === "" || value === false) return true;
  return typeof value === "object" && Object.values(value).every(isEmpty) && !(Array.isArray(value) && value.length > 0);
}
