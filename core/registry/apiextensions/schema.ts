/**
 * What an OpenAPI schema of a custom resource may say, beyond being structural.
 *
 * Rules (x-kubernetes-validations) must compile and may cost only so much; that is looked at where nothing else is wrong.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go ValidateCustomResourceDefinitionOpenAPISchema
 */
import { child, type FieldError, forbidden, index, invalid, key, notSupported, required } from "../../api/meta/field-error.ts";
import type { JSONSchemaProps, ValidationRule } from "../../api/gen/apiextensions.v1.ts";
import { childContext, rootContext, type RuleContext, ruleErrors, totalErrors } from "./rules/check-rules.ts";
import { fieldPath, FieldPathError } from "./rules/field-path.ts";
import { defaultErrors } from "./schema-defaults.ts";
import { shownItems, shownSchema } from "./shown.ts";
import { additionalOf, itemsOf, structuralErrors } from "./structural.ts";
import { repeats } from "../../api/meta/linear.ts";

type Schema = Readonly<JSONSchemaProps>;

const TYPES = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
const MAP_TYPES = ["atomic", "granular"];
const META = new Set(["metadata", "kind", "apiVersion"]);
/** Go's names of the fields, in upstream's order: the message lists them. */
const ALLOWED_AT_ROOT = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations".split(" ");
/** Fields that are there although they say "" or false. */
const OPTIONAL: ReadonlySet<string> = new Set(["$ref", "additionalItems", "additionalProperties", "x-kubernetes-list-type", "x-kubernetes-map-type"]);
const GO_NAMES: Readonly<Record<string, string>> = { "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields", "x-kubernetes-validations": "XValidations" };
const UNSUPPORTED = ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] as const;
/** The same, and one more, in the order in which the first is told. */
const INCONVERTIBLE = ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"] as const;

/** Types that there are not; schemas that are not structural; defaults with unknown fields; items of sets that can be changed in part; items, or keys of them, that may be missing or null. */
export type Fault = "types" | "structure" | "defaults" | "sets" | "keys";
/** Whether what is stored has such a fault already: then it is not told of. */
export type Excuse = (fault: Fault) => boolean;

interface SchemaOptions {
  readonly hasStatus: boolean;
  /** It has been stored like this. */
  readonly isUnchanged?: boolean;
  /** It need not be structural, and is not looked at as such. */
  readonly isFree?: boolean;
  readonly excused?: Excuse;
}

/** `path`: of what holds `openAPIV3Schema`. */
export function* validateSchema(path: string, schema: Schema | undefined, { hasStatus, isUnchanged = false, isFree = false, excused = () => false }: SchemaOptions): Iterable<FieldError> {
  if (!schema) return;
  const at = child(path, "openAPIV3Schema");
  if (hasStatus) yield* rootFields(at, schema);
  if (schema.nullable) yield forbidden(child(at, "nullable"), "nullable cannot be true at the root");
  const unreadable = isFree ? undefined : inconvertible(schema);
  const isLookedAt = !isFree && unreadable === undefined;
  const structural = isLookedAt ? [...structuralErrors(at, schema)] : [];
  if (isLookedAt && structural.length === 0) structural.push(...defaultErrors(at, schema, { unknownFields: () => excused("defaults") }));
  yield* structural;
  const found: Found = { schema: [], rules: [], excused };
  const rules = isLookedAt && structural.length === 0 ? rootContext(schema, { isUnchanged }) : undefined;
  visit(at, schema, { isRoot: true, rules }, found);
  yield* found.schema;
  yield* found.rules;
  if (unreadable !== undefined && found.schema.length === 0) yield invalid(at, "", unreadable);
  if (rules) yield* totalErrors(at, rules);
}

/** Why a schema cannot be looked at as a structural one. It is told where nothing else is wrong. */
export function inconvertible(schema: Schema): string | undefined {
  for (const part of schemasIn(schema)) {
    const name = INCONVERTIBLE.find((field) => field === "$schema" ? part.$schema : isGiven(part, field));
    if (name !== undefined) return `OpenAPIV3Schema '${name === "$schema" ? "schema" : name}' is not supported`;
    if (part["x-kubernetes-preserve-unknown-fields"] === false) return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
    if (Array.isArray(part.items)) return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  }
  return undefined;
}

