/**
 * OpenAPI schemas of the built-in types, made from the facts. `dialect` is "v3" (components) or "v2" (definitions).
 *
 * v3 says more than v2: defaults, and `allOf` around a reference so that it can have a description. Property names are sorted, `required` is in
 * Go's order. Texts come from outside (see Descriptions): they are big, and few servers are ever asked for them.
 */
import type { GroupVersionKind } from "../meta/gvk.ts";
import type { Facts, FieldInfo, NamedType, Scalar, Special, StructType, Type } from "../schema/facts.ts";

export type Dialect = "v2" | "v3";

/** By OpenAPI type name, then by field name; "" is the type itself. */
export type Descriptions = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** A JSON Schema object as it will be sent. */
export type Schema = Record<string, unknown>;

export const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";
/** The one schema without facts: the body of a patch. */
export const PATCH = `${META}Patch`;

const SCALARS: Readonly<Record<Scalar, Schema>> = {
  string: { type: "string" }, bool: { type: "boolean" }, int32: { type: "integer", format: "int32" }, int64: { type: "integer", format: "int64" },
  float64: { type: "number", format: "double" }, bytes: { type: "string", format: "byte" },
};
/** v2 has no oneOf. */
const SPECIALS: Readonly<Record<Special, { readonly v2: Schema; readonly v3: Schema }>> = {
  time: same({ type: "string", format: "date-time" }), microTime: same({ type: "string", format: "date-time" }), duration: same({ type: "string" }),
  quantity: { v2: { type: "string" }, v3: { oneOf: [{ type: "string" }, { type: "number" }] } },
  intOrString: { v2: { type: "string", format: "int-or-string" }, v3: { format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] } },
  rawExtension: same({ type: "object" }), fieldsV1: same({ type: "object" }), json: same({}), any: same({}),
  schemaOrBool: same({}), schemaOrArray: same({}), schemaOrStringArray: same({}),
};
const ZEROS: Readonly<Record<Scalar, unknown>> = { string: "", bool: false, int32: 0, int64: 0, float64: 0, bytes: undefined };

/** Structs of which one member may be set, and the field that names it, if there is one. The facts do not tell it. */
const UNIONS: Readonly<Record<string, { readonly discriminator?: string; readonly fields: Readonly<Record<string, string>> }>> = {
  "io.k8s.api.core.v1.AppArmorProfile": { discriminator: "type", fields: { localhostProfile: "LocalhostProfile" } },
  "io.k8s.api.core.v1.PodSchedulingGroup": { fields: { podGroupName: "PodGroupName" } },
  "io.k8s.api.core.v1.SeccompProfile": { discriminator: "type", fields: { localhostProfile: "LocalhostProfile" } },
  "io.k8s.api.flowcontrol.v1.LimitResponse": { discriminator: "type", fields: { queuing: "Queuing" } },
  "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec": { discriminator: "type", fields: { exempt: "Exempt", limited: "Limited" } },
  "io.k8s.api.flowcontrol.v1.Subject": { discriminator: "kind", fields: { group: "Group", serviceAccount: "ServiceAccount", user: "User" } },
};

function same(schema: Schema): { readonly v2: Schema; readonly v3: Schema } { return { v2: schema, v3: schema }; }

export interface SchemaOptions {
  readonly facts: Facts;
  readonly dialect: Dialect;
  readonly descriptions: Descriptions;
  /** The kinds a type is registered as, told in x-kubernetes-group-version-kind. */
  readonly kindsOf: (typeName: string) => readonly GroupVersionKind[];
}

export function refPrefix(dialect: Dialect): string { return dialect === "v3" ? "#/components/schemas/" : "#/definitions/"; }

/** The schemas of `names` and of all they refer to, sorted by name. Names the facts do not know are left out. */
export function schemasOf(names: Iterable<string>, options: SchemaOptions): Record<string, Schema> {
  const found = new Map<string, Schema>();
  const wanted = [...names];
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    if (found.has(name)) continue;
    const schema = name === PATCH ? described({ type: "object" }, options.descriptions[PATCH]?.[""]) : typeSchema(name, options, wanted);
    if (schema) found.set(name, schema);
  }
  return Object.fromEntries([...found].sort(([a], [b]) => a < b ? -1 : 1));
}

