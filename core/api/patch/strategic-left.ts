/**
 * What is left of a strategic merge patch once it has been merged, which is how upstream shows it to who is told that its result does not fit: the merge takes
 * from it what it has dealt with, orders and the lists they are of, and nulls and directives of what is new.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/strategicpatch/patch.go, apiserver/pkg/endpoints/handlers/patch.go applyPatchToObject
 */
import { goTypeOf, isMap, type JsonMap, put, valueAt, withoutNulls } from "./json-value.ts";
import type { FieldSchema, MapSchema, ObjectSchema } from "./schema.ts";
import { DELETE_FROM_PRIMITIVE_LIST, DIRECTIVE, fieldOf, RETAIN_KEYS, SET_ELEMENT_ORDER, withoutDirectives } from "./strategic-merge.ts";

/** Of a patch that can be merged into the document. */
export function strategicPatchLeft(document: JsonMap, patch: JsonMap, schema: ObjectSchema): JsonMap { return leftOfMap(document, patch, schema.root.map); }

function leftOfMap(original: JsonMap, patch: JsonMap, schema: MapSchema | undefined): JsonMap {
  if (Object.hasOwn(patch, DIRECTIVE)) {
    const { [DIRECTIVE]: directive, ...rest } = patch;
    return directive === "replace" ? rest : patch;
  }
  const ordered = new Set(Object.keys(patch).filter((key) => key.startsWith(SET_ELEMENT_ORDER)).map((key) => key.slice(SET_ELEMENT_ORDER.length + 1)));
  const left: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(patch)) {
    if (key === RETAIN_KEYS || key.startsWith(SET_ELEMENT_ORDER) || ordered.has(key)) continue;
    put(left, key, key.startsWith(DELETE_FROM_PRIMITIVE_LIST) || value === null ? value : leftOfValue(valueAt(original, key), value, () => fieldOf(schema, key)));
  }
  return left;
}

function leftOfValue(current: unknown, value: unknown, field: () => FieldSchema): unknown {
  if (current === undefined || goTypeOf(current) !== goTypeOf(value)) {
    const bare = withoutNulls(value);
    return Array.isArray(bare) ? bare.map((item) => withoutDirectives(item) ?? item) : withoutDirectives(bare) ?? bare;
  }
  if (isMap(value)) {
    const { patchStrategy, node } = field();
    return patchStrategy === "replace" ? value : leftOfMap(current as JsonMap, value, node.map);
  }
  if (!Array.isArray(value)) return value;
  const { patchStrategy, patchMergeKey, node } = field();
  if (patchStrategy !== "merge" || patchMergeKey === undefined) return value;
  const live = new Map((current as readonly JsonMap[]).map((item) => [valueAt(item, patchMergeKey), item] as const).reverse()); // of one key the first
  return value.map((item: JsonMap) => {
    const match = Object.hasOwn(item, DIRECTIVE) ? undefined : live.get(valueAt(item, patchMergeKey));
    return match ? leftOfMap(match, item, node.list?.items.map) : item;
  });
}
