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
const EMBEDDED_API_VERSION: Schema = {
  ...API_VERSION,
  description: "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
};
const EMBEDDED_KIND: Schema = { ...KIND, description: "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds" };
/** Of a schema and of its list. */
export const SELECTABLE = "x-kubernetes-selectable-fields";
const INT_OR_STRING = [{ type: "integer" }, { type: "string" }] as const;
const CLAUSES = ["allOf", "anyOf", "oneOf", "not"] as const;
const METADATA_TEXT = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA_TEXT = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/** "stable.example.com", "v1", "CronTab" → com.example.stable.v1.CronTab */
export function customTypeName({ group, version, kind }: GroupVersionKind): string { return `${group.split(".").reverse().join(".")}.${version}.${kind}`; }

/** The schemas of the custom rows and their lists, by what they are named. They refer to ObjectMeta and ListMeta. */
export function customSchemas(rows: readonly ResourceRow[], schemas: ReadonlyMap<string, CustomSchema>, dialect: Dialect, nameOf = customTypeName): Record<string, Schema> {
  const found: Record<string, Schema> = {};
  for (const row of rows.filter(({ custom }) => custom)) {
    const kind = { group: row.group, version: row.version, kind: row.kind };
    const listKind = { ...kind, kind: row.listKind ?? `${row.kind}List` };
    found[nameOf(kind)] = objectSchema(kind, schemas.get(row.kind), dialect);
    found[nameOf(listKind)] = { ...listSchema(row, listKind, nameOf(kind), dialect), ...selectableFields(schemas.get(row.kind)) };
  }
  return found;
}

function objectSchema(kind: GroupVersionKind, schema: CustomSchema | undefined, dialect: Dialect): Schema {
  const named = { "x-kubernetes-group-version-kind": [kind], ...selectableFields(schema) };
  // v2's readers take properties for the whole of an object, so one that keeps more must list none
  if (schema === undefined || (dialect === "v2" && schema["x-kubernetes-preserve-unknown-fields"] === true)) return { type: "object", ...named };
  const base = withEmbedded(dialect === "v3" ? unfolded(schema) : simplified(schema), dialect);
  const told = schema["x-kubernetes-embedded-resource"] === true ? { apiVersion: EMBEDDED_API_VERSION, kind: EMBEDDED_KIND } : { apiVersion: API_VERSION, kind: KIND };
  return { ...base, type: "object", properties: { ...base.properties as object, ...told, metadata: metadata(dialect) }, ...named };
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

/** What field selectors may name. The definition has it beside the schema; whoever hands us the schema has put it in. */
function selectableFields(schema: CustomSchema | undefined): Schema { return schema?.[SELECTABLE] ? { [SELECTABLE]: schema[SELECTABLE] } : {}; }

/** An object inside that is a resource of its own has kind, apiVersion and metadata as well. */
function withEmbedded(schema: CustomSchema, dialect: Dialect): Schema {
  const walked = mapChildren(schema, (child) => withEmbedded(child, dialect));
  // with only these three listed, v2's readers would refuse the rest
  if (schema["x-kubernetes-embedded-resource"] !== true || (dialect === "v2" && schema["x-kubernetes-preserve-unknown-fields"] === true)) return walked;
  return {
    ...walked,
    properties: { ...walked["properties"] as object, apiVersion: EMBEDDED_API_VERSION, kind: EMBEDDED_KIND, metadata: metadata(dialect) },
    required: [...new Set([...requiredOf(walked), "kind", "apiVersion"])],
  };
}

/** Says in JSON Schema's words what x-kubernetes-int-or-string means. */
function unfolded(schema: CustomSchema): Schema {
  const walked = { ...mapChildren(schema, unfolded), ...clausesOf(schema) };
  if (schema["x-kubernetes-int-or-string"] !== true) return walked;
  const { anyOf, allOf = [] } = walked as { anyOf?: readonly CustomSchema[]; allOf?: readonly CustomSchema[] };
  if (isIntOrString(anyOf) || isIntOrString(allOf[0]?.["anyOf"])) return walked;
  return anyOf === undefined ? { ...walked, anyOf: INT_OR_STRING } : { ...walked, allOf: [{ anyOf: INT_OR_STRING }, ...allOf] };
}

/** What is said of fields that no clause names is not told of clauses. */
function clausesOf(schema: CustomSchema): Schema {
  const plain = (clause: CustomSchema): Schema => {
    const { additionalProperties: _, ...kept } = mapChildren(clause, plain);
    return { ...kept, ...clausesOf(kept) };
  };
  return Object.fromEntries(CLAUSES.flatMap((name) => {
    const clause = schema[name];
    if (clause === undefined) return [];
    return [[name, Array.isArray(clause) ? (clause as CustomSchema[]).map(plain) : plain(clause as CustomSchema)]];
  }));
}

function isIntOrString(anyOf: unknown): boolean {
  return Array.isArray(anyOf) && anyOf.length === 2 && INT_OR_STRING.every(({ type }, at) => isOnlyType(anyOf[at] as CustomSchema, type));
}
function isOnlyType(schema: CustomSchema, type: string): boolean { return schema["type"] === type && Object.keys(schema).length === 1; }

/** What v2 cannot express, and what its readers misread. */
function simplified(schema: CustomSchema): Schema {
  const { allOf: _allOf, oneOf: _oneOf, anyOf: _anyOf, not: _not, nullable, default: _default, required: _required, ...kept } = mapChildren(schema, simplified);
  const { type, items: _items, properties: _properties, ...untyped } = kept;
  const preserves = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const required = requiredInV2(schema, { listed: nullable !== true && !preserves });
  const demanding = required.length > 0 ? { required } : {};
  // a null would not pass a type, and unknown fields would not pass a list of known ones
  if (nullable === true) return { ...untyped, ...demanding };
  if (preserves) return { ...untyped, ...demanding, ...(type === undefined || type === "object" || type === "array" ? {} : { type }) };
  return { ...kept, ...demanding };
}

/** To v2's readers null is the same as absent, so what may be null cannot be asked for, where its properties are `listed`. */
function requiredInV2(schema: CustomSchema, { listed }: { readonly listed: boolean }): readonly string[] {
  const { properties = {}, additionalProperties } = schema as { properties?: Record<string, CustomSchema>; additionalProperties?: CustomSchema | boolean };
  if (typeof additionalProperties === "object" && additionalProperties["nullable"] === true) return [];
  return requiredOf(schema).filter((name) => !listed || properties[name]?.["nullable"] !== true);
}

function requiredOf(schema: CustomSchema): readonly string[] { return (schema["required"] ?? []) as readonly string[]; }

function mapChildren(schema: CustomSchema, map: (child: CustomSchema) => Schema): Schema {
  const { properties, items, additionalProperties } = schema as { properties?: Record<string, CustomSchema>; items?: CustomSchema; additionalProperties?: CustomSchema | boolean };
  return {
    ...schema,
    ...(properties ? { properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, map(child)])) } : {}),
    ...(items ? { items: map(items) } : {}),
    ...(typeof additionalProperties === "object" ? { additionalProperties: map(additionalProperties) } : {}),
  };
}
