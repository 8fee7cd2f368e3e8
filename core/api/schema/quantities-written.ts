/** Amounts that a body has as numbers. Of such a number Go reads the text: `1e3` stays in that spelling, and 1E400, which no double holds, is an amount like any other. */
import { type JsonNode, type JsonObject, type JsonValue, jsonValueOf, setKey } from "../codec/json-document.ts";
import type { Type } from "./facts.ts";

/** What JSON.parse yields, with amounts as texts. */
export function withQuantities(type: Type | undefined, node: JsonNode): JsonValue {
  if (node.kind === "number" && type?.kind === "special" && type.special === "quantity") return node.text;
  if (node.kind === "array" && type?.kind === "list") return node.items.map((item) => withQuantities(type.items, item));
  if (node.kind !== "object" || (type?.kind !== "struct" && type?.kind !== "map")) return jsonValueOf(node);
  const object: JsonObject = {};
  for (const [key, value] of node.entries) setKey(object, key, withQuantities(type.kind === "map" ? type.values : type.field(key)?.type, value));
  return object;
}
