/**
 * Keys that stand twice in JSON, as Go reads them into a type: a second struct or map goes into the first, a second list over it item by item, and a null leaves what it cannot empty.
 * Where there is no type (arbitrary JSON, custom resources) the last one stands, as in JSON.parse.
 *
 * Source: sigs.k8s.io/json, encoding/json decode.go
 */
import type { JsonNode } from "../codec/json-document.ts";
import type { FieldInfo, StructType, Type } from "./facts.ts";

/** The same document without a key twice. */
export function mergeRepeated(type: Type, node: JsonNode): JsonNode { return merged(type, node, undefined); }

/** `before`: what stands where `node` goes. */
function merged(type: Type, node: JsonNode, before: JsonNode | undefined): JsonNode {
  switch (type.kind) {
    case "struct": return node.kind === "object" ? struct(type, node.entries, before) : node;
    case "map": return node.kind === "object" ? map(type.values, node.entries, before) : node;
    case "list": return node.kind === "array" ? { kind: "array", items: node.items.map((item, i) => merged(type.items, item, before?.kind === "array" ? before.items[i] : undefined)) } : node;
    default: return node;
  }
}

type Entries = readonly (readonly [string, JsonNode])[];

function struct(type: StructType, entries: Entries, before: JsonNode | undefined): JsonNode {
  const fields = new Map(before?.kind === "object" ? before.entries : []);
  for (const [key, value] of entries) {
    const field = type.field(key);
    const earlier = fields.get(key);
    if (field && earlier && value.kind === "null" && !emptiedByNull(field)) continue;
    fields.set(key, field ? merged(field.type, value, earlier) : value);
  }
  return { kind: "object", entries: [...fields] };
}

/** What a key of a map has is made anew each time. */
function map(values: Type, entries: Entries, before: JsonNode | undefined): JsonNode {
  const keys = new Map(before?.kind === "object" ? before.entries : []);
  for (const [key, value] of entries) keys.set(key, merged(values, value, undefined));
  return { kind: "object", entries: [...keys] };
}

function emptiedByNull({ pointer, type }: FieldInfo): boolean { return pointer || (type.kind !== "scalar" && type.kind !== "struct"); }
