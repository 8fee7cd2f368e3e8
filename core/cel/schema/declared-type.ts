/**
 * The type of what a JSON schema describes, with how large it can be: nothing is larger than a request.
 *
 *   const declared = declaredType(schema, { root: true });
 *   environment.with({ variables: { self: declared.type }, structs: structsOf(declared) })
 *   estimate(compiled, sizesOf(declared))
 *
 * Schemas are those of CustomResourceDefinitions or of OpenAPI v3 with references resolved.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/{types,limits}.go, common/schemas.go
 */
import type { JSONSchemaProps } from "../../api/gen/apiextensions.v1.ts";
import type { StructTypes } from "../check/declarations.ts";
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, listOf, mapOf, struct, type Type } from "../check/type.ts";
import type { SizeOf } from "../cost/call-estimate.ts";
import { REQUEST_BYTES_MAX } from "../kubernetes.ts";
import { escapeName, isReserved } from "./escape.ts";

export type JsonSchema = Readonly<JSONSchemaProps>;

export interface DeclaredType {
  readonly type: Type;
  /** By the names expressions write. Of objects. */
  readonly fields?: ReadonlyMap<string, DeclaredType>;
  /** Of lists and maps. */
  readonly element?: DeclaredType;
  readonly isMap?: boolean;
  /** How many elements, characters or entries it can have. */
  readonly maxElements: number;
  /** How many bytes of JSON it takes at least. */
  readonly minSize: number;
}

const LENGTH_MAX = REQUEST_BYTES_MAX - 2;
const BYTES_PER_CHARACTER = 4;
const [DURATION_LENGTH, TIME_LENGTH, DATE_LENGTH] = [32, 32, 12];
const [MIN_STRING, MIN_DURATION, MIN_DATE, MIN_TIME, MIN_BOOL, MIN_AGGREGATE] = [2, 3, 12, 21, 4, 2];

const SCALARS: ReadonlyMap<string, DeclaredType> = new Map([
  ["boolean", { type: BOOL, maxElements: 0, minSize: MIN_BOOL }], ["number", { type: DOUBLE, maxElements: 0, minSize: 1 }], ["integer", { type: INT, maxElements: 0, minSize: 1 }],
]);
/** Those that are known: one may be called anything. */
const FORMATS: ReadonlyMap<string, DeclaredType> = new Map([
  ["duration", { type: DURATION, maxElements: DURATION_LENGTH, minSize: MIN_DURATION }], ["date", { type: TIMESTAMP, maxElements: DATE_LENGTH, minSize: MIN_DATE }],
  ["date-time", { type: TIMESTAMP, maxElements: TIME_LENGTH, minSize: MIN_TIME }],
]);
const TEXT: JsonSchema = { type: "string" };
const OBJECT_META: JsonSchema = { type: "object", properties: { name: TEXT, generateName: TEXT } };

/** Of a resource, or of one inside another: says at least that it has apiVersion, kind and a name. */
export function withObjectMeta(schema: JsonSchema): JsonSchema {
  const { kind, apiVersion, metadata } = schema.properties ?? {};
  const known = kind?.type === "string" && apiVersion?.type === "string" && metadata?.type === "object" && metadata.properties?.["name"]?.type === "string" && metadata.properties["generateName"]?.type === "string";
  return known ? schema : { ...schema, properties: { ...schema.properties, kind: TEXT, apiVersion: TEXT, metadata: OBJECT_META } };
}

export function itemsOf({ items }: JsonSchema): JsonSchema | undefined { return Array.isArray(items) ? undefined : (items as JsonSchema | undefined); }
export function additionalOf({ additionalProperties }: JsonSchema): JsonSchema | undefined {
  return typeof additionalProperties === "object" && additionalProperties !== null ? (additionalProperties as JsonSchema) : undefined;
}
export function isEmbedded(schema: JsonSchema): boolean { return schema["x-kubernetes-embedded-resource"] === true; }

/**
 * `root`: whether it is a resource. `name`: of the type, as messages show it. Undefined for what expressions cannot be about: of no type.
 */
export function declaredType(schema: JsonSchema, { root = false, name = "selfType" }: { readonly root?: boolean; readonly name?: string } = {}): DeclaredType | undefined {
  if (schema["x-kubernetes-int-or-string"] === true) return { type: DYN, maxElements: schema.maxLength === undefined ? LENGTH_MAX : charactersOf(schema.maxLength), minSize: 1 };
  const described = root ? withObjectMeta(schema) : schema;
  switch (described.type) {
    case "array": return listType(described, name);
    case "object": return additionalOf(described) ? mapType(described, name) : objectType(described, name);
    case "string": return stringType(described);
    default: return SCALARS.get(described.type ?? "");
  }
}

