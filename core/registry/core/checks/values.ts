/** The checks every kind repeats, in upstream's words. Each yields the errors of one field. */
import { FIELD_IMMUTABLE, type FieldError, invalid, notSupported, required } from "../../../api/meta/field-error.ts";
import { dns1123Label, dns1123Subdomain, qualifiedName } from "../../../api/meta/names.ts";
import { internalForm } from "../../../api/schema/internal-form.ts";
import { semanticEqual } from "./equal.ts";

export const NOT_NEGATIVE = "must be greater than or equal to 0";
export const NOT_POSITIVE = "must be greater than zero";

/** One error for each text of what is wrong with `value`. */
export function* problems(path: string, value: unknown, texts: Iterable<string>): Iterable<FieldError> {
  for (const text of texts) yield invalid(path, value, text);
}

export function* nonNegative(path: string, value: number | undefined): Iterable<FieldError> {
  if (value !== undefined && value < 0) yield invalid(path, value, NOT_NEGATIVE);
}

export function* positive(path: string, value: number | undefined): Iterable<FieldError> {
  if ((value ?? 0) <= 0) yield invalid(path, value ?? 0, NOT_POSITIVE);
}

/** As `immutable`, for a struct: `type` is its name in OpenAPI, below io.k8s.api. */
export function* immutableStruct(path: string, type: string, next: object | undefined, old: object | undefined): Iterable<FieldError> {
  if (!semanticEqual(next, old)) yield invalid(path, next && internalForm(`io.k8s.api.${type}`, next), FIELD_IMMUTABLE);
}

export function* immutable(path: string, next: unknown, old: unknown): Iterable<FieldError> {
  if (!semanticEqual(next, old)) yield invalid(path, next, FIELD_IMMUTABLE);
}

export function* oneOf(path: string, value: string | undefined, supported: readonly string[]): Iterable<FieldError> {
  if (!value) yield required(path);
  else if (!supported.includes(value)) yield notSupported(path, value, supported);
}

/** As `oneOf`, for a field that may be left out. */
export function* oneOfOptional(path: string, value: string | undefined, supported: readonly string[]): Iterable<FieldError> {
  if (value !== undefined && !supported.includes(value)) yield notSupported(path, value, supported);
}

export function isDns1123Label(path: string, value: string): Iterable<FieldError> { return problems(path, value, dns1123Label(value)); }
export function isDns1123Subdomain(path: string, value: string): Iterable<FieldError> { return problems(path, value, dns1123Subdomain(value)); }
export function isQualifiedName(path: string, value: string): Iterable<FieldError> { return problems(path, value, qualifiedName(value)); }

/** `example.com/key`: a label key that says whose it is. */
export function* isDomainPrefixedKey(path: string, name: string): Iterable<FieldError> {
  if (name === "") yield required(path);
  else if (qualifiedName(name).length > 0) yield* isQualifiedName(path, name);
  else if (!name.includes("/")) yield invalid(path, name, `must be a domain-prefixed key (such as "acme.io/foo")`);
}
