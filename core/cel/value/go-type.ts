/** What upstream's code calls the type of a value, as a few messages show it. */
import type { Kind } from "../check/type.ts";
import { JoinedLists, Mapping, List, Opaque, Optional, typeOf, type Value } from "./value.ts";

const GO_TYPES: Readonly<Partial<Record<Kind, string>>> = {
  bool: "types.Bool", bytes: "types.Bytes", double: "types.Double", duration: "types.Duration", int: "types.Int", null: "types.Null", string: "types.String", timestamp: "types.Timestamp", type: "*types.Type", uint: "types.Uint",
};

export function goTypeOf(value: Value): string {
  if (value instanceof Opaque) return value.goType;
  if (value instanceof Optional) return "*types.Optional";
  if (value instanceof List) return value instanceof JoinedLists ? "*types.concatList" : "*types.baseList";
  if (value instanceof Mapping) return "*types.baseMap";
  const { kind, name } = typeOf(value);
  return GO_TYPES[kind] ?? name;
}