function listType(schema: JsonSchema, name: string): DeclaredType | undefined {
  const items = itemsOf(schema);
  const element = items && declaredType(items, { root: isEmbedded(items), name: `${name}.@idx` });
  if (!element) return undefined;
  const maxElements = schema.maxItems === undefined ? Math.floor(LENGTH_MAX / (element.minSize + 1)) : elementsOf(schema.maxItems);
  return { type: listOf(element.type), element, maxElements, minSize: MIN_AGGREGATE };
}

function mapType(schema: JsonSchema, name: string): DeclaredType | undefined {
  const additional = additionalOf(schema)!;
  const element = declaredType(additional, { root: isEmbedded(additional), name: `${name}.@elem` });
  if (!element) return undefined;
  const maxElements = schema.maxProperties === undefined ? Math.floor(LENGTH_MAX / (element.minSize + 6)) : elementsOf(schema.maxProperties);
  return { type: mapOf(STRING, element.type), element, isMap: true, maxElements, minSize: MIN_AGGREGATE };
}

function objectType(schema: JsonSchema, name: string): DeclaredType {
  const fields = new Map<string, DeclaredType>();
  const required = new Set(schema.required ?? []);
  let minSize = MIN_AGGREGATE;
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    const written = escapeName(key);
    const field = declaredType(property, { root: isEmbedded(property), name: `${name}.${written ?? key}` });
    if (!field) continue;
    if (written !== undefined) fields.set(written, field);
    if (required.has(key) && (property.default === undefined || property.default === null)) minSize += Buffer.byteLength(key) + field.minSize + 4;
  }
  return { type: struct(name), fields, maxElements: 0, minSize };
}

function stringType(schema: JsonSchema): DeclaredType {
  const format = FORMATS.get(schema.format ?? "");
  if (format) return format;
  if (schema.format === "byte") return { type: BYTES, maxElements: schema.maxLength === undefined ? LENGTH_MAX : elementsOf(schema.maxLength), minSize: MIN_STRING };
  return { type: STRING, maxElements: lengthOf(schema), minSize: MIN_STRING };
}

function lengthOf({ maxLength, enum: values }: JsonSchema): number {
  if (maxLength !== undefined) return charactersOf(maxLength);
  if (!values || values.length === 0) return LENGTH_MAX;
  return Math.max(0, ...values.map((value) => (typeof value === "string" ? Buffer.byteLength(value) : 0)));
}

function charactersOf(maxLength: number): number { return elementsOf(maxLength, BYTES_PER_CHARACTER); }

/** As Go reckons and its estimates read it: in 64 bits, without a sign. What no double holds is a bigint. */
function elementsOf(most: number | bigint, each = 1): number { return most <= 0 ? 0 : Number(BigInt.asUintN(64, BigInt(most) * BigInt(each))); }

/** The types of all objects in it. */
export function structsOf(...roots: readonly DeclaredType[]): StructTypes {
  const structs = new Map<string, ReadonlyMap<string, DeclaredType>>();
  const collect = ({ type, fields, element }: DeclaredType): void => {
    if (fields) structs.set(type.name, fields);
    for (const field of fields?.values() ?? []) collect(field);
    if (element) collect(element);
  };
  roots.forEach(collect);
  return {
    has: (name) => structs.has(name),
    // After a dot, words of the language may stand as they are.
    field: (name, field) => (structs.get(name)?.get(field) ?? (isReserved(field) ? structs.get(name)?.get(escapeName(field)!) : undefined))?.type,
  };
}

/** How large what is found on a path that begins with a variable of the type can be. */
export function sizesOf(root: DeclaredType): SizeOf {
  return ({ path = [] }) => {
    if (path.length === 0) return undefined;
    let found: DeclaredType | "key" | undefined = root;
    for (const name of path.slice(1)) {
      if (found === undefined || found === "key") return undefined;
      if (name === "@items" || name === "@values") found = found.element;
      else if (name === "@keys") found = found.isMap ? "key" : undefined;
      else found = found.fields?.get(name);
    }
    if (found === undefined) return undefined;
    return { min: 0n, max: BigInt(found === "key" ? 0 : found.maxElements) };
  };
}
