/** The kind of what a patch of a policy or a webhook has made of an object. */
import { kindError, noConversion } from "../api/codec/body.ts";
import { jsonText } from "../api/codec/json.ts";
import { formatApiVersion, formatGvk, type GroupVersionKind, gvkOf } from "../api/meta/gvk.ts";
import { internalError } from "../api/meta/status-error.ts";
import { type JsonMap, jsonKindOf } from "../api/patch/json-value.ts";
import { builtInFacts } from "../api/schema/facts.ts";

/**
 * What says no kind is of the one it was, unless it is a custom resource. Throws 500 for what is no name of a kind and for a kind that nobody knows, and what `refusal`
 * makes of the reason for another one.
 */
export function ofKind(before: GroupVersionKind, patched: JsonMap, refusal: (why: string) => Error): JsonMap {
  const isBuiltIn = builtInFacts.typeOf(before) !== undefined;
  const named = { apiVersion: textOf(patched, "apiVersion") || formatApiVersion(before), kind: textOf(patched, "kind") || (isBuiltIn ? before.kind : "") };
  if (named.kind === "") throw internalError(new Error(`Object 'Kind' is missing in '${jsonText(patched)}'`));
  const after = gvkOf(named);
  if (formatGvk(before) === formatGvk(after)) return { ...patched, ...named };
  const unknown = isBuiltIn && !builtInFacts.typeOf(after) ? kindError(named, before) : undefined;
  throw unknown === undefined ? refusal(noConversion(after, before)) : internalError(new Error(unknown));
}

function textOf(patched: JsonMap, name: "apiVersion" | "kind"): string {
  const given = patched[name] ?? "";
  if (typeof given === "string") return given;
  throw internalError(new Error(`couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonKindOf(given)} into Go struct field .${name} of type string`));
}
