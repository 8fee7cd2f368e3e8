/**
 * What somebody else's server says in the status of a review, read as Go's decoder reads it: null is nothing, and what is of another type is refused: a "false" is no yes.
 *
 *   const { allowed } = reviewStatus<SubjectAccessReviewStatus>({ group: "authorization.k8s.io", version: "v1", kind: "SubjectAccessReview" }, answer);
 */
import { jsonNodeOf } from "../codec/json-document.ts";
import type { GroupVersionKind } from "../meta/gvk.ts";
import { canonical } from "./canonical.ts";
import { diagnose } from "./diagnose.ts";
import { builtInFacts } from "./facts.ts";

/** Undefined: it says nothing. Throws an Error. */
export function reviewStatus<T extends object>(gvk: GroupVersionKind, answer: { readonly status?: unknown } | null): T | undefined {
  const type = builtInFacts.typeOf(gvk)!;
  const told = { status: answer?.status };
  const { error } = diagnose(type, jsonNodeOf(told));
  if (error !== undefined) throw new Error(error);
  return canonical(type, told).object["status"] as T | undefined;
}