function typeSchema(name: string, options: SchemaOptions, wanted: string[]): Schema | undefined {
  const type = options.facts.typeNamed(name);
  const text = options.descriptions[name]?.[""];
  if (type?.kind === "special") return described({ ...SPECIALS[type.special][options.dialect] }, text);
  if (type?.kind !== "struct") return undefined;
  const required = type.fields.filter(({ optional }) => !optional).map((field) => field.name);
  const properties = Object.fromEntries([...type.fields].sort((a, b) => a.name < b.name ? -1 : 1).map((field) => [field.name, fieldSchema(type, field, options, wanted)]));
  const kinds = options.kindsOf(name);
  return {
    ...(text ? { description: text } : {}), type: "object", ...(required.length > 0 ? { required } : {}),
    ...(type.fields.length > 0 ? { properties } : {}), ...(type.atomic ? { "x-kubernetes-map-type": "atomic" } : {}),
    ...(kinds.length > 0 ? { "x-kubernetes-group-version-kind": kinds } : {}), ...unionOf(name),
  };
}

function unionOf(name: string): Schema {
  const union = UNIONS[name];
  if (union === undefined) return {};
  return { "x-kubernetes-unions": [{ ...(union.discriminator === undefined ? {} : { discriminator: union.discriminator }), "fields-to-discriminateBy": union.fields }] };
}

function fieldSchema(owner: StructType, field: FieldInfo, options: SchemaOptions, wanted: string[]): Schema {
  const { type } = field;
  const values = enumOf(type);
  const text = options.descriptions[owner.name]?.[field.name] ?? embeddedText(owner, field, options.descriptions);
  const extensions = extensionsOf(field);
  const schema = valueSchema(type, options, wanted);
  if (options.dialect === "v2") return { ...described(schema, text), ...(values ? { enum: values } : {}), ...extensions };
  const fallback = defaultOf(field);
  const preset = fallback === undefined ? {} : { default: fallback };
  if (!("$ref" in schema)) return { ...described({ ...preset, ...schema }, text), ...(values ? { enum: values } : {}), ...extensions };
  return text === undefined && fallback === undefined && Object.keys(extensions).length === 0 ? schema : { ...described({ allOf: [schema], ...preset }, text), ...extensions };
}

/** The text of an inlined field stands with the struct it comes from. */
function embeddedText(owner: StructType, field: FieldInfo, descriptions: Descriptions): string | undefined {
  for (const { inline, type } of owner.members) {
    if (!inline || type.kind !== "struct" || type.field(field.name) !== field) continue;
    return descriptions[type.name]?.[field.name] ?? embeddedText(type, field, descriptions);
  }
  return undefined;
}

function described(schema: Schema, text: string | undefined): Schema { return text ? { description: text, ...schema } : schema; }

function valueSchema(type: Type, options: SchemaOptions, wanted: string[]): Schema {
  switch (type.kind) {
    case "scalar": return { ...SCALARS[type.scalar] };
    case "list": return { type: "array", items: itemSchema(type.items, options, wanted) };
    case "map": return { type: "object", additionalProperties: itemSchema(type.values, options, wanted) };
    case "struct": case "special":
      if (type.kind === "special" && type.special === "any") return { type: "object" };
      wanted.push(type.name);
      return { $ref: refPrefix(options.dialect) + type.name };
  }
}

function itemSchema(type: Type, options: SchemaOptions, wanted: string[]): Schema {
  const values = enumOf(type);
  return { ...valueSchema(type, options, wanted), ...(values ? { enum: values } : {}) };
}

function enumOf(type: Type): NamedType["enum"] { return type.kind === "scalar" ? type.named?.enum : undefined; }

/** What the declared default says, else what Go's zero value amounts to: {} for a struct in place, zero for what is always written. */
function defaultOf(field: FieldInfo): unknown {
  if (field.default !== undefined) return field.default;
  if (field.pointer) return undefined;
  if (field.type.kind === "struct") return {};
  return field.type.kind === "scalar" && !field.omitEmpty ? ZEROS[field.type.scalar] : undefined;
}

function extensionsOf(field: FieldInfo): Schema {
  return {
    ...(field.listMapKeys.length > 0 ? { "x-kubernetes-list-map-keys": field.listMapKeys } : {}),
    ...(field.listType ? { "x-kubernetes-list-type": field.listType } : {}),
    ...(field.mapType ? { "x-kubernetes-map-type": field.mapType } : {}),
    ...(field.patchMergeKey ? { "x-kubernetes-patch-merge-key": field.patchMergeKey } : {}),
    ...(field.patchStrategy.length > 0 ? { "x-kubernetes-patch-strategy": field.patchStrategy.join(",") } : {}),
  };
}
