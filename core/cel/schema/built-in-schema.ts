/**
 * Built-in types as JSON schemas, with what they refer to put in its place: what expressions about them are checked against.
 *
 * A type within itself is an object of which nothing is known. What has no type of its own in OpenAPI (quantities, arbitrary JSON) has none here either.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/openapi/resolver
 */
import type { Scalar, Special, StructType, Type } from "../../api/schema/facts.ts";
import type { JsonSchema } from "./declared-type.ts";

const SCALARS: Readonly<Record<Scalar, JsonSchema>> = {
  string: { type: "string" }, bool: { type: "boolean" }, int32: { type: "integer" }, int64: { type: "integer" }, float64: { type: "number" }, bytes: { type: "string", format: "byte" },
};
const SPECIALS: Partial<Readonly<Record<Special, JsonSchema>>> = {
  time: { type: "string", format: "date-time" }, microTime: { type: "string", format: "date-time" }, duration: { type: "string" }, intOrString: { "x-kubernetes-int-or-string": true },
  rawExtension: { type: "object" }, fieldsV1: { type: "object" },
};

export function builtInSchema(type: StructType): JsonSchema { return structSchema(type, new Set()); }

function structSchema(type: StructType, above: ReadonlySet<StructType>): JsonSchema {
  if (above.has(type)) return { type: "object" };
  const within = new Set(above).add(type);
  return { type: "object", properties: Object.fromEntries(type.fields.map((field) => [field.name, schemaOf(field.type, within)])) };
}

function schemaOf(type: Type, above: ReadonlySet<StructType>): JsonSchema {
  switch (type.kind) {
    case "scalar": return SCALARS[type.scalar];
    case "special": return SPECIALS[type.special] ?? {};
    case "list": return { type: "array", items: schemaOf(type.items, above) };
    case "map": return { type: "object", additionalProperties: schemaOf(type.values, above) };
    case "struct": return structSchema(type, above);
  }
}
