/**
 * A value as the API server's own structs hold it. They are made for Go, not for JSON: errors that show one show every field, under Go's name, and zero values.
 *
 *   internalForm("io.k8s.api.core.v1.Taint", { key: "a", effect: "NoSchedule" })   → { Key: "a", Value: "", Effect: "NoSchedule", TimeAdded: null }
 *
 * Source: kubernetes v1.36 pkg/apis/<group>/types.go, which have no JSON names, and the order of the versioned types
 */
import type { JsonObject, JsonValue } from "../codec/json-document.ts";
import { builtInFacts, type FieldInfo, type StructType, type Type } from "./facts.ts";

/** Where Go's name is not JSON's with a capital. */
const NAMES: Readonly<Record<string, string>> = {
  seLinuxOptions: "SELinuxOptions", apiVersion: "APIVersion", apiGroup: "APIGroup", uid: "UID", ip: "IP", cel: "CEL",
  "DeviceAttribute.int": "IntValue", "DeviceAttribute.bool": "BoolValue", "DeviceAttribute.string": "StringValue", "DeviceAttribute.version": "VersionValue",
  "DeviceAttribute.ints": "IntValues", "DeviceAttribute.bools": "BoolValues", "DeviceAttribute.strings": "StringValues", "DeviceAttribute.versions": "VersionValues",
};

/** Types that are the same for all versions, and have names for JSON. */
const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/** Pointers in the versioned types, values in the server's own: nought where nothing is said. */
const VALUES: ReadonlySet<string> = new Set(["RollingUpdateDeployment.maxUnavailable", "RollingUpdateDeployment.maxSurge", "RollingUpdateDaemonSet.maxUnavailable", "RollingUpdateDaemonSet.maxSurge", "RollingUpdateStatefulSetStrategy.partition"]);

/** `name`: the struct's in OpenAPI. */
export function internalForm(name: string, value: object): JsonObject {
  const type = builtInFacts.structNamed(name);
  if (!type) throw new Error(`no type ${name}`);
  return ofStruct(type, value as Readonly<Record<string, unknown>>);
}

function ofStruct(type: StructType, value: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(type.fields.map((field) => [goNameOf(type, field), value[field.name] === undefined ? zeroOf(type, field) : ofType(field.type, value[field.name])]));
}

function placeOf({ goName }: StructType, { name }: FieldInfo): string { return `${goName.split(".").at(-1)}.${name}`; }

function goNameOf(struct: StructType, field: FieldInfo): string {
  const { name } = field;
  return NAMES[placeOf(struct, field)] ?? NAMES[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
}

function ofType(type: Type, value: unknown): JsonValue {
  if (value === null || typeof value !== "object") return value as JsonValue;
  switch (type.kind) {
    case "struct": return type.name.startsWith(META) ? value as JsonValue : ofStruct(type, value as Readonly<Record<string, unknown>>);
    case "list": return (value as readonly unknown[]).map((item) => ofType(type.items, item));
    case "map": return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, ofType(type.values, item)]));
    default: return value as JsonValue;
  }
}

function zeroOf(struct: StructType, field: FieldInfo): JsonValue {
  const { type, pointer } = field;
  if (pointer && !VALUES.has(placeOf(struct, field))) return null;
  switch (type.kind) {
    case "struct": return ofStruct(type, {});
    case "scalar": return type.scalar === "string" ? "" : type.scalar === "bool" ? false : type.scalar === "bytes" ? null : 0;
    case "special": return type.special === "quantity" ? "0" : type.special === "intOrString" ? 0 : null;
    default: return null;
  }
}
