/**
 * Structural schemas: every field has a type, and what stands under allOf, anyOf, oneOf and not only restricts fields that are defined outside of them.
 * Pruning and defaulting need to know all fields without evaluating anything.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/{validation,complete,convert}.go
 */
import { child, type FieldError, forbidden, formatFieldError, index, invalid, key, required } from "../../api/meta/field-error.ts";
import { compileRegex } from "../../cel/regex.ts";
import type { JSONSchemaProps } from "../../api/gen/apiextensions.v1.ts";

type Schema = Readonly<JSONSchemaProps>;
type Level = "root" | "item" | "field";

const EMPTY_TYPE: Readonly<Record<Level, string>> = {
  root: "must not be empty at the root", item: "must not be empty for specified array items", field: "must not be empty for specified object fields",
};
/** How a schema says "a number or a string" to those who do not know x-kubernetes-int-or-string. */
const INT_OR_STRING = [{ type: "integer" }, { type: "string" }];
const CLAUSES = ["allOf", "anyOf", "oneOf"] as const;

/** Sorted by their text. Schemas have thousands of parts: what is wrong is added to one list. */
export function structuralErrors(path: string, schema: Schema): FieldError[] {
  const errors: FieldError[] = [];
  invariants(errors, path, schema, "root");
  completeness(errors, path, path, schema, schema);
  return errors.sort((a, b) => (formatFieldError(a) < formatFieldError(b) ? -1 : 1));
}

/** The schema of an array's items, unless it is a list of schemas, which is not supported. */
export function itemsOf({ items }: Schema): Schema | undefined {
  return typeof items === "object" && items !== null && !Array.isArray(items) ? (items as Schema) : undefined;
}

export function additionalOf({ additionalProperties: given }: Schema): Schema | undefined {
  return typeof given === "object" && given !== null ? (given as Schema) : undefined;
}

