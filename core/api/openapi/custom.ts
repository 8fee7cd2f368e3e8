/**
 * OpenAPI schemas of custom resources: the version's own structural schema, with what every object has put in, and its list.
 *
 * v3 takes a structural schema as it is. v2 knows less of JSON Schema, so what it cannot say is left out: a validator that asks v2 then accepts more
 * than the server does, never less.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/controller/openapi/builder, .../openapi/v2/conversion.go
 */
import type { GroupVersionKind } from "../meta/gvk.ts";
import type { ResourceRow } from "../schema/resources.ts";
import { META, refPrefix, type Dialect, type Schema } from "./schema.ts";

/** A CustomResourceDefinition version's spec.versions[].schema.openAPIV3Schema. */
export type CustomSchema = Readonly<Record<string, unknown>>;

const API_VERSION: Schema = {
  type: "string",
  description: "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
};
const KIND: Schema = {
  type: "string",
  description: "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
};
const METADATA_TEXT = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA_TEXT = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/** "stable.example.com", "v1", "CronTab" → com.example.stable.v1.CronTab */
export function customTypeName({ group, version, kind }: GroupVersionKind): string { return `${group.split(".").reverse().join(".")}.${version}.${kind}`; }

/** The schemas of the custom rows and their lists, by name. They refer to ObjectMeta and ListMeta. */
export function customSchemas(rows: readonly ResourceRow[], schemas: ReadonlyMap<string, CustomSchema>, dialect: Dialect): Record<string, Schema> {
  const found: Record<string, Schema> = {};
  for (const row of rows.filter(({ custom }) => custom)) {
    const kind = { group: row.group, version: row.version, kind: row.kind };
    const listKind = { ...kind, kind: row.listKind ?? `${row.kind}List` };
    found[customTypeName(kind)] = objectSchema(kind, schemas.get(row.kind), dialect);
    found[customTypeName(listKind)] = listSchema(row, listKind, customTypeName(kind), dialect);
  }
  return found;
}

function objectSchema(kind: GroupVersionKind, schema: CustomSchema | undefined, dialect: Dialect): Schema {
  const named = { "x-kubernetes-group-version-kind": [kind] };
  // v2's readers take properties for the whole of an object, so one that keeps more must list none
  if (schema === undefined || (dialect === "v2" && schema["x-kubernetes-preserve-unknown-fields"] === true)) return { type: "object", ...named };
  const base = dialect === "v3" ? withEmbedded(schema, true) : simplified(withEmbedded(schema, true));
  return { ...base, type: "object", properties: { ...base.properties as object, apiVersion: API_VERSION, kind: KIND, metadata: metadata(dialect) }, ...named };
}

function listSchema(row: ResourceRow, listKind: GroupVersionKind, itemName: string, dialect: Dialect): Schema {
  return {
    description: `${listKind.kind} is a list of ${row.kind}`, type: "object", required: ["items"],
    properties: {
      apiVersion: API_VERSION,
      items: { description: `List of ${row.plural}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md`, type: "array", items: { $ref: refPrefix(dialect) + itemName } },
      kind: KIND,
      metadata: referring("ListMeta", LIST_METADATA_TEXT, dialect),
    },
    "x-kubernetes-group-version-kind": [listKind],
  };
}

function metadata(dialect: Dialect): Schema { return referring("ObjectMeta", METADATA_TEXT, dialect); }

function referring(name: string, description: string, dialect: Dialect): Schema {
  const ref = { $ref: refPrefix(dialect) + META + name };
  return dialect === "v3" ? { description, allOf: [ref] } : { description, ...ref };
}

/** An object inside that is a resource of its own has kind, apiVersion and metadata as well. */
function withEmbedded(schema: CustomSchema, root = false): Schema {
  const walked = mapChildren(schema, (child) => withEmbedded(child));
  if (root || schema["x-kubernetes-embedded-resource"] !== true) return walked;
  return { ...walked, properties: { ...walked["properties"] as object, apiVersion: API_VERSION, kind: KIND, metadata: { type: "object" } } };
}

/** What v2 cannot express, and what its readers misread. */
function simplified(schema: CustomSchema): Schema {
  const { oneOf: _oneOf, anyOf: _anyOf, not: _not, nullable, default: _default, ...kept } = mapChildren(schema, simplified);
  const { type: _type, items: _items, properties: _properties, ...untyped } = kept;
  // a null would not pass a type, and unknown fields would not pass a list of known ones
  if (nullable === true || schema["x-kubernetes-int-or-string"] === true) return untyped;
  if (schema["x-kubernetes-preserve-unknown-fields"] === true) return { ...untyped, ...(kept["type"] === undefined ? {} : { type: kept["type"] }) };
  return kept;
}

function mapChildren(schema: CustomSchema, map: (child: CustomSchema) => Schema): Schema {
  const { properties, items, additionalProperties } = schema as { properties?: Record<string, CustomSchema>; items?: CustomSchema; additionalProperties?: CustomSchema | boolean };
  return {
    ...schema,
    ...(properties ? { properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, map(child)])) } : {}),
    ...(items ? { items: map(items) } : {}),
    ...(typeof additionalProperties === "object" ? { additionalProperties: map(additionalProperties) } : {}),
  };
}
