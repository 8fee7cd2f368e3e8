/**
 * Which field a rule's failure is told of: `.spec.replicas`, `.labels['app.kubernetes.io/name']`. It must be one the schema has.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go ValidFieldPath
 */
import { child, key } from "../../../api/meta/field-error.ts";
import { additionalOf, type JsonSchema } from "../../../cel/schema/declared-type.ts";

export class FieldPathError extends Error { override readonly name = "FieldPathError"; }

export interface FieldPath {
  /** As it stands in errors. */
  readonly path: string;
  readonly names: readonly string[];
  /** Of what it leads to. */
  readonly schema: JsonSchema;
}

const ESCAPES: Readonly<Record<string, string>> = { a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v", "'": "'", "\\": "\\" };
const END = "unexpected end of JSON path";

/** Throws FieldPathError. */
export function fieldPath(written: string, root: JsonSchema, { brackets = true }: { readonly brackets?: boolean } = {}): FieldPath {
  const tokens = tokensOf(written);
  let found: FieldPath = { path: "", names: [], schema: root };
  for (let i = 0; i < tokens.length;) {
    if (tokens[i] === ".") {
      if (i + 1 >= tokens.length) throw new FieldPathError(END);
      found = step(found, tokens[i + 1]!);
      i += 2;
    } else if (tokens[i] === "[") {
      if (!brackets) throw new FieldPathError("array notation is not allowed");
      if (i + 1 >= tokens.length) throw new FieldPathError(END);
      found = step(found, unquoted(tokens[i + 1]!));
      if (i + 2 >= tokens.length) throw new FieldPathError(END);
      if (tokens[i + 2] !== "]") throw new FieldPathError(`expected ] but got ${tokens[i + 2]}`);
      i += 3;
    } else throw new FieldPathError(`expected [ or . but got: ${tokens[i]}`);
  }
  return found;
}

/** Delimiters, strings in single quotes, and what stands between. */
function tokensOf(written: string): string[] { return written.match(/'(?:[^'\\]|\\[\s\S])*'|[.[\]]|(?!')[^.[\]]+|'[\s\S]*/g) ?? []; }

function step({ path, names, schema }: FieldPath, name: string): FieldPath {
  const at = [...names, name];
  if (schema.properties) {
    const property = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (!property) throw new FieldPathError("does not refer to a valid field");
    return { path: child(path, name), names: at, schema: property };
  }
  if (schema.additionalProperties === undefined) throw new FieldPathError("does not refer to a valid field");
  return { path: key(path, name), names: at, schema: additionalOf(schema) ?? {} };
}

function unquoted(token: string): string {
  if (token.length < 2 || !token.startsWith("'") || !token.endsWith("'")) throw new FieldPathError(`expected single quoted string but got ${token}`);
  return token.slice(1, -1).replace(/\\[^\n]/g, (escape) => {
    const meant = ESCAPES[escape[1]!];
    if (meant === undefined) throw new FieldPathError(`invalid string literal: invalid escape char ${escape}`);
    return meant;
  });
}
