/**
 * Schemas of custom resources, from the structural OpenAPI of their CustomResourceDefinition.
 *
 *   customResourceSchema(version.schema?.openAPIV3Schema, { apiVersion: "example.com/v1", kind: "Widget" })
 *
 * x-kubernetes-list-type, -list-map-keys, -map-type, -preserve-unknown-fields, -int-or-string and -embedded-resource say how parts merge.
 * metadata is ObjectMeta, whatever the definition says of it.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/controller/openapi/builder, k8s.io/kube-openapi/pkg/schemaconv
 */
import type { JSONSchemaProps } from "../gen/apiextensions.v1.ts";
import { builtInSchemas } from "./facts-schema.ts";
import { isMap } from "./json-value.ts";
import { ANYTHING, ANYTHING_ATOMIC, type FieldSchema, type MapSchema, mapNode, type ObjectSchema, type ScalarKind, scalarNode, type SchemaNode } from "./schema.ts";

type Definition = Readonly<JSONSchemaProps>;

const STRING = scalarNode("string");
const SCALARS: Readonly<Record<string, ScalarKind>> = { string: "string", integer: "numeric", number: "numeric", boolean: "boolean" };

/** Without a definition anything goes. */
export function customResourceSchema(definition: Definition | undefined, { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): ObjectSchema {
  const root = definition === undefined ? mapNode(objectMap({ "x-kubernetes-preserve-unknown-fields": true }, true)) : mapNode(objectMap(definition, true));
  return { root, empty: Object.freeze({ apiVersion, kind }), strategic: false, changeable: true };
}

function nodeOf(definition: Definition): SchemaNode {
  if (definition["x-kubernetes-int-or-string"]) return scalarNode("untyped");
  const scalar = SCALARS[definition.type ?? ""];
  if (scalar !== undefined) return scalarNode(scalar);
  if (definition.type === "array") {
    const listType = definition["x-kubernetes-list-type"] ?? "atomic";
    const items = isMap(definition.items) ? nodeOf(definition.items as Definition) : ANYTHING_ATOMIC;
    const keys = listType === "map" ? (definition["x-kubernetes-list-map-keys"] ?? []).toSorted() : [];
    return { scalar: undefined, map: undefined, list: { atomic: listType !== "map" && listType !== "set", keys, items } };
  }
  if (definition.type === "object") return mapNode(objectMap(definition, definition["x-kubernetes-embedded-resource"] === true));
  return definition["x-kubernetes-preserve-unknown-fields"] ? ANYTHING : ANYTHING_ATOMIC;
}

/** `resource`: an object of the API, so it has a type and metadata. */
function objectMap(definition: Definition, resource: boolean): MapSchema {
  const { properties = {}, additionalProperties } = definition;
  const fields = new Map<string, FieldSchema>();
  const field = (node: SchemaNode, byDefault?: unknown): FieldSchema => ({ node, default: byDefault, patchStrategy: undefined, patchMergeKey: undefined });
  for (const [name, property] of Object.entries(properties)) fields.set(name, field(nodeOf(property), property.default));
  if (resource) {
    fields.set("apiVersion", field(STRING));
    fields.set("kind", field(STRING));
    fields.set("metadata", field(builtInSchemas.objectMeta()));
  }
  return {
    atomic: definition["x-kubernetes-map-type"] === "atomic", goKind: fields.size > 0 ? "struct" : "map", name: "",
    field: (name) => fields.get(name), element: elementOf(definition, additionalProperties, fields.size),
  };
}

/** What keys that are no properties hold. An object that says nothing of its keys may have any. */
function elementOf(definition: Definition, additional: unknown, fieldCount: number): SchemaNode | undefined {
  if (isMap(additional)) return nodeOf(additional as Definition);
  return additional === true || definition["x-kubernetes-preserve-unknown-fields"] || fieldCount === 0 ? ANYTHING : undefined;
}
