/**
 * OpenAPI v2 as protobuf: gnostic's openapi.v2.Document, which client-go's OpenAPISchema() accepts and nothing else.
 *
 * gnostic.ts tells how the messages follow the document.
 *
 * Source: github.com/google/gnostic-models openapiv2/OpenAPIv2.proto
 */
import type { Breathe } from "../../lifecycle/breather.ts";
import { nest } from "../../protobuf/fields.ts";
import { BackwardWriter } from "../../protobuf/wire.ts";
import { anyValue, field, type Json, many, mapOf, message, type Message, writeField } from "./gnostic.ts";
import type { Swagger } from "./v2.ts";

/** What clients accept, in the two spellings that are about. */
export const OPENAPI_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
export const OPENAPI_V2_PROTOBUF_OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

export async function encodeOpenApiV2(document: Swagger, breathe: Breathe): Promise<Uint8Array> {
  const [paths, definitions] = [await encodedMap(PATHS_OF, document.paths, breathe), await encodedMap(DEFINITIONS_OF, document.definitions, breathe)];
  const writer = new BackwardWriter();
  documentMessage(writer, { ...document, paths, definitions });
  return writer.finish();
}

/** One named value after the other: there are thousands of them. */
async function encodedMap(entries: Message, map: object, breathe: Breathe): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  const writer = new BackwardWriter();
  for (const [name, value] of Object.entries(map)) {
    entries(writer, { [name]: value });
    parts.push(writer.take());
    await breathe();
  }
  return Buffer.concat(parts);
}

/** A schema refers to schemas, so it is not a constant made of constants. */
function schemaMessage(writer: BackwardWriter, value: unknown): void { schemaFields(writer, value); }

function additionalProperties(writer: BackwardWriter, value: unknown): void {
  if (typeof value === "boolean") writeField(writer, 2, "bool", value);
  else writeField(writer, 1, schemaMessage, value);
}

/** "object", or ["object"]. */
function typeItem(writer: BackwardWriter, value: unknown): void { for (const type of [value].flat().toReversed() as string[]) writeField(writer, 1, "string", type); }

const schemaFields = message([
  field(1, "$ref", "string"), field(2, "format", "string"), field(3, "title", "string"), field(4, "description", "string"), field(5, "default", anyValue),
  field(6, "multipleOf", "double"), field(7, "maximum", "double"), field(8, "exclusiveMaximum", "bool"), field(9, "minimum", "double"), field(10, "exclusiveMinimum", "bool"),
  field(11, "maxLength", "int64"), field(12, "minLength", "int64"), field(13, "pattern", "string"), field(14, "maxItems", "int64"), field(15, "minItems", "int64"),
  field(16, "uniqueItems", "bool"), field(17, "maxProperties", "int64"), field(18, "minProperties", "int64"), many(19, "required", "string"), many(20, "enum", anyValue),
  field(21, "additionalProperties", additionalProperties), field(22, "type", typeItem), field(23, "items", (writer, items) => writeField(writer, 1, schemaMessage, items)),
  many(24, "allOf", schemaMessage), field(25, "properties", mapOf(1, schemaMessage)), field(30, "example", anyValue),
], 31);

const response = message([field(1, "description", "string"), field(2, "schema", (writer, schema) => writeField(writer, 1, schemaMessage, schema))], 5);
const bodyParameter = message([field(1, "description", "string"), field(2, "name", "string"), field(3, "in", "string"), field(4, "required", "bool"), field(5, "schema", schemaMessage)], 6);
const queryParameter = message([
  field(1, "required", "bool"), field(2, "in", "string"), field(3, "description", "string"), field(4, "name", "string"), field(6, "type", "string"), field(20, "uniqueItems", "bool"),
], 23);
const pathParameter = message([
  field(1, "required", "bool"), field(2, "in", "string"), field(3, "description", "string"), field(4, "name", "string"), field(5, "type", "string"), field(19, "uniqueItems", "bool"),
], 22);

/** Parameter { body_parameter = 1 | non_body_parameter = 2 { query = 3 | path = 4 } } */
function parameter(writer: BackwardWriter, value: unknown): void {
  const where = (value as Json)["in"];
  if (where === "body") writeField(writer, 1, bodyParameter, value);
  else nest(writer, 2, () => where === "path" ? writeField(writer, 4, pathParameter, value) : writeField(writer, 3, queryParameter, value));
}

const reference = message([field(1, "$ref", "string")]);

/** ParametersItem { parameter = 1 | json_reference = 2 } */
function parametersItem(writer: BackwardWriter, value: unknown): void {
  if ("$ref" in (value as Json)) writeField(writer, 2, reference, value);
  else writeField(writer, 1, parameter, value);
}

const operation = message([
  many(1, "tags", "string"), field(3, "description", "string"), field(5, "operationId", "string"), many(6, "produces", "string"), many(7, "consumes", "string"),
  many(8, "parameters", parametersItem), field(9, "responses", mapOf(1, (writer, value) => writeField(writer, 1, response, value))), many(10, "schemes", "string"),
], 13);

const pathItem = message([
  field(2, "get", operation), field(3, "put", operation), field(4, "post", operation), field(5, "delete", operation), field(6, "options", operation),
  field(7, "head", operation), field(8, "patch", operation), many(9, "parameters", parametersItem),
], 10);

const apiKey = message([field(1, "type", "string"), field(2, "name", "string"), field(3, "in", "string"), field(4, "description", "string")], 5);
const stringArray: Message = (writer, value) => { for (const item of (value as string[]).toReversed()) writeField(writer, 1, "string", item); };

const PATHS_OF = mapOf(2, pathItem);
const DEFINITIONS_OF = mapOf(1, schemaMessage);
/** What has been encoded already. */
const encoded: Message = (writer, value) => writer.raw(value as Uint8Array);

const documentMessage = message([
  field(1, "swagger", "string"), field(2, "info", message([field(1, "title", "string"), field(2, "version", "string")], 7)),
  field(8, "paths", encoded), field(9, "definitions", encoded), field(10, "parameters", mapOf(1, parameter)), many(12, "security", mapOf(1, stringArray)),
  field(13, "securityDefinitions", mapOf(1, (writer, value) => writeField(writer, 2, apiKey, value))),
], 16);