/** An empty id is none; an empty $ref is one. */
function isGiven(schema: Schema, field: (typeof UNSUPPORTED)[number]): boolean { return schema[field] !== undefined && !(field === "id" && schema.id === ""); }

/** Errors of a schema, and of the rules in it. */
interface Found { readonly schema: FieldError[]; readonly rules: FieldError[]; readonly excused: Excuse }

/** With a status subresource, the root must be one that its two halves can be taken out of. */
function* rootFields(path: string, schema: Schema): Iterable<FieldError> {
  for (const [name, value] of Object.entries(schema)) {
    if (value === undefined || ((value === "" || value === false) && !OPTIONAL.has(name))) continue;
    if (name === "type") {
      if (value === "object") continue;
      yield invalid(child(path, "type"), value, `only "object" is allowed as the type at the root of the schema if the status subresource is enabled`);
      return;
    }
    const goName = GO_NAMES[name] ?? `${name[0]!.toUpperCase()}${name.slice(1)}`;
    if (ALLOWED_AT_ROOT.includes(goName)) continue;
    yield invalid(path, shownSchema(schema), `only [${ALLOWED_AT_ROOT.join(" ")}] fields are allowed at the root of the schema if the status subresource is enabled`);
    return;
  }
}

interface Place {
  readonly isRoot?: boolean;
  /** Below metadata, kind or apiVersion, of the resource or of an embedded one. */
  readonly insideMeta?: boolean;
  /** Why there may be no default. */
  readonly noDefaults?: string | undefined;
  /** Undefined: rules are not looked at. */
  readonly rules: RuleContext | undefined;
}

