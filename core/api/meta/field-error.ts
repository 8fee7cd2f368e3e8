/**
 * One thing wrong with one field, worded as upstream words it.
 *
 * `formatFieldError` gives `spec.replicas: Invalid value: -1: must be greater than or equal to 0`; StatusError's `invalid` collects them
 * into a 422. Paths are plain strings: `spec`, child("spec", "containers"), index(path, 0), key(path, "a/b").
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/util/validation/field/{errors,path}.go
 */
import { jsonText } from "../codec/json.ts";
import { goNumber } from "./go-float.ts";
import { goQuote } from "./go-quote.ts";

export type FieldErrorType =
  | "FieldValueNotFound" | "FieldValueRequired" | "FieldValueDuplicate" | "FieldValueInvalid" | "FieldValueNotSupported" | "FieldValueForbidden"
  | "FieldValueTooLong" | "FieldValueTooMany" | "FieldValueTooFew" | "FieldValueTooShort" | "FieldValueTypeInvalid" | "InternalError";

export interface FieldError {
  readonly type: FieldErrorType;
  /** "spec.containers[0].image", "metadata.annotations[a/b]". */
  readonly field: string;
  /** Shown for the types that show one. `undefined` shows as null, OMIT_VALUE not at all. */
  readonly badValue: unknown;
  /** Where `badValue` stands, if that is not `field`. */
  readonly shows?: string;
  readonly detail: string;
}

/** As a bad value: print none. */
export const OMIT_VALUE: unique symbol = Symbol("value omitted");

/** How upstream writes the path of no field, field.NewPath(""). */
export const NO_FIELD = "[]";

/** Upstream's wording for a field that may be set once; used with `invalid`, or with `forbidden` where upstream does. */
export const FIELD_IMMUTABLE = "field is immutable";

const TITLES: Record<FieldErrorType, string> = {
  FieldValueNotFound: "Not found", FieldValueRequired: "Required value", FieldValueDuplicate: "Duplicate value", FieldValueInvalid: "Invalid value",
  FieldValueNotSupported: "Unsupported value", FieldValueForbidden: "Forbidden", FieldValueTooLong: "Too long", FieldValueTooMany: "Too many",
  FieldValueTooFew: "Too few", FieldValueTooShort: "Too short", FieldValueTypeInvalid: "Invalid value", InternalError: "Internal error",
};
const WITHOUT_VALUE: ReadonlySet<FieldErrorType> = new Set<FieldErrorType>([
  "FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "FieldValueTooShort", "InternalError",
]);

export function child(path: string, name: string, ...below: readonly string[]): string {
  let at = path === "" ? name : `${path}.${name}`;
  for (let i = 0; i < below.length; i++) at = `${at}.${below[i]}`;
  return at;
}
export function index(path: string, at: number): string { return `${path}[${at}]`; }
export function key(path: string, name: string): string { return `${path}[${name}]`; }

export function required(field: string, detail = ""): FieldError { return { type: "FieldValueRequired", field, badValue: "", detail }; }
export function invalid(field: string, badValue: unknown, detail: string): FieldError { return { type: "FieldValueInvalid", field, badValue, detail }; }
export function typeInvalid(field: string, badValue: unknown, detail: string): FieldError { return { type: "FieldValueTypeInvalid", field, badValue, detail }; }
export function forbidden(field: string, detail: string): FieldError { return { type: "FieldValueForbidden", field, badValue: "", detail }; }
export function duplicate(field: string, badValue: unknown): FieldError { return { type: "FieldValueDuplicate", field, badValue, detail: "" }; }
export function notFound(field: string, badValue: unknown): FieldError { return { type: "FieldValueNotFound", field, badValue, detail: "" }; }
export function internal(field: string, detail: string): FieldError { return { type: "InternalError", field, badValue: undefined, detail }; }

/** `supported` in the order upstream lists them: usually sorted. */
export function notSupported(field: string, badValue: unknown, supported: readonly string[]): FieldError {
  let detail = supportedTexts.get(supported);
  if (detail === undefined) supportedTexts.set(supported, (detail = supported.length > 0 ? `supported values: ${supported.map(goQuote).join(", ")}` : ""));
  return { type: "FieldValueNotSupported", field, badValue, detail };
}

/** What is said of a list that stays as it is: of thousands of values that are none of its, the same. */
const supportedTexts = new WeakMap<readonly string[], string>();

/** Bytes, as upstream counts; the value itself is not repeated. */
export function tooLong(field: string, bytesMax: number): FieldError {
  const detail = bytesMax < 0 ? "value is too long" : `may not be more than ${bytesMax} ${bytesMax === 1 ? "byte" : "bytes"}`;
  return { type: "FieldValueTooLong", field, badValue: "<value omitted>", detail };
}
/** A negative `actual` is not shown. */
export function tooMany(field: string, actual: number, max: number): FieldError {
  const detail = max < 0 ? "has too many items" : `must have at most ${max} ${max === 1 ? "item" : "items"}`;
  return { type: "FieldValueTooMany", field, badValue: actual < 0 ? OMIT_VALUE : actual, detail };
}

export function formatFieldError(error: FieldError): string { return `${error.field}: ${formatFieldErrorBody(error)}`; }

/** What a Status cause carries: everything but the path. */
export function formatFieldErrorBody({ type, badValue, detail }: FieldError): string {
  const shown = WITHOUT_VALUE.has(type) || badValue === OMIT_VALUE ? TITLES[type] : `${TITLES[type]}: ${formatBadValue(badValue)}`;
  return detail === "" ? shown : `${shown}: ${detail}`;
}

function formatBadValue(value: unknown): string {
  if (typeof value === "string") return goQuote(value);
  if (typeof value === "bigint" || typeof value === "number") return goNumber(value);
  return goJson(value);
}

/** JSON as Go writes it: map keys and struct fields as they come. */
function goJson(value: unknown): string { return value === undefined ? "null" : jsonText(value); }

/** Errors that read the same are told once; several stand in brackets: `[a, b]`. Empty for none. */
export function formatFieldErrors(errors: readonly FieldError[]): string { return inBrackets([...new Set(errors.map(formatFieldError))]); }

/** One stands alone. */
export function inBrackets(messages: readonly string[]): string { return messages.length > 1 ? `[${messages.join(", ")}]` : messages[0] ?? ""; }
