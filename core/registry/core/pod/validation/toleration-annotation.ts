/**
 * Tolerations as they were before there was a field for them: an annotation with JSON. Nothing but validation reads it.
 *
 * Source: kubernetes v1.36 pkg/apis/core/helper/helpers.go GetTolerationsFromPodAnnotations, read as Go's encoding/json does: names in whatever case, null for nothing
 */
import { parseJson } from "../../../../api/codec/json.ts";
import { JsonSyntaxError, type JsonValue } from "../../../../api/codec/json-document.ts";
import type { Toleration } from "../../../../api/gen/core.v1.ts";
import { jsonKindOf } from "../../../../api/patch/json-value.ts";

/** Go's name and type of each field. */
const FIELDS: Readonly<Record<string, readonly [name: string, type: string]>> = {
  key: ["Key", "string"], operator: ["Operator", "core.TolerationOperator"], value: ["Value", "string"], effect: ["Effect", "core.TaintEffect"], tolerationSeconds: ["TolerationSeconds", "int64"],
};
const BY_NAME = new Map(Object.keys(FIELDS).map((name) => [name.toLowerCase(), name]));
const INT64_MAX = 2n ** 63n - 1n;

/** A text: what is wrong with it. */
export function readTolerations(text: string): Toleration[] | string {
  try {
    const { value } = parseJson(text);
    if (value === null) return [];
    return Array.isArray(value) ? value.map(readToleration) : mismatch(value, "value of type []core.Toleration");
  } catch (error) {
    if (error instanceof JsonSyntaxError || error instanceof Mismatch) return error.message;
    throw error;
  }
}

class Mismatch extends Error { override readonly name = "Mismatch"; }

function readToleration(value: JsonValue): Toleration {
  if (value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new Mismatch(mismatch(value, "value of type core.Toleration"));
  const read: Record<string, JsonValue> = {};
  for (const [name, item] of Object.entries(value)) {
    const field = BY_NAME.get(name.toLowerCase());
    if (field === undefined || item === null) continue;
    const [goName, type] = FIELDS[field]!;
    if (type === "int64" ? !isInt64(item) : typeof item !== "string") throw new Mismatch(mismatch(item, `struct field Toleration.${goName} of type ${type}`, type === "int64"));
    read[field] = item;
  }
  return read as Toleration;
}

function isInt64(value: JsonValue): boolean {
  return typeof value === "bigint" ? value <= INT64_MAX && value >= -INT64_MAX - 1n : Number.isSafeInteger(value); // what is no int64 is a float by now
}

function mismatch(value: JsonValue, into: string, showsNumber = false): string {
  const type = jsonKindOf(value);
  return `json: cannot unmarshal ${type}${showsNumber && type === "number" ? ` ${value}` : ""} into Go ${into}`;
}
