/**
 * Strategic merge patch: a merge patch that knows the type, so that lists of named things merge by name.
 *
 *   containers: [{ name: web, image: x }]        merged into the container called web, or added
 *   containers: [{ name: web, $patch: delete }]  removed        ({ $patch: replace } in a list or map: the rest of it is the new value)
 *   $setElementOrder/containers: [{ name: a }, { name: web }]
 *   $deleteFromPrimitiveList/finalizers: [x]
 *   $retainKeys: [type, rollingUpdate]           of a union: every other key of the live map goes
 *
 * Which lists merge and by which key is in the schema. A merged list has the patch's items in the patch's order, woven into the live order.
 * The document is not changed; what the patch does not touch is shared with the result.
 * Throws badRequest for a malformed patch, and a plain Error (a 500, as upstream answers) for one that does not fit the document.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/strategicpatch/patch.go, pkg/util/mergepatch/errors.go
 */
import { badRequest } from "../meta/status-error.ts";
import { goQuote } from "../meta/go-quote.ts";
import { equalJson, formatGo, formatGoText, goTypeOf, isMap, isScalar, type JsonMap, jsonKindOf, put, valueAt, withoutNulls } from "./json-value.ts";
import { orderMerged } from "./strategic-order.ts";
import type { FieldSchema, MapSchema, ObjectSchema, SchemaNode } from "./schema.ts";

export const DIRECTIVE = "$patch";
export const RETAIN_KEYS = "$retainKeys";
export const DELETE_FROM_PRIMITIVE_LIST = "$deleteFromPrimitiveList";
export const SET_ELEMENT_ORDER = "$setElementOrder";
const BAD_RETAIN_KEYS = "invalid patch format of retainKeys";
const BAD_ELEMENT_ORDER = "invalid patch format of setElementOrder list";
const BAD_PRIMITIVE_LIST = "invalid patch format of primitive list";

type List = readonly unknown[];

export function applyStrategicMerge(document: JsonMap, patch: unknown, schema: ObjectSchema): JsonMap {
  if (!schema.strategic) throw badRequest("strategic merge patch format is not supported");
  if (!isMap(patch)) throw badRequest(patch === null ? "invalid JSON document" : `json: cannot unmarshal ${jsonKindOf(patch)} into Go value of type map[string]interface {}`);
  return mergeMap(document, patch, schema.root.map);
}

function mergeMap(original: JsonMap, patch: JsonMap, schema: MapSchema | undefined): JsonMap {
  if (Object.hasOwn(patch, DIRECTIVE)) return obeyDirective(patch);
  const rest: Record<string, unknown> = { ...patch };
  const merged: Record<string, unknown> = { ...original };
  retainKeys(merged, rest);
  setElementOrders(merged, rest, schema);
  for (const key in rest) mergeKey(merged, key, rest[key], schema);
  return merged;
}

function obeyDirective(patch: JsonMap): JsonMap {
  const { [DIRECTIVE]: directive, ...rest } = patch;
  if (directive === "replace") return rest;
  if (directive === "delete") return {};
  throw new Error(`unknown patch type: ${formatGoText(directive)} in map: ${formatGo(patch)}`);
}

function mergeKey(merged: Record<string, unknown>, written: string, value: unknown, schema: MapSchema | undefined): void {
  const deletes = written.startsWith(DELETE_FROM_PRIMITIVE_LIST);
  const key = deletes ? keyAfter(written, DELETE_FROM_PRIMITIVE_LIST, BAD_PRIMITIVE_LIST) : written;
  const current = valueAt(merged, key);
  if (value === null) { delete merged[key]; return; }
  if (current === undefined || goTypeOf(current) !== goTypeOf(value)) {
    if (!deletes) setOrDrop(merged, key, withoutDirectives(withoutNulls(value)));
  } else if (Array.isArray(current)) {
    const field = fieldOf(schema, key);
    put(merged, key, deletes || field.patchStrategy === "merge" ? mergeList(current, value as List, field, deletes).list : value);
  } else if (isMap(current)) {
    const field = fieldOf(schema, key);
    put(merged, key, field.patchStrategy === "replace" ? value : mergeMap(current, value as JsonMap, field.node.map));
  } else setOrDrop(merged, key, value);
}

function keyAfter(written: string, prefix: string, problem: string): string {
  if (!written.startsWith(`${prefix}/`)) throw badRequest(problem);
  return written.slice(prefix.length + 1);
}

function setOrDrop(merged: Record<string, unknown>, key: string, value: unknown): void {
  if (value === undefined) delete merged[key];
  else put(merged, key, value);
}

