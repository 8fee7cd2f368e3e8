/**
 * Whether a value is as its schema says, in upstream's words.
 *
 *   validateValue(object, structure)                          a create
 *   validateValue(object, structure, { correlated })          an update: what has not changed is let pass
 *
 * Errors of anyOf and oneOf are those of the alternative that fitted best, which is why checks that passed are counted.
 *
 * Source: kubernetes v1.36 kube-openapi/pkg/validation/{validate,errors}, apiextensions-apiserver/pkg/apiserver/validation/{validation,ratcheting}.go
 */
import type { FieldError } from "../../../api/meta/field-error.ts";
import { goNumber } from "../../../api/meta/go-float.ts";
import { goQuote } from "../../../api/meta/go-quote.ts";
import { formatGo, isMap, type JsonMap } from "../../../api/patch/json-value.ts";
import type { Correlated } from "./correlate.ts";
import { fieldErrorOf, type Finding, typeFinding } from "./finding.ts";
import { isNearInteger, isNumber, numberFindings, type NumberRules, numberType } from "./numbers.ts";
import type { Structure } from "./structure.ts";

interface Result {
  readonly findings: Finding[];
  matches: number;
  /** Messages of the findings, from the first merge on, and how long they are. */
  told?: Set<string>;
  length?: number;
}

/** Characters of messages that are gathered: more are not told. Of a list that has none of a thousand values each item's message has them all. */
const MESSAGES_LENGTH_MAX = 16 * 1024 * 1024;

export interface ValidateOptions {
  /** Where the value stands: "" for a whole object, "status" for its status. */
  readonly field?: string;
  readonly correlated?: Correlated | undefined;
}

export function validateValue(value: unknown, structure: Structure, { field = "", correlated }: ValidateOptions = {}): FieldError[] {
  return check(value, structure, "", correlated).findings.map((finding) => fieldErrorOf(finding, field));
}

function check(value: unknown, structure: Structure, path: string, correlated: Correlated | undefined): Result {
  const result = checkNow(value, structure, path, correlated);
  return result.findings.length > 0 && correlated?.unchanged ? { findings: [], matches: result.matches } : result;
}

function checkNow(value: unknown, structure: Structure, path: string, correlated: Correlated | undefined): Result {
  const result: Result = { findings: [], matches: 0 };
  if (value === null || value === undefined) {
    const types = typesOf(structure), isWrong = types.length > 0 && !structure.nullable;
    merge(result, isWrong ? [typeFinding(path, types.join(), "null")] : [], isWrong ? 0 : 1);
    merge(result, enumeration(value ?? null, structure, path));
    return result;
  }
  const types = typesOf(structure);
  if (types.length > 0 || formatOf(structure) !== "") {
    const finding = typeOf(value, structure, path, types);
    merge(result, finding ? [finding] : [], finding ? 0 : 1);
    result.matches++;
  }
  mergeResult(result, clauses(value, structure, path));
  result.matches++;
  if (typeof value === "string") {
    merge(result, text(value, structure, path));
    result.matches++;
    if (structure.format) {
      if (!structure.format.accepts(value)) merge(result, [typeFinding(path, structure.format.name, value)]);
      result.matches++;
    }
  }
  if (isNumber(value)) {
    merge(result, numberFindings(value, structure.schema as NumberRules, { path, type: types.length === 1 ? types[0]! : "" }), 1);
    result.matches++;
  }
  if (Array.isArray(value)) {
    mergeResult(result, list(value, structure, path, correlated));
    result.matches++;
  }
  merge(result, enumeration(value, structure, path));
  result.matches++;
  if (isMap(value)) {
    mergeResult(result, map(value, structure, path, correlated));
    result.matches++;
  }
  result.matches++;
  return result;
}

function typesOf({ type, intOrString }: Structure): readonly string[] { return intOrString ? ["integer", "string"] : type === "" ? [] : [type]; }

/** A format that means something for the type. */
function formatOf(structure: Structure): string {
  const { format = "" } = structure.schema;
  if (structure.format) return format;
  return (structure.type === "integer" && (format === "int32" || format === "int64")) || (structure.type === "number" && (format === "float" || format === "double")) ? format : "";
}

