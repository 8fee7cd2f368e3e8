/** The name of a type as Go's reflection prints it in decoding errors: int32, []v1.Container, map[string]string, v1.Protocol. */
import type { NamedType, Scalar, Special, Type } from "./facts.ts";

const SCALARS: Readonly<Record<Scalar, string>> = { string: "string", bool: "bool", int32: "int32", int64: "int64", float64: "float64", bytes: "[]uint8" };
const SPECIALS: Readonly<Record<Special, string>> = {
  time: "v1.Time", microTime: "v1.MicroTime", duration: "v1.Duration", quantity: "resource.Quantity", intOrString: "intstr.IntOrString",
  rawExtension: "runtime.RawExtension", fieldsV1: "v1.FieldsV1", json: "v1.JSON", any: "interface {}",
  schemaOrBool: "v1.JSONSchemaPropsOrBool", schemaOrArray: "v1.JSONSchemaPropsOrArray", schemaOrStringArray: "v1.JSONSchemaPropsOrStringArray",
};

export function goTypeName(type: Type): string {
  switch (type.kind) {
    case "struct": return packaged(type);
    case "special": return SPECIALS[type.special];
    case "scalar": return type.named ? packaged(type.named) : SCALARS[type.scalar];
    case "list": return type.named ? packaged(type.named) : `[]${goTypeName(type.items)}`;
    case "map": return type.named ? packaged(type.named) : `map[${keyName(type.values)}]${goTypeName(type.values)}`;
  }
}

/** What is kept under names that have a type of their own; all other maps have texts for keys. */
const KEYS: Readonly<Record<string, string>> = { DeviceAttribute: "QualifiedName", DeviceCapacity: "QualifiedName", ClaimResourceStatus: "ResourceName", NodeAllocatableResourceMapping: "ResourceName" };

function keyName(values: Type): string {
  const type = values.kind === "struct" ? values : values.kind === "scalar" ? values.named : undefined;
  const name = KEYS[type?.goName.split(".").at(-1) ?? ""];
  if (!type || name === undefined) return "string";
  return `${name === "ResourceName" ? "v1" : packaged(type).split(".")[0]}.${name}`;
}

/** A Go package is called by the last part of its path. */
function packaged({ name, goName }: Pick<NamedType, "name" | "goName">): string { return `${name.slice(0, -goName.length - 1).split(".").at(-1)}.${goName}`; }