function invariants(errors: FieldError[], path: string, schema: Schema, level: Level): void {
  const { type = "", properties = {}, additionalProperties } = schema;
  const [items, additional] = [itemsOf(schema), additionalOf(schema)];
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  const intOrString = schema["x-kubernetes-int-or-string"] === true;
  const preserves = schema["x-kubernetes-preserve-unknown-fields"] === true;

  if (type === "array" && !items) errors.push(required(child(path, "items"), "must be specified"));
  if (items) invariants(errors, child(path, "items"), items, "item");
  for (const [name, property] of Object.entries(properties)) invariants(errors, key(child(path, "properties"), name), property, "field");
  if (additionalProperties !== undefined && level === "root") errors.push(forbidden(child(path, "additionalProperties"), "must not be used at the root"));
  if (additional) invariants(errors, child(path, "additionalProperties"), additional, "field");
  if (intOrString && preserves) errors.push(invalid(child(path, "x-kubernetes-preserve-unknown-fields"), true, "must be false if x-kubernetes-int-or-string is true"));
  if (intOrString && embedded) errors.push(invalid(child(path, "x-kubernetes-embedded-resource"), true, "must be false if x-kubernetes-int-or-string is true"));
  restrictions(errors, path, schema, { skipAnyOf: isIntOrString(schema.anyOf), skipFirstAllOf: isIntOrString(schema.allOf?.[0]?.anyOf) });

  if (embedded && type !== "object") {
    const detail = "must be object if x-kubernetes-embedded-resource is true";
    errors.push(type === "" ? required(child(path, "type"), detail) : invalid(child(path, "type"), type, detail));
  } else if (type === "" && !intOrString && !preserves) errors.push(required(child(path, "type"), EMPTY_TYPE[level]));
  if (embedded && additionalProperties !== undefined) errors.push(forbidden(child(path, "additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set"));
  if (level === "root" && type !== "" && type !== "object") errors.push(invalid(child(path, "type"), type, "must be object at the root"));
  if (level === "root" || embedded) typeMeta(errors, path, schema, level);
  if (embedded && !preserves && Object.keys(properties).length === 0)
    errors.push(required(child(path, "properties"), "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"));
}

function typeMeta(errors: FieldError[], path: string, { properties = {} }: Schema, level: Level): void {
  const at = (name: string): string => key(child(path, "properties"), name);
  for (const name of ["kind", "apiVersion"] as const) {
    const given = properties[name];
    if (given && given.type !== "string") errors.push(invalid(child(at(name), "type"), given.type ?? "", "must be string"));
  }
  const { metadata } = properties;
  if (!metadata) return;
  if (metadata.type !== "object") errors.push(invalid(child(at("metadata"), "type"), metadata.type ?? "", "must be object"));
  if (level !== "root") return;
  const { type: _, properties: named = {}, default: __, ...rest } = metadata;
  const unknown = Object.keys(named).filter((name) => name !== "name" && name !== "generateName");
  if (unknown.length > 0 || Object.keys(rest).length > 0) errors.push(forbidden(at("metadata"), "must not specify anything other than name and generateName, but metadata is implicitly specified"));
}

function isIntOrString(anyOf: readonly Schema[] | undefined): boolean { return anyOf !== undefined && Bun.deepEquals(anyOf, INT_OR_STRING); }

interface Skips { readonly skipAnyOf?: boolean; readonly skipFirstAllOf?: boolean }

function restrictions(errors: FieldError[], path: string, schema: Schema, { skipAnyOf = false, skipFirstAllOf = false }: Skips): void {
  for (const clause of CLAUSES) {
    if (clause === "anyOf" && skipAnyOf) continue;
    for (const [i, part] of (schema[clause] ?? []).entries()) nested(errors, index(child(path, clause), i), part, { skipAnyOf: clause === "allOf" && skipFirstAllOf && i === 0 });
  }
  if (schema.not) nested(errors, child(path, "not"), schema.not, {});
  const problem = schema.pattern ? patternProblem(schema.pattern) : undefined;
  if (problem !== undefined) errors.push(invalid(child(path, "pattern"), schema.pattern, `must be a valid regular expression, but isn't: ${problem}`));
}

/** What was found of patterns: a definition has the one of quantities a hundred times. */
const problems = new Map<string, string | undefined>();
const PROBLEMS_MAX = 500;

function patternProblem(pattern: string): string | undefined {
  if (problems.has(pattern)) return problems.get(pattern);
  const problem = findProblem(pattern);
  if (problems.size >= PROBLEMS_MAX) problems.clear();
  problems.set(pattern, problem);
  return problem;
}

function findProblem(pattern: string): string | undefined {
  try {
    compileRegex(pattern);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const MUST_BE_EMPTY = [["type", "empty"], ["default", "undefined"], ["title", "empty"], ["description", "empty"], ["nullable", "false"]] as const;
const EXTENSIONS = [
  ["x-kubernetes-preserve-unknown-fields", "false"], ["x-kubernetes-embedded-resource", "false"], ["x-kubernetes-int-or-string", "false"], ["x-kubernetes-list-map-keys", "empty"],
  ["x-kubernetes-list-type", "undefined"], ["x-kubernetes-map-type", "undefined"], ["x-kubernetes-validations", "empty"],
] as const;

function nested(errors: FieldError[], path: string, schema: Schema, skips: Skips): void {
  restrictions(errors, path, schema, skips);
  const items = itemsOf(schema);
  if (items) nested(errors, child(path, "items"), items, {});
  for (const [name, property] of Object.entries(schema.properties ?? {})) nested(errors, key(child(path, "properties"), name), property, {});
  if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) errors.push(forbidden(child(path, "additionalProperties"), "must be undefined to be structural"));
  for (const [name, state] of [...MUST_BE_EMPTY, ...EXTENSIONS]) if (isSet(schema[name])) errors.push(forbidden(child(path, name), `must be ${state} to be structural`));
  if (schema.properties?.["metadata"]) errors.push(forbidden(key(child(path, "properties"), "metadata"), "must not be specified in a nested context"));
}

function isSet(value: unknown): boolean { return value !== undefined && value !== "" && value !== false && !(Array.isArray(value) && value.length === 0); }

/** `at`: where the field should be defined; `from`: the restriction that speaks of it. */
function completeness(errors: FieldError[], at: string, from: string, restricting: Schema, defined: Schema | undefined): void {
  if (!defined) { errors.push(required(at, `because it is defined in ${from}`)); return; }
  if (restricting.not) nestedCompleteness(errors, at, child(from, "not"), restricting.not, defined);
  for (const clause of CLAUSES) for (const [i, part] of (restricting[clause] ?? []).entries()) nestedCompleteness(errors, at, index(child(from, clause), i), part, defined);
}

function nestedCompleteness(errors: FieldError[], at: string, from: string, restricting: Schema, defined: Schema): void {
  completeness(errors, at, from, restricting, defined);
  const items = itemsOf(restricting);
  if (items) below(errors, child(at, "items"), child(from, "items"), items, itemsOf(defined));
  for (const [name, property] of Object.entries(restricting.properties ?? {})) {
    below(errors, key(child(at, "properties"), name), key(child(from, "properties"), name), property, defined.properties?.[name]);
  }
}

function below(errors: FieldError[], at: string, from: string, restricting: Schema, defined: Schema | undefined): void {
  if (defined) nestedCompleteness(errors, at, from, restricting, defined);
  else errors.push(required(at, `because it is defined in ${from}`));
}
