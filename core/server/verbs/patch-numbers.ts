/**
 * Numbers in a patch that are whole and not written so (80.0, 8e1). A JSON patch and a merge patch make a text that is decoded again, in which no integer is written like that;
 * other patches make values, where the number alone counts.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/patch.go jsonPatcher
 */
import type { JsonNode } from "../../api/codec/json-document.ts";
import { diagnose } from "../../api/schema/diagnose.ts";
import type { StructType } from "../../api/schema/facts.ts";

/** Why what the patch brings along is none of `type`, if it is for a number. */
export function unfitNumber(type: StructType, patch: JsonNode, old: object): string | undefined {
  const brought = patch.kind === "array" ? patch.items.flatMap((operation) => placed(operation, old) ?? []) : [patch];
  for (const part of brought) {
    const { error } = diagnose(type, part);
    if (error?.startsWith("json: cannot unmarshal number ")) return error;
  }
  return undefined;
}

/** An operation's value at its place in an object that has nothing else. */
function placed(operation: JsonNode, old: object): JsonNode | undefined {
  const op = memberOf(operation, "op"), path = memberOf(operation, "path"), value = memberOf(operation, "value");
  if (op?.kind !== "string" || (op.value !== "add" && op.value !== "replace")) return undefined; // others have no use for a value
  if (path?.kind !== "string" || !value) return undefined;
  const keys = path.value.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  return within(keys, value, old);
}

function within([key, ...rest]: readonly string[], value: JsonNode, old: unknown): JsonNode {
  if (key === undefined) return value;
  const inner = within(rest, value, typeof old === "object" && old !== null ? (old as Record<string, unknown>)[key] : undefined);
  return Array.isArray(old) ? { kind: "array", items: [inner] } : { kind: "object", entries: [[key, inner]] };
}

function memberOf(node: JsonNode, name: string): JsonNode | undefined {
  return node.kind === "object" ? node.entries.findLast(([key]) => key === name)?.[1] : undefined;
}