export function fieldOf(schema: MapSchema | undefined, key: string): FieldSchema {
  if (schema === undefined || schema.goKind !== "struct") throw new Error(`merging an object in json but data type is not struct, instead is: ${schema?.goKind ?? "interface"}`);
  const field = schema.field(key);
  if (field) return field;
  throw new Error(`unable to find api field in struct ${schema.name} for the json field ${goQuote(key)}`);
}

function retainKeys(merged: Record<string, unknown>, patch: Record<string, unknown>): void {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return;
  const listed = patch[RETAIN_KEYS];
  delete patch[RETAIN_KEYS];
  if (!Array.isArray(listed)) throw badRequest(BAD_RETAIN_KEYS);
  const retained = new Set<unknown>(listed);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || key.startsWith(DELETE_FROM_PRIMITIVE_LIST) || key.startsWith(SET_ELEMENT_ORDER)) continue;
    if (!retained.has(key)) throw badRequest(BAD_RETAIN_KEYS);
  }
  for (const key of Object.keys(merged)) if (!retained.has(key)) delete merged[key];
}

function setElementOrders(merged: Record<string, unknown>, patch: Record<string, unknown>, schema: MapSchema | undefined): void {
  for (const written of Object.keys(patch)) {
    if (!written.startsWith(SET_ELEMENT_ORDER)) continue;
    const order = listOrThrow(patch[written]);
    delete patch[written];
    const key = keyAfter(written, SET_ELEMENT_ORDER, BAD_ELEMENT_ORDER);
    const current = valueAt(merged, key);
    const given = valueAt(patch, key);
    const original = current === undefined || current === null ? undefined : listOrThrow(current);
    const items = given === undefined ? undefined : listOrThrow(given);
    const field = fieldOf(schema, key);
    if (!field.node.list && field.node.map?.goKind === "map") throw new Error("expected slice or array type, but got: struct");
    checkOrder(items ?? [], order, field.patchMergeKey);
    const both = original && items ? (field.patchStrategy === "merge" ? mergeList(original, items, field, false) : { list: items, liveOrder: original })
      : asMerged(original ?? (items && (withoutDirectives(items) as List)), original);
    if (both === undefined) continue;
    checkListed(both.list, order, field.patchMergeKey);
    itemKind(original ?? [], items ?? []);
    put(merged, key, orderMerged(both.list, { patchOrder: order, liveOrder: both.liveOrder, mergeKey: field.patchMergeKey }));
    delete patch[key];
  }
}

function asMerged(list: List | undefined, original: List | undefined): MergedList | undefined { return list && { list, liveOrder: original ?? [] }; }

function listOrThrow(value: unknown): List {
  if (Array.isArray(value)) return value;
  throw new Error(`expected a []interface {}, but received a ${typeShown(value)}`);
}

function typeShown(value: unknown): string { return value === null ? formatGoText(value) : goTypeOf(value); }

/** Where upstream looks for the items that the order names. */
function checkListed(merged: List, order: List, mergeKey: string | undefined): void {
  if (mergeKey === undefined) return;
  const wrong = order.findIndex((listed) => !isMap(listed));
  if (wrong < 0) return;
  const before = new Set((order.slice(0, wrong) as readonly JsonMap[]).filter((listed) => Object.hasOwn(listed, mergeKey)).map((listed) => listed[mergeKey]));
  if (!merged.every((item) => before.has(valueAt(item as JsonMap, mergeKey)))) throw new Error(`value for key ${wrong} is not a map`);
}

/** What the patch adds must be listed, in the same order. */
function checkOrder(items: List, order: List, mergeKey: string | undefined): void {
  if (items.length === 0 || order.length === 0) return;
  const kept = items.filter((item) => !(isMap(item) && valueAt(item, DIRECTIVE) === "delete"));
  let at = 0;
  for (const listed of order) {
    while (at < kept.length && isMap(kept[at]) && Object.hasOwn(kept[at] as JsonMap, DIRECTIVE)) at++;
    if (at < kept.length && equalJson(identity(kept[at], mergeKey), identity(listed, mergeKey))) at++;
  }
  if (at < kept.length) throw new Error(`The order in patch list:\n${formatGo(items)}\n doesn't match ${SET_ELEMENT_ORDER} list:\n${formatGo(order)}\n`);
}

function identity(item: unknown, mergeKey: string | undefined): unknown {
  if (mergeKey === undefined) return item;
  if (!isMap(item)) throw new Error(`expected a map[string]interface {}, but received a ${typeShown(item)}`);
  const value = valueAt(item, mergeKey);
  if (value === undefined) throw missingKey(item, mergeKey);
  return value;
}

