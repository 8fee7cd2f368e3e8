/** ConfigMap (v1). Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateConfigMap */
import { type FieldError, forbidden, invalid, key, NO_FIELD, tooLong } from "../../api/meta/field-error.ts";
import type { ConfigMap } from "../../api/gen/core.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { configMapKey } from "../../api/meta/names.ts";
import { defineResource } from "../generic/resource.ts";
import { semanticEqual } from "./checks/equal.ts";
import { problems } from "./checks/values.ts";

/** Of all values together. */
export const DATA_BYTES_MAX = 1024 * 1024;

export const configMaps = defineResource<ConfigMap>({
  group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", updateOrder: "change first",
  generation: false,

  *validate({ data = {}, binaryData = {} }) {
    let bytes = 0;
    for (const [name, value] of Object.entries(data)) {
      yield* problems(key("data", name), name, configMapKey(name));
      if (Object.hasOwn(binaryData, name)) yield invalid(key("data", name), name, "duplicate of key present in binaryData");
      bytes += byteLength(value);
    }
    for (const [name, value] of Object.entries(binaryData)) {
      yield* problems(key("binaryData", name), name, configMapKey(name));
      bytes += base64Bytes(value);
    }
    if (bytes > DATA_BYTES_MAX) yield tooLong(NO_FIELD, DATA_BYTES_MAX);
  },
  validateUpdate: (next, old, emptied = []) => unchangedIfImmutable(next, old, ["data", "binaryData"], emptied.filter((field) => field !== "data")), // which defaulting makes a map
});

/** Once `immutable` is set, neither it nor the data changes. What is `emptied` was sent as an empty map, and the stored one is none. */
export function* unchangedIfImmutable<T extends { readonly immutable?: boolean | undefined }>(next: T, old: T, fields: readonly (keyof T & string)[], emptied: readonly string[]): Iterable<FieldError> {
  if (!old.immutable) return;
  const text = "field is immutable when `immutable` is set";
  if (!next.immutable) yield forbidden("immutable", text);
  for (const field of fields) if (emptied.includes(field) || !semanticEqual(next[field] ?? {}, old[field] ?? {})) yield forbidden(field, text);
}

/** The length of what base64 stands for. */
export function base64Bytes(text: string): number {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return Math.floor((text.length * 3) / 4) - padding;
}