function typeOf(value: unknown, structure: Structure, path: string, types: readonly string[]): Finding | undefined {
  const format = formatOf(structure);
  const isNumeric = types.includes("number") || types.includes("integer");
  if (!isNumeric && format !== "" && (typeof value === "string" || Array.isArray(value))) return undefined;
  const { type: actual, format: actualFormat } = jsonType(value);
  const fits = types.includes(actual) || (actual === "number" && isNearInteger(value as number) && types.includes("integer")) || (actual === "integer" && types.includes("number"));
  if (fits) return undefined;
  return format !== "" && typeof value !== "string" && !Array.isArray(value) ? typeFinding(path, format, actualFormat) : typeFinding(path, types.join(), actual);
}

function jsonType(value: unknown): { readonly type: string; readonly format: string } {
  if (isNumber(value)) return numberType(value) === "integer" ? { type: "integer", format: "int64" } : { type: "number", format: "float64" };
  if (Array.isArray(value)) return { type: "array", format: "" };
  return { type: typeof value === "object" ? "object" : typeof value, format: "" };
}

function text(value: string, { schema: { maxLength, minLength, pattern: written }, pattern }: Structure, path: string): Finding[] {
  const length = maxLength === undefined && minLength === undefined ? 0 : [...value].length;
  if (maxLength !== undefined && length > maxLength) return [{ type: "tooLong", path, message: `${path} in body should be at most ${maxLength} chars long`, value, max: maxLength }];
  if (minLength !== undefined && length < minLength) return [{ type: "other", path, message: `${path} in body should be at least ${minLength} chars long`, value }];
  if (pattern === undefined || (typeof pattern !== "string" && pattern.test(value))) return [];
  const shown = typeof pattern === "string" ? `${written}, but pattern is invalid: ${pattern}` : pattern.source;
  return [{ type: "other", path, message: `${path} in body should match '${shown}'`, value }];
}

interface Allowed { readonly texts: ReadonlySet<unknown>; readonly others: readonly unknown[]; readonly list: string }
const allowances = new WeakMap<readonly unknown[], Allowed>();

/** What there is to know of a schema's values, once. */
function allowedIn(values: readonly unknown[]): Allowed {
  const known = allowances.get(values) ?? { texts: new Set(values.filter((one) => typeof one === "string")), others: values.filter((one) => typeof one !== "string"), list: goList(values) };
  allowances.set(values, known);
  return known;
}

function enumeration(value: unknown, { schema }: Structure, path: string): Finding[] {
  const allowed = schema.enum ?? [];
  if (allowed.length === 0) return [];
  const { texts, others, list } = allowedIn(allowed);
  if (typeof value === "string" && texts.has(value)) return [];
  if ((typeof value === "string" ? others : allowed).some((one) => one !== null && isTakenFor(one, value))) return [];
  return [{ type: "enum", path, message: `${path} in body should be one of ${list}`, value, allowed }];
}

/** Go converts a number before it compares it: for an integer what is after the point is left out, for a text an integer is a character's code. */
function isTakenFor(allowed: unknown, value: unknown): boolean {
  if (Bun.deepEquals(allowed, value)) return true;
  if (!isNumber(value)) return false;
  if (isNumber(allowed)) return numberType(allowed) === "integer" && numberType(value) !== "integer" && Math.trunc(Number(value)) === Number(allowed);
  return typeof allowed === "string" && allowed !== "" && numberType(value) === "integer" && allowed === characterOf(Number(value));
}

function characterOf(code: number): string { return code >= 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : "\ufffd"; }

/** A list as Go's %v prints it. */
function goList(values: readonly unknown[]): string { return `[${values.map((value) => (isNumber(value) ? goNumber(value) : formatGo(value))).join(" ")}]`; }

function list(value: readonly unknown[], { schema: { minItems, maxItems, uniqueItems }, items }: Structure, path: string, correlated: Correlated | undefined): Result {
  const result: Result = { findings: [], matches: 1 };
  if (items) for (const [i, item] of value.entries()) mergeResult(result, check(item, items, `${path}[${i}]`, correlated?.item(i)));
  if (minItems !== undefined && value.length < minItems) merge(result, [{ type: "other", path, message: `${path} in body should have at least ${minItems} items`, value: value.length }]);
  if (maxItems !== undefined && value.length > maxItems) merge(result, [{ type: "tooMany", path, message: `${path} in body should have at most ${maxItems} items`, value: value.length, max: maxItems }]);
  if (uniqueItems && value.some((item, i) => value.slice(0, i).some((other) => Bun.deepEquals(item, other)))) merge(result, [{ type: "other", path, message: `${path} in body shouldn't contain duplicates` }]);
  return result;
}

