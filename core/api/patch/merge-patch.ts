/**
 * JSON Merge Patch (RFC 7386): maps merge, null removes, everything else replaces.
 *
 * The document is not changed; what the patch does not touch is shared with the result. Maps that are looked into have their keys in alphabetical order, which arbitrary JSON in an
 * object is stored in. Throws badRequest for what is no patch.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/patch.go, gopkg.in/evanphx/json-patch.v4 merge.go
 */
import { inKeyOrder, keysInOrder } from "../codec/json-document.ts";
import { badRequest } from "../meta/status-error.ts";
import { isMap, type JsonMap, jsonKindOf, put, valueAt, withoutNulls } from "./json-value.ts";

/** What upstream has to say to what is no merge patch. */
export const BAD_MERGE_PATCH = "Invalid JSON Patch";

/** `lax`: nobody has looked at the patch before, who wants to be told of nothing. */
export function applyMergePatch(document: JsonMap, patch: unknown, { lax = false }: { readonly lax?: boolean } = {}): JsonMap {
  if (patch === null || (lax && !isMap(patch))) throw badRequest(BAD_MERGE_PATCH);
  if (!isMap(patch)) throw badRequest(`error decoding patch: json: cannot unmarshal ${jsonKindOf(patch)} into Go value of type map[string]interface {}`);
  return merge(document, patch);
}

function merge(document: JsonMap, patch: JsonMap): JsonMap {
  const merged: Record<string, unknown> = { ...document };
  for (const [key, value] of Object.entries(patch)) {
    const current = valueAt(document, key);
    if (value === null) delete merged[key];
    else if (current === undefined || current === null) put(merged, key, inKeyOrder(withoutNulls(value)));
    else if (isMap(current) && isMap(value)) put(merged, key, merge(current, value));
    else put(merged, key, isMap(current) ? value : inKeyOrder(withoutNulls(value)));
  }
  return keysInOrder(merged);
}