/** Rules are looked at where neither the schema nor what is below it has errors. */
function visit(path: string, schema: Schema, place: Place, found: Found): void {
  const before = found.schema.length;
  const inside: Place = { insideMeta: place.insideMeta ?? false, noDefaults: place.noDefaults, rules: undefined };
  const context = (below: Schema, uncorrelated?: string): { readonly rules: RuleContext | undefined } => ({ rules: place.rules && childContext(place.rules, below, uncorrelated) });
  found.schema.push(...standard(path, schema, place, found.excused));
  if (schema.uniqueItems) found.schema.push(forbidden(child(path, "uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"));
  found.schema.push(...additional(path, schema));
  const additionalSchema = additionalOf(schema);
  const uncorrelated = MAP_TYPES.includes(schema["x-kubernetes-map-type"] ?? "granular") ? undefined : path;
  if (additionalSchema) visit(child(path, "additionalProperties"), additionalSchema, { ...inside, ...(inside.insideMeta && { noDefaults: "inside additionalProperties applying to object metadata" }), ...context(additionalSchema) }, found);
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const isMeta = (place.isRoot === true || schema["x-kubernetes-embedded-resource"] === true) && META.has(name);
    const meta = isMeta ? { insideMeta: true, noDefaults: place.isRoot ? `in top-level ${name}` : inside.noDefaults } : {};
    visit(key(child(path, "properties"), name), property, { ...inside, ...meta, ...context(property, uncorrelated) }, found);
  }
  if (schema.not) visit(child(path, "not"), schema.not, inside, found);
  for (const clause of ["allOf", "oneOf", "anyOf"] as const) for (const [i, part] of (schema[clause] ?? []).entries()) visit(index(child(path, clause), i), part, inside, found);
  for (const [at, part] of unsupported(path, schema)) visit(at, part, inside, found);
  const items = itemsOf(schema);
  if (items) visit(child(path, "items"), items, { ...inside, ...context(items, schema["x-kubernetes-list-type"] === "map" ? undefined : path) }, found);
  if (schema["x-kubernetes-preserve-unknown-fields"] === false) found.schema.push(invalid(child(path, "x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"));
  found.schema.push(...mapType(path, schema), ...listType(path, schema, found.excused));
  for (const [i, rule] of (schema["x-kubernetes-validations"] ?? []).entries()) found.schema.push(...validationRule(index(child(path, "x-kubernetes-validations"), i), rule, schema));
  if (place.rules && found.schema.length === before) found.rules.push(...ruleErrors(path, place.rules));
}

/** Schemas where there may be none: what is wrong with them is told too. */
function* unsupported(path: string, { definitions = {}, dependencies = {}, items }: Schema): Iterable<readonly [path: string, schema: Schema]> {
  for (const [name, part] of Object.entries(definitions)) yield [key(child(path, "definitions"), name), part];
  for (const [name, part] of Object.entries(dependencies)) if (isSchema(part)) yield [key(child(path, "dependencies"), name), part];
  if (Array.isArray(items)) for (const [i, part] of items.entries()) yield [index(child(path, "items"), i), part as Schema];
}

/** What is neither a schema nor a list of names is nothing. */
function isSchema(part: unknown): part is Schema { return typeof part === "object" && part !== null && !Array.isArray(part); }

/** A schema and all within it. */
export function* schemasIn(schema: Schema): Iterable<Schema> {
  yield schema;
  const { allOf = [], anyOf = [], oneOf = [], not, properties = {} } = schema;
  for (const part of [itemsOf(schema), ...allOf, ...anyOf, ...oneOf, not, ...Object.values(properties), additionalOf(schema)]) if (part) yield* schemasIn(part);
}

export function isKnownType(type = ""): boolean { return type === "" || TYPES.includes(type); }

function* standard(path: string, schema: Schema, { insideMeta, noDefaults }: Place, excused: Excuse): Iterable<FieldError> {
  const { type = "" } = schema;
  if (!isKnownType(type) && !excused("types")) yield notSupported(child(path, "type"), type, TYPES);
  if (schema.default !== undefined && noDefaults !== undefined) yield forbidden(child(path, "default"), `must not be set ${noDefaults}`);
  for (const name of UNSUPPORTED) if (isGiven(schema, name)) yield forbidden(child(path, name), `${name} is not supported`);
  if (type === "null") yield forbidden(child(path, "type"), "type cannot be set to null, use nullable as an alternative");
  if (Array.isArray(schema.items)) yield forbidden(child(path, "items"), "items must be a schema object and not an array");
  if (insideMeta && schema["x-kubernetes-embedded-resource"]) yield forbidden(child(path, "x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
}

function* additional(path: string, { additionalProperties: given, properties = {} }: Schema): Iterable<FieldError> {
  if (given === undefined || given === true || Object.keys(properties).length === 0) return;
  yield forbidden(child(path, "additionalProperties"), "additionalProperties and properties are mutual exclusive");
}

function* mapType(path: string, schema: Schema): Iterable<FieldError> {
  const kind = schema["x-kubernetes-map-type"];
  if (kind === undefined) return;
  yield* typeMustBe(path, schema, "object", "x-kubernetes-map-type");
  if (!MAP_TYPES.includes(kind)) yield notSupported(child(path, "x-kubernetes-map-type"), kind, MAP_TYPES);
}

function* typeMustBe(path: string, { type = "" }: Schema, wanted: string, extension: string): Iterable<FieldError> {
  if (type === wanted) return;
  const detail = `must be ${wanted} if ${extension} is specified`;
  yield type === "" ? required(child(path, "type"), detail) : invalid(child(path, "type"), type, detail);
}

function* listType(path: string, schema: Schema, excused: Excuse): Iterable<FieldError> {
  const kind = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const at = child(path, "x-kubernetes-list-type");
  if (kind !== undefined && schema.type !== "array") yield* typeMustBe(path, schema, "array", "x-kubernetes-list-type");
  else for (const error of setItems(child(path, "items"), schema)) if (!excused("sets")) yield error;
  if (kind !== undefined && !["atomic", "set", "map"].includes(kind)) yield notSupported(at, kind, ["atomic", "set", "map"]);
  if (keys.length > 0 && kind !== "map") {
    const detail = "must be map if x-kubernetes-list-map-keys is non-empty";
    yield kind === undefined ? required(at, detail) : invalid(at, kind, detail);
  }
  if (kind === "map") yield* mapItems(path, schema, keys);
  for (const error of keyedItems(path, schema)) if (!excused("keys")) yield error;
}

/** What keeps items of a set or a map, or their keys, from being told apart. */
export function* keyedItems(path: string, schema: Schema): Iterable<FieldError> {
  const kind = schema["x-kubernetes-list-type"], items = itemsOf(schema);
  if (!items || (kind !== "set" && kind !== "map")) return;
  if (items.nullable) yield forbidden(child(path, "items", "nullable"), `cannot be nullable when x-kubernetes-list-type is ${kind}`);
  if (kind === "map") yield* mapKeys(child(path, "items", "properties"), items, schema["x-kubernetes-list-map-keys"] ?? []);
}

/** What keeps items of a set from being wholes. */
export function* setItems(path: string, schema: Schema): Iterable<FieldError> {
  const items = itemsOf(schema);
  if (!items || schema["x-kubernetes-list-type"] !== "set") return;
  const detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
  const [listKind, mapKind] = [items["x-kubernetes-list-type"], items["x-kubernetes-map-type"]];
  if (items.type === "array" && listKind !== undefined && listKind !== "atomic") yield invalid(child(path, "x-kubernetes-list-type"), listKind, detail);
  if (items.type === "object" && mapKind !== "atomic") yield invalid(child(path, "x-kubernetes-map-type"), listKind ?? null, detail);
}

function* mapItems(path: string, schema: Schema, keys: readonly string[]): Iterable<FieldError> {
  const items = itemsOf(schema);
  const keysAt = child(path, "x-kubernetes-list-map-keys");
  if (keys.length === 0) yield required(keysAt, "must not be empty if x-kubernetes-list-type is map");
  if (schema.items === undefined) yield required(child(path, "items"), "must have a schema if x-kubernetes-list-type is map");
  else if (!items) yield invalid(child(path, "items"), shownItems(schema.items as readonly Schema[]), "must only have a single schema if x-kubernetes-list-type is map");
  if (!items) return;
  if (items.type !== "object") { yield invalid(child(path, "items", "type"), items.type ?? "", "must be object if parent array's x-kubernetes-list-type is map"); return; }
  const cameBefore = repeats<string>();
  for (const name of keys) {
    const property = items.properties?.[name];
    if (!property) yield invalid(keysAt, keys, "entries must all be names of item properties");
    else if (property.type === "array" || property.type === "object")
      yield invalid(child(key(child(path, "items", "properties"), name), "type"), items.type, "must be a scalar type if parent array's x-kubernetes-list-type is map");
    if (cameBefore(name)) yield invalid(keysAt, keys, "must not contain duplicate entries");
  }
}

function* mapKeys(path: string, items: Schema, keys: readonly string[]): Iterable<FieldError> {
  for (const name of keys) {
    const property = items.properties?.[name];
    if (!property) continue;
    if (!items.required?.includes(name) && property.default === undefined)
      yield required(child(key(path, name), "default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property");
    if (property.nullable) yield forbidden(child(key(path, name), "nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
  }
}

function* validationRule(path: string, { rule = "", message = "", messageExpression = "", reason, fieldPath: written = "" }: ValidationRule, schema: Schema): Iterable<FieldError> {
  const hasLineBreak = (text: string): boolean => /[\n\r]/.test(text);
  const trimmed = message.trim();
  if (rule.trim() === "") yield required(child(path, "rule"), "rule is not specified");
  else if (message !== "" && trimmed === "") yield invalid(child(path, "message"), message, "must be non-empty if specified");
  else if (hasLineBreak(trimmed)) yield invalid(child(path, "message"), message, "must not contain line breaks");
  else if (hasLineBreak(rule.trim()) && trimmed === "") yield required(child(path, "message"), "message must be specified if rule contains line breaks");
  if (messageExpression !== "" && messageExpression.trim() === "") yield required(child(path, "messageExpression"), "messageExpression must be non-empty if specified");
  if (reason !== undefined && !REASONS.includes(reason)) yield notSupported(child(path, "reason"), reason, REASONS);
  if (written !== "" && written.trim() === "") yield invalid(child(path, "fieldPath"), written, "must be non-empty if specified");
  if (hasLineBreak(written)) yield invalid(child(path, "fieldPath"), written, "must not contain line breaks");
  if (written !== "" && !isFieldPath(written, schema)) yield invalid(child(path, "fieldPath"), written, "must be a valid path");
}

/** In a schema that cannot be looked at, any path is one. */
function isFieldPath(written: string, schema: Schema): boolean {
  if (inconvertible(schema) !== undefined) return true;
  try {
    fieldPath(written, schema);
    return true;
  } catch (error) {
    if (error instanceof FieldPathError) return false;
    throw error;
  }
}
