/**
 * What somebody else's server says in the status of a review, read as Go's decoder reads it: null is nothing, and what is of another type is refused: a "false" is no yes.
 * So is a review of another kind or version than the one that was sent; who says nothing of that is taken for what is expected.
 *
 *   const { allowed } = reviewStatus<SubjectAccessReviewStatus>({ group: "authorization.k8s.io", version: "v1", kind: "SubjectAccessReview" }, answer);
 */
import { typeMetaOf } from "../codec/body.ts";
import { type ForeignAnswer, readForeign } from "../codec/foreign-answer.ts";
import { jsonNodeOf, type JsonObject } from "../codec/json-document.ts";
import { goQuote } from "../meta/go-quote.ts";
import { formatApiVersion, type GroupVersionKind, gvkOf } from "../meta/gvk.ts";
import { canonical } from "./canonical.ts";
import { diagnose } from "./diagnose.ts";
import { builtInFacts } from "./facts.ts";

/** Reviews are the same in all of them. */
const VERSIONS: readonly string[] = ["v1", "v1beta1"];
/** Where Go registers what it decodes. */
const SCHEME = "k8s.io/client-go/kubernetes/scheme/register.go:82";

/** Undefined: it says nothing. Throws an Error. */
export function reviewStatus<T extends object>(gvk: GroupVersionKind, answer: ForeignAnswer): T | undefined {
  const value = readForeign(answer) as JsonObject | null;
  if (value === null) return undefined;
  refuseOtherType(value, gvk);
  const type = builtInFacts.typeOf({ ...gvk, version: "v1" })!;
  const { error } = diagnose(type, jsonNodeOf(value));
  if (error !== undefined) throw new Error(error);
  return canonical(type, value).object["status"] as T | undefined;
}

function refuseOtherType(value: JsonObject, expected: GroupVersionKind): void {
  const told = typeMetaOf(value);
  const gvk = gvkOf({ apiVersion: told.apiVersion || formatApiVersion(expected), kind: told.kind || expected.kind });
  const isKin = gvk.group === expected.group && gvk.kind === expected.kind && VERSIONS.includes(gvk.version);
  if (isKin && gvk.version === expected.version) return;
  if (isKin || (gvk.group === "" && gvk.version === "v1" && gvk.kind === "Status") || builtInFacts.typeOf(gvk)) throw new Error(`converting (${gvk.version}.${gvk.kind}) to (${expected.version}.${expected.kind}): unknown conversion`);
  throw new Error(`no kind ${goQuote(gvk.kind)} is registered for version ${goQuote(formatApiVersion(gvk))} in scheme ${goQuote(SCHEME)}`);
}
