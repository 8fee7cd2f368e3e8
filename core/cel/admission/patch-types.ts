/**
 * What the mutations of a policy are made of: Object{spec: Object.spec{replicas: 3}} and JSONPatch{op: "add", path: "/spec", value: …}.
 *
 * An Object may have any field. That Object.spec stands under `spec` is checked when it is used: misnamed(value).
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/mutation/**
 */
import type { StructTypes } from "../check/declarations.ts";
import { DYN, NONE, STRING, struct, type Type } from "../check/type.ts";
import { toJson } from "../value/json.ts";
import { Duration, equal, EvalError, JoinedLists, List, Mapping, Opaque, Timestamp, typeOf, Uint, type Value } from "../value/value.ts";

export const OBJECT_TYPE = struct("Object");
export const JSON_PATCH_TYPE = struct("JSONPatch");
const JSON_PATCH_FIELDS: ReadonlyMap<string, Type> = new Map([["op", STRING], ["from", STRING], ["path", STRING], ["value", DYN]]);

export class ObjectValue extends Opaque {
  override readonly type: Type;
  override readonly goType = "*dynamic.ObjectVal";
  readonly fields: ReadonlyMap<string, Value>;
  constructor(name: string, fields: ReadonlyMap<string, Value>) { super(); this.type = struct(name); this.fields = fields; }

  get json(): Readonly<Record<string, unknown>> { return Object.fromEntries([...this.fields].map(([name, value]) => [name, toJson(value)])); }
  override field(name: string): Value | undefined { return this.fields.get(name); }
  override has(name: string): boolean { return this.fields.has(name); }
  override equals(other: Value): boolean {
    if (!(other instanceof ObjectValue) || other.type.name !== this.type.name || other.fields.size !== this.fields.size) return false;
    for (const [name, value] of this.fields) {
      const theirs = other.fields.get(name);
      if (theirs === undefined || equal(value, theirs) !== true) return false;
    }
    return true;
  }
}

export class JsonPatchValue extends Opaque {
  override readonly type = JSON_PATCH_TYPE;
  override readonly goType = "*mutation.JSONPatchVal";
  readonly op: string;
  readonly from: string;
  readonly path: string;
  /** Undefined: none was given. */
  readonly value: Value | undefined;
  constructor(fields: ReadonlyMap<string, Value>) {
    super();
    const text = (name: string): string => (fields.get(name) as string | undefined) ?? "";
    this.op = text("op");
    this.from = text("from");
    this.path = text("path");
    this.value = fields.get("value");
  }

  override field(name: string): Value | undefined { return name === "value" ? (this.value ?? null) : name === "op" || name === "from" || name === "path" ? this[name] : undefined; }
  override has(name: string): boolean { return name === "value" ? this.value !== undefined : (name === "op" || name === "from" || name === "path") && this[name] !== ""; }
  override equals(other: Value): boolean | EvalError {
    if (!(other instanceof JsonPatchValue) || this.op !== other.op || this.from !== other.from || this.path !== other.path) return false;
    return this.value === undefined || other.value === undefined ? this.value === other.value : equal(this.value, other.value);
  }
}

export const patchStructs: StructTypes = {
  has: (name) => name === JSON_PATCH_TYPE.name || name === OBJECT_TYPE.name || name.startsWith(`${OBJECT_TYPE.name}.`),
  field: (name, field) => (name === JSON_PATCH_TYPE.name ? (JSON_PATCH_FIELDS.get(field) ?? NONE) : DYN),
  make(name, fields) {
    if (name !== JSON_PATCH_TYPE.name) return new ObjectValue(name, fields);
    for (const field of ["op", "from", "path"]) {
      const value = fields.get(field);
      if (value !== undefined && typeof value !== "string") return new EvalError(`unexpected type ${goTypeOf(value)} for JSONPatchType '${field}' field`);
    }
    for (const field of fields.keys()) if (!JSON_PATCH_FIELDS.has(field)) return new EvalError(`unexpected JSONPatchType field: ${field}`);
    return new JsonPatchValue(fields);
  },
};

/** What Go calls the type of what a value holds. */
function goTypeOf(value: Value): string {
  if (typeof value === "bigint") return "int64";
  if (typeof value === "number") return "float64";
  if (value === null) return "structpb.NullValue";
  if (value instanceof Uint) return "uint64";
  if (value instanceof Uint8Array) return "[]uint8";
  if (value instanceof Timestamp) return "time.Time";
  if (value instanceof Duration) return "time.Duration";
  if (value instanceof List) return "json" in value ? "[]interface {}" : "[]ref.Val";
  if (value instanceof Mapping) return "json" in value ? "map[string]interface {}" : "map[ref.Val]ref.Val";
  return typeOf(value).text;
}

/** What is wrong with the names of an object's types; nothing if they follow its fields. */
export function misnamed(value: Value, path: readonly string[] = [OBJECT_TYPE.name]): string[] {
  if (value instanceof ObjectValue) {
    const expected = path.join(".");
    const wrong = value.type.name === expected ? [] : [`unexpected type name ${JSON.stringify(value.type.name)}, expected ${JSON.stringify(expected)}, which matches field name path from root Object type`];
    return [...wrong, ...[...value.fields].flatMap(([name, field]) => misnamed(field, [...path, name]))];
  }
  if (value instanceof List) return value instanceof JoinedLists ? [] : [...value].flatMap((element) => misnamed(element, path));
  if (value instanceof Mapping) return [...value.keys()].flatMap((key) => misnamed(value.find(key)!, path));
  return [];
}
