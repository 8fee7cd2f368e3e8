/** The kind of what a patch of a policy or a webhook has made of an object. */
import { kindError, noConversion } from "../api/codec/body.ts";
import { formatApiVersion, formatGvk, type GroupVersionKind, gvkOf } from "../api/meta/gvk.ts";
import { internalError } from "../api/meta/status-error.ts";
import type { JsonMap } from "../api/patch/json-value.ts";
import { builtInFacts } from "../api/schema/facts.ts";

/** What says no kind is of the one it was. Throws 500 for a kind that nobody knows, and what `refusal` makes of the reason for another one. */
export function ofKind(before: GroupVersionKind, { apiVersion = formatApiVersion(before), kind = before.kind, ...patched }: JsonMap, refusal: (why: string) => Error): JsonMap {
  const named = { apiVersion: String(apiVersion), kind: String(kind) };
  const after = gvkOf(named);
  if (formatGvk(before) === formatGvk(after)) return { ...patched, ...named };
  const unknown = builtInFacts.typeOf(before) && !builtInFacts.typeOf(after) ? kindError(named, before) : undefined;
  throw unknown === undefined ? refusal(noConversion(after, before)) : internalError(new Error(unknown));
}
