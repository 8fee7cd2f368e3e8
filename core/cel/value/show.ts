/** Values in messages, as Go's %v prints them. */
import { formatDurationNs } from "../../api/meta/duration.ts";
import { Type } from "../check/type.ts";
import { goFloat } from "../../api/meta/go-float.ts";
import { formatTimestamp } from "./time.ts";
import { Duration, EvalError, List, Mapping, Opaque, Optional, Timestamp, Uint, type Value } from "./value.ts";

export function show(value: Value): string {
  switch (typeof value) {
    case "string": return value;
    case "boolean": case "bigint": return String(value);
    case "number": return goFloat(value);
  }
  if (value === null) return "0";
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return `[${value.join(" ")}]`;
  if (value instanceof Timestamp) return formatTimestamp(value);
  if (value instanceof Duration) return formatDurationNs(value.nanos);
  if (value instanceof Type) return value.text;
  if (value instanceof Optional) return value.value === undefined ? "optional.none()" : `optional(${show(value.value)})`;
  if (value instanceof List) return `[${[...value].map(show).join(", ")}]`;
  if (value instanceof Mapping) return `{${[...value.keys()].map((key) => `${show(key)}: ${show(value.find(key) ?? null)}`).join(", ")}}`;
  if (value instanceof EvalError) return value.message;
  return value instanceof Opaque ? value.type.name : String(value);
}