function missingKey(item: JsonMap, mergeKey: string): Error { return new Error(`map: ${formatGo(item)} does not contain declared merge key: ${mergeKey}`); }

/** `liveOrder`: what a $setElementOrder weaves the list into. */
interface MergedList { readonly list: List; readonly liveOrder: List }

function mergeList(original: List, patch: List, field: FieldSchema, deletes: boolean): MergedList {
  if (original.length === 0 && patch.length === 0) return { list: original, liveOrder: original };
  const items: SchemaNode | undefined = field.node.list?.items;
  if (itemKind(original, patch) !== "map") {
    const gone = new Set(patch);
    const list = deletes ? original.filter((item) => !gone.has(item))
      : orderMerged([...new Set([...original, ...patch])], { patchOrder: patch, liveOrder: original, mergeKey: field.patchMergeKey });
    return { list, liveOrder: original };
  }
  const { patchMergeKey } = field;
  if (patchMergeKey === undefined) throw new Error(`cannot merge lists without merge key for ${items?.scalar ?? "struct"}`);
  return mergeItems(original, patch, { mergeKey: patchMergeKey, schema: items?.map });
}

/** All items of both lists are of one kind, and none is a list. */
function itemKind(original: List, patch: List): "map" | "scalar" {
  const kinds = new Set([...original, ...patch].map(goTypeOf)); // the first is that of the first item
  if (kinds.values().next().value === "[]interface {}") throw new Error("lists of lists are not supported");
  if (kinds.size > 1) throw new Error(`list element types are not identical: ${formatGo([original, patch])}`);
  if (kinds.size === 0) throw new Error("no elements in any of the given slices");
  return kinds.has("map[string]interface {}") ? "map" : "scalar";
}

interface ItemRule { readonly mergeKey: string; readonly schema: MapSchema | undefined }

function mergeItems(original: List, patch: List, { mergeKey, schema }: ItemRule): MergedList {
  const { live, items, replaced } = obeyListDirectives(original, patch, mergeKey);
  if (replaced) return { list: orderMerged(items, { patchOrder: [], liveOrder: items, mergeKey }), liveOrder: live };
  const merged = [...live];
  const positions = new Map(merged.map((item, at) => [valueAt(item as JsonMap, mergeKey), at] as const).reverse());
  for (const item of items as readonly JsonMap[]) {
    const value = valueAt(item, mergeKey);
    if (value === undefined) throw missingKey(item, mergeKey);
    const at = positions.get(value);
    if (at !== undefined) merged[at] = mergeMap(merged[at] as JsonMap, item, schema);
    else { positions.set(value, merged.length); merged.push(item); }
  }
  // upstream adds in the places of the deleted, so as many of the new items count as live
  return { list: orderMerged(merged, { patchOrder: items, liveOrder: live, mergeKey }), liveOrder: merged.slice(0, original.length) };
}

/** `replaced`: the items without directives are all there will be. */
function obeyListDirectives(original: List, patch: List, mergeKey: string): { readonly live: List; readonly items: List; readonly replaced: boolean } {
  const items: unknown[] = [];
  const deleted = new Set<unknown>();
  let replaced = false;
  for (const item of patch as readonly JsonMap[]) {
    const directive = valueAt(item, DIRECTIVE);
    if (directive === undefined) items.push(item);
    else if (directive === "replace") replaced = true;
    else if (directive === "merge") throw new Error("merging lists cannot yet be specified in the patch");
    else if (directive !== "delete") throw new Error(`unknown patch type: ${formatGoText(directive)} in map: ${formatGo(item)}`);
    else if (valueAt(item, mergeKey) === undefined) throw missingKey(item, mergeKey);
    else deleted.add(valueAt(item, mergeKey));
  }
  const live = deleted.size === 0 ? original : original.filter((item) => !deleted.has(valueAt(item as JsonMap, mergeKey)));
  return { live, items, replaced };
}

/** A map that carries a directive stands for no value: undefined. */
export function withoutDirectives(value: unknown): unknown {
  if (value === null || isScalar(value)) return value;
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined);
  if (Object.hasOwn(value as JsonMap, DIRECTIVE)) return undefined;
  const kept: Record<string, unknown> = {};
  for (const key in value as JsonMap) {
    const clean = withoutDirectives((value as JsonMap)[key]);
    if (clean !== undefined) put(kept, key, clean);
  }
  return kept;
}
