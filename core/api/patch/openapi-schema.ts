/**
 * Schemas of custom resources, from the structural OpenAPI of their CustomResourceDefinition.
 *
 *   customResourceSchema(version.schema?.openAPIV3Schema, { apiVersion: "example.com/v1", kind: "Widget" })
 *
 * x-kubernetes-list-type, -list-map-keys, -map-type, -preserve-unknown-fields, -int-or-string and -embedded-resource say how parts merge.
 * What preserves unknown fields lets all below it have any, though they are pruned there. metadata is ObjectMeta, whatever the definition says of it.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/controller/openapi/builder, k8s.io/kube-openapi/pkg/schemaconv
 */
import type { JSONSchemaProps } from "../gen/apiextensions.v1.ts";
import { builtInSchemas } from "./facts-schema.ts";
import { isMap } from "./json-value.ts";
import { ANYTHING, ANYTHING_ATOMIC, type FieldSchema, type ListSchema, type MapSchema, mapNode, type ObjectSchema, type ScalarKind, scalarNode, type SchemaNode } from "./schema.ts";

type Definition = Readonly<JSONSchemaProps>;

const STRING = scalarNode("string");
const SCALARS: Readonly<Record<string, ScalarKind>> = { string: "string", integer: "numeric", number: "numeric", boolean: "boolean" };

/** A string of any other format may be written as any scalar while it is merged: that it is no string is found out later. */
const PLAIN_FORMATS: ReadonlySet<string> = new Set(["", "byte"]);

/** Without a definition anything goes. */
export function customResourceSchema(definition: Definition | undefined, { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): ObjectSchema {
  const root = definition === undefined ? mapNode(objectMap({}, { resource: true, lax: true })) : mapNode(objectMap(definition, { resource: true, lax: preserves(definition) }));
  return { root, empty: Object.freeze({ apiVersion, kind }), strategic: false, changeable: true };
}

function preserves(definition: Definition): boolean { return definition["x-kubernetes-preserve-unknown-fields"] === true; }

/** `outer`: something around it preserves unknown fields. */
function nodeOf(definition: Definition, outer: boolean): SchemaNode {
  const lax = outer || preserves(definition);
  const scalar = SCALARS[definition.type ?? ""];
  if (scalar !== undefined) return scalarNode(scalar === "string" && !PLAIN_FORMATS.has(definition.format ?? "") ? "untyped" : scalar); // of a number or a text, too, if it says which
  if (definition["x-kubernetes-int-or-string"]) return ANYTHING_ATOMIC; // that it is neither is found out later
  if (definition.type === "array") return { scalar: undefined, map: undefined, list: listOf(definition, lax) };
  const resource = definition["x-kubernetes-embedded-resource"] === true;
  if (definition.type === "object") return mapNode(objectMap(definition, { resource, lax }));
  if (!preserves(definition)) return ANYTHING_ATOMIC;
  const { properties, additionalProperties, items } = definition; // of what is of no type they still say what is in it
  return properties || additionalProperties || items ? { ...ANYTHING, map: objectMap(definition, { resource, lax }), list: listOf(definition, lax) } : ANYTHING;
}

function listOf(definition: Definition, lax: boolean): ListSchema {
  const listType = definition["x-kubernetes-list-type"] ?? "atomic";
  const items = isMap(definition.items) ? nodeOf(definition.items as Definition, lax) : ANYTHING_ATOMIC;
  const keysAsDefined = listType === "map" ? definition["x-kubernetes-list-map-keys"] ?? [] : [];
  return { atomic: listType !== "map" && listType !== "set", keys: keysAsDefined.toSorted(), keysAsDefined, items };
}

interface ObjectTraits {
  /** An object of the API, so it has a type and metadata. */
  readonly resource: boolean;
  /** It, or something around it, preserves unknown fields. */
  readonly lax: boolean;
}

function objectMap(definition: Definition, { resource, lax }: ObjectTraits): MapSchema {
  const { properties = {}, additionalProperties } = definition;
  const fields = new Map<string, FieldSchema>();
  const field = (node: SchemaNode, byDefault?: unknown): FieldSchema => ({ node, default: byDefault, patchStrategy: undefined, patchMergeKey: undefined });
  for (const [name, property] of Object.entries(properties)) fields.set(name, field(nodeOf(property, lax), property.default));
  if (resource) {
    fields.set("apiVersion", field(STRING));
    fields.set("kind", field(STRING));
    fields.set("metadata", field(builtInSchemas.objectMeta()));
  }
  return {
    atomic: definition["x-kubernetes-map-type"] === "atomic", goKind: fields.size > 0 ? "struct" : "map", name: "",
    field: (name) => fields.get(name), element: elementOf(additionalProperties, { fieldCount: fields.size, lax }),
  };
}

/** What keys that are no properties hold. An object that says nothing of its keys may have any. */
function elementOf(additional: unknown, { fieldCount, lax }: { readonly fieldCount: number; readonly lax: boolean }): SchemaNode | undefined {
  if (isMap(additional)) return nodeOf(additional as Definition, lax);
  if (typeof additional === "boolean") return additional ? ANYTHING : undefined;
  return lax || fieldCount === 0 ? ANYTHING : undefined;
}
