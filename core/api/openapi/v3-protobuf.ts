/**
 * OpenAPI v3 as protobuf: gnostic's openapi.v3.Document, one for each group version. gnostic.ts tells how the messages follow the document.
 *
 * Source: github.com/google/gnostic-models openapiv3/OpenAPIv3.proto, OpenAPIv3.go (defaults that are no scalars are empty)
 */
import { boolField, doubleField, nest, textField } from "../../protobuf/fields.ts";
import { BackwardWriter } from "../../protobuf/wire.ts";
import { anyValue, field, type Json, many, mapOf, message, type Message, writeField } from "./gnostic.ts";

/** What clients accept, in the two spellings that are about. */
export const OPENAPI_V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
export const OPENAPI_V3_PROTOBUF_OLD = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

/** `document`: as JSON has it. */
export function encodeOpenApiV3(document: object): Uint8Array {
  const writer = new BackwardWriter();
  documentMessage(writer, document);
  return writer.finish();
}

const reference = message([field(1, "$ref", "string"), field(3, "description", "string")]);

/** { the thing itself = 1 | reference = 2 } */
function orReference(type: Message): Message {
  return (writer, value) => ((value as Json)["$ref"] === undefined ? writeField(writer, 1, type, value) : writeField(writer, 2, reference, value));
}

/** A schema refers to schemas, so it is not a constant made of constants. */
const schemaOrReference = orReference((writer, value) => schema(writer, value));

function additionalProperties(writer: BackwardWriter, value: unknown): void {
  if (typeof value === "boolean") writeField(writer, 2, "bool", value);
  else writeField(writer, 1, schemaOrReference, value);
}

/** { number = 1 | boolean = 2 | string = 3 }; what is none of them leaves nothing. */
function defaultValue(writer: BackwardWriter, value: unknown): void {
  if (typeof value === "number" || typeof value === "bigint") doubleField(writer, 1, Number(value));
  else if (typeof value === "boolean") boolField(writer, 2, value);
  else if (typeof value === "string") textField(writer, 3, value);
}

const schema = message([
  field(1, "nullable", "bool"), field(7, "example", anyValue), field(9, "title", "string"), field(10, "multipleOf", "double"), field(11, "maximum", "double"), field(12, "exclusiveMaximum", "bool"),
  field(13, "minimum", "double"), field(14, "exclusiveMinimum", "bool"), field(15, "maxLength", "int64"), field(16, "minLength", "int64"), field(17, "pattern", "string"),
  field(18, "maxItems", "int64"), field(19, "minItems", "int64"), field(20, "uniqueItems", "bool"), field(21, "maxProperties", "int64"), field(22, "minProperties", "int64"),
  many(23, "required", "string"), many(24, "enum", anyValue), field(25, "type", "string"), many(26, "allOf", schemaOrReference), many(27, "oneOf", schemaOrReference), many(28, "anyOf", schemaOrReference),
  field(29, "not", (writer, value) => schema(writer, value)), field(30, "items", (writer, value) => writeField(writer, 1, schemaOrReference, value)), field(31, "properties", mapOf(1, schemaOrReference)),
  field(32, "additionalProperties", additionalProperties), field(33, "default", defaultValue), field(34, "description", "string"), field(35, "format", "string"),
], 36);

const content = mapOf(1, message([field(1, "schema", schemaOrReference)], 5));
const parameter = message([field(1, "name", "string"), field(2, "in", "string"), field(3, "description", "string"), field(4, "required", "bool"), field(10, "schema", schemaOrReference)], 14);
const requestBody = message([field(1, "description", "string"), field(2, "content", content), field(3, "required", "bool")], 4);
const response = message([field(1, "description", "string"), field(3, "content", content)], 5);

const operation = message([
  many(1, "tags", "string"), field(2, "summary", "string"), field(3, "description", "string"), field(5, "operationId", "string"), many(6, "parameters", orReference(parameter)),
  field(7, "requestBody", orReference(requestBody)), field(8, "responses", mapOf(2, orReference(response))), field(10, "deprecated", "bool"),
], 13);

const pathItem = message([
  field(2, "summary", "string"), field(3, "description", "string"), field(4, "get", operation), field(5, "put", operation), field(6, "post", operation), field(7, "delete", operation),
  field(8, "options", operation), field(9, "head", operation), field(10, "patch", operation), many(13, "parameters", orReference(parameter)),
], 14);

const securityScheme = message([field(1, "type", "string"), field(2, "description", "string"), field(3, "name", "string"), field(4, "in", "string")], 9);
const securityRequirement = mapOf(1, (writer, value) => { for (const item of (value as string[]).toReversed()) writeField(writer, 1, "string", item); });

const documentMessage = message([
  field(1, "openapi", "string"), field(2, "info", message([field(1, "title", "string"), field(2, "description", "string"), field(6, "version", "string")], 7)), field(4, "paths", mapOf(1, pathItem)),
  field(5, "components", (writer, value) => {
    const { schemas, securitySchemes } = value as { readonly schemas?: Json; readonly securitySchemes?: Json };
    if (securitySchemes) nest(writer, 7, () => mapOf(1, orReference(securityScheme))(writer, securitySchemes));
    if (schemas) nest(writer, 1, () => mapOf(1, schemaOrReference)(writer, schemas));
  }),
  many(6, "security", securityRequirement),
], 9);