function map(value: JsonMap, structure: Structure, path: string, correlated: Correlated | undefined): Result {
  const { schema, properties, additional } = structure;
  const result: Result = { findings: [], matches: 0 };
  const names = Object.keys(value);
  const { minProperties, maxProperties } = schema;
  if (minProperties !== undefined && names.length < minProperties) merge(result, [{ type: "other", path, message: `${path} in body should have at least ${minProperties} properties`, value: names.length }]);
  if (maxProperties !== undefined && names.length > maxProperties) merge(result, [{ type: "tooMany", path, message: `${path} in body should have at most ${maxProperties} properties`, value: names.length, max: maxProperties }]);
  for (const name of names) {
    const property = properties.get(name);
    // the type's own fields are not ratcheted: a change of version shows in neither object
    const before = path === "" && (name === "kind" || name === "apiVersion") ? undefined : correlated?.field(name);
    if (property) mergeResult(result, check(value[name], property, path === "" ? name : `${path}.${name}`, before));
    else if (schema.additionalProperties === false) merge(result, [{ type: "other", path, message: `${path}.${name} in body is a forbidden property`, value: name }]);
    else if (additional) mergeResult(result, check(value[name], additional, `${path}.${name}`, before));
  }
  for (const name of schema.required ?? []) if (!Object.hasOwn(value, name)) merge(result, [{ type: "required", path: `${path}.${name}`, message: `${path}.${name} in body is required` }]);
  return result;
}

function clauses(value: unknown, structure: Structure, path: string): Result {
  const { anyOf, oneOf, allOf, not } = structure.clauses;
  const result: Result = { findings: [], matches: 0 };
  if (anyOf.length > 0) {
    const { best, valid } = alternatives(value, anyOf, path, true);
    if (valid === 0) merge(result, [nowhere(`${goQuote(path)} must validate at least one schema (anyOf)`)]);
    if (best) mergeResult(result, best);
  }
  if (oneOf.length > 0) {
    const { best, valid } = alternatives(value, oneOf, path, false);
    if (valid !== 1) merge(result, [nowhere(`${goQuote(path)} must validate one and only one schema (oneOf). ${valid === 0 ? "Found none valid" : `Found ${valid} valid alternatives`}`)]);
    if (best && valid <= 1) mergeResult(result, best);
  }
  if (allOf.length > 0) {
    const results = allOf.map((one) => checkNow(value, one, path, undefined));
    for (const one of results) mergeResult(result, one);
    const valid = results.filter(({ findings }) => findings.length === 0).length;
    if (valid !== allOf.length) merge(result, [nowhere(`${goQuote(path)} must validate all the schemas (allOf)${valid === 0 ? ". None validated" : ""}`)]);
  }
  if (not && checkNow(value, not, path, undefined).findings.length === 0) merge(result, [nowhere(`${goQuote(path)} must not validate the schema (not)`)]);
  result.matches++;
  return result;
}

/** `best`: the first that fits, else the one that fits best. */
function alternatives(value: unknown, schemas: readonly Structure[], path: string, enough: boolean): { readonly best: Result | undefined; readonly valid: number } {
  let [valid, best]: [number, Result | undefined] = [0, undefined];
  for (const schema of schemas) {
    const result = checkNow(value, schema, path, undefined);
    if (result.findings.length === 0) {
      if (valid++ === 0) best = result;
      if (enough) break;
    } else if (valid === 0 && (!best || result.matches > best.matches)) best = result;
  }
  return { best, valid };
}

function nowhere(message: string): Finding { return { type: "other", path: undefined, message }; }

/** What is said already is not said again. */
function merge(result: Result, findings: readonly Finding[], matches = 0): void {
  if (findings.length > 0) {
    const told = (result.told ??= new Set(result.findings.map(({ message }) => message)));
    for (const finding of findings) {
      if ((result.length ?? 0) > MESSAGES_LENGTH_MAX) break;
      if (told.has(finding.message)) continue;
      result.length = (result.length ?? 0) + finding.message.length;
      told.add(finding.message);
      result.findings.push(finding);
    }
  }
  result.matches += matches;
}

function mergeResult(result: Result, { findings, matches }: Result): void { merge(result, findings, matches); }
