/**
 * Versions of a definition, and schemas, as errors show them: with all fields of the API server's own structs, under Go's names, and without what all
 * versions share, which it keeps once beside them.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apis/apiextensions/{types,types_jsonschema}.go, v1/conversion.go
 */
import { inKeyOrder } from "../../api/codec/json-document.ts";
import type { CustomResourceDefinitionVersion, CustomResourceSubresources, JSONSchemaProps } from "../../api/gen/apiextensions.v1.ts";
import { additionalOf, itemsOf } from "./structural.ts";

type Schema = Readonly<JSONSchemaProps>;
type Field = readonly [go: string, json: keyof JSONSchemaProps, zero: "" | false | null, form?: (value: never) => unknown];

const each = (schemas: readonly Schema[]): unknown => schemas.map(shownSchema);
const named = (schemas: Readonly<Record<string, Schema>>): unknown => mapped(schemas, shownSchema);

/** In the order of the server's struct. */
const FIELDS: readonly Field[] = [
  ["ID", "id", ""], ["Schema", "$schema", ""], ["Ref", "$ref", null], ["Description", "description", ""], ["Type", "type", ""], ["Nullable", "nullable", false],
  ["Format", "format", ""], ["Title", "title", ""], ["Default", "default", null, inKeyOrder],
  ["Maximum", "maximum", null], ["ExclusiveMaximum", "exclusiveMaximum", false], ["Minimum", "minimum", null], ["ExclusiveMinimum", "exclusiveMinimum", false], ["MaxLength", "maxLength", null], ["MinLength", "minLength", null],
  ["Pattern", "pattern", ""], ["MaxItems", "maxItems", null], ["MinItems", "minItems", null], ["UniqueItems", "uniqueItems", false], ["MultipleOf", "multipleOf", null], ["Enum", "enum", null, inKeyOrder], ["MaxProperties", "maxProperties", null],
  ["MinProperties", "minProperties", null], ["Required", "required", null], ["Items", "items", null, shownItems],
  ["AllOf", "allOf", null, each], ["OneOf", "oneOf", null, each], ["AnyOf", "anyOf", null, each], ["Not", "not", null, shownSchema], ["Properties", "properties", null, named], ["AdditionalProperties", "additionalProperties", null, orBool],
  ["PatternProperties", "patternProperties", null, named],
  ["Dependencies", "dependencies", null, (parts: Readonly<Record<string, unknown>>) => mapped(parts, (part) => ({ Schema: shownOrNull(itemsOf({ items: part })), Property: Array.isArray(part) ? part : null }))],
  ["AdditionalItems", "additionalItems", null, orBool], ["Definitions", "definitions", null, named],
  ["ExternalDocs", "externalDocs", null, ({ description = "", url = "" }: NonNullable<JSONSchemaProps["externalDocs"]>) => ({ Description: description, URL: url })],
  ["Example", "example", null, inKeyOrder], ["XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", null], ["XEmbeddedResource", "x-kubernetes-embedded-resource", false], ["XIntOrString", "x-kubernetes-int-or-string", false],
  ["XListMapKeys", "x-kubernetes-list-map-keys", null], ["XListType", "x-kubernetes-list-type", null], ["XMapType", "x-kubernetes-map-type", null], ["XValidations", "x-kubernetes-validations", null, shownRules],
];

export function shownSchema(schema: Schema): object {
  return Object.fromEntries(FIELDS.map(([go, json, zero, form]) => [go, schema[json] === undefined || schema[json] === null ? zero : form ? form(schema[json] as never) : schema[json]]));
}

export function shownItems(items: Schema | readonly Schema[]): object { return { Schema: shownOrNull(itemsOf({ items })), JSONSchemas: Array.isArray(items) ? each(items) : null }; }
function shownOrNull(schema: Schema | undefined): unknown { return schema ? shownSchema(schema) : null; }
function orBool(given: unknown): unknown { return { Allows: given !== false, Schema: shownOrNull(additionalOf({ additionalProperties: given })) }; }
function mapped<T>(map: Readonly<Record<string, T>>, form: (value: T) => unknown): unknown { return Object.fromEntries(Object.keys(map).sort().map((name) => [name, form(map[name]!)])); }

function shownRules(rules: NonNullable<JSONSchemaProps["x-kubernetes-validations"]>): unknown {
  return rules.map(({ rule = "", message = "", messageExpression = "", reason = null, fieldPath = "", optionalOldSelf = null }) => ({
    Rule: rule, Message: message, MessageExpression: messageExpression, Reason: reason, FieldPath: fieldPath, OptionalOldSelf: optionalOldSelf,
  }));
}

/** `isShared`: whether all versions have the same in a field. */
export function shownVersions(versions: readonly CustomResourceDefinitionVersion[], isShared: (part: keyof CustomResourceDefinitionVersion) => boolean): unknown {
  const own = <K extends keyof CustomResourceDefinitionVersion>(version: CustomResourceDefinitionVersion, part: K): CustomResourceDefinitionVersion[K] | undefined => isShared(part) ? undefined : version[part];
  return versions.map((version) => {
    const schema = own(version, "schema"), subresources = own(version, "subresources");
    return {
      Name: version.name ?? "", Served: version.served ?? false, Storage: version.storage ?? false, Deprecated: version.deprecated ?? false, DeprecationWarning: version.deprecationWarning ?? null,
      Schema: schema ? { OpenAPIV3Schema: shownOrNull(schema.openAPIV3Schema) } : null,
      Subresources: subresources ? shownSubresources(subresources) : null,
      AdditionalPrinterColumns: own(version, "additionalPrinterColumns")?.map(({ name = "", type = "", format = "", description = "", priority = 0, jsonPath = "" }) => ({
        Name: name, Type: type, Format: format, Description: description, Priority: priority, JSONPath: jsonPath,
      })) ?? null,
      SelectableFields: own(version, "selectableFields")?.map(({ jsonPath = "" }) => ({ JSONPath: jsonPath })) ?? null,
    };
  });
}

function shownSubresources({ status, scale }: CustomResourceSubresources): unknown {
  return { Status: status ?? null, Scale: scale ? { SpecReplicasPath: scale.specReplicasPath ?? "", StatusReplicasPath: scale.statusReplicasPath ?? "", LabelSelectorPath: scale.labelSelectorPath ?? null } : null };
}
