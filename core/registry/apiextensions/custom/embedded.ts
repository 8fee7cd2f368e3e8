/**
 * metadata, kind and apiVersion of custom resources and of the resources embedded in them: brought into their form, and checked.
 *
 * A body's metadata must be readable; what is stored already is repaired by leaving out what is not.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/objectmeta
 */
import { inKeyOrder, jsonNodeOf, type JsonObject } from "../../../api/codec/json-document.ts";
import { child, type FieldError, formatFieldError, index, invalid, key, required } from "../../../api/meta/field-error.ts";
import { dns1035Label, pathSegmentName } from "../../../api/meta/names.ts";
import type { ApiObject, ObjectMeta } from "../../../api/meta/object-meta.ts";
import { isMap, type JsonMap } from "../../../api/patch/json-value.ts";
import { canonical } from "../../../api/schema/canonical.ts";
import { diagnose } from "../../../api/schema/diagnose.ts";
import { builtInFacts, type StructType } from "../../../api/schema/facts.ts";
import { validateMeta } from "../../generic/object-meta.ts";
import { DROPPED, mapEntries, mapItems } from "./prune.ts";
import type { Structure } from "./structure.ts";

export interface CoerceOptions {
  /** Leave out what is of a wrong type, instead of throwing. */
  readonly repair?: boolean;
  /** Nulls that the schema does not want stay, for validation to refuse: those of an apply. */
  readonly keepNulls?: boolean;
  readonly report?: ((path: string) => void) | undefined;
}

/** Metadata or a type that cannot be read. The message is for the client. */
export class MalformedError extends Error {
  override readonly name = "MalformedError";
  /** Of a resource inside another; undefined: of the object's own metadata. */
  readonly at: FieldError | undefined;
  constructor(message: string, at?: FieldError) {
    super(message);
    this.at = at;
  }
}

function objectMetaType(): StructType { return builtInFacts.structNamed("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")!; }

/** In canonical form. Throws MalformedError, in the decoder's words. */
export function coerceMetadata(metadata: unknown, path: string, { repair = false, report }: CoerceOptions): JsonObject {
  const type = objectMetaType();
  const { object, clean } = canonical(type, metadata ?? {});
  if (clean || repair) return object;
  const { error, strict } = diagnose(type, jsonNodeOf(inKeyOrder(metadata))); // a map is read in the order of its keys
  if (error !== undefined) throw new MalformedError(error);
  for (const text of strict) {
    const name = /^unknown field "(.*)"$/.exec(text)?.[1];
    if (name !== undefined) report?.(`${child(path, "metadata")}.${name}`);
  }
  return object;
}

/** `value` itself in form, if it is a resource, and those in it; with an error if something cannot be read, and as it was then. */
export function inForm(value: unknown, structure: Structure, path: string): { readonly value: unknown; readonly error?: FieldError } {
  try {
    return { value: coerce(value, structure, path, {}) };
  } catch (error) {
    if (error instanceof MalformedError && error.at) return { value, error: error.at };
    throw error;
  }
}

/** Those of the resources inside an object, not its own. Returns it as it is if nothing changes. Throws MalformedError. */
export function coerceEmbedded<T extends JsonMap>(object: T, root: Structure, options: CoerceOptions): T {
  return mapEntries(object, (name, field) => coerce(field, root.at(name), name, options)) as T;
}

function coerce(value: unknown, structure: Structure | undefined, path: string, options: CoerceOptions): unknown {
  if (!structure?.has.embedded) return value;
  if (Array.isArray(value)) return mapItems(value, (item, i) => coerce(item, structure.items, index(path, i), options));
  if (!isMap(value)) return value;
  return mapEntries(value, (name, field) => {
    const own = structure.embedded ? ownField(name, field, path, options) : field;
    if (own === DROPPED) return own;
    const property = structure.properties.get(name);
    return coerce(own, property ?? structure.additional, property ? child(path, name) : key(path, name), options);
  });
}

function ownField(name: string, value: unknown, path: string, options: CoerceOptions): unknown {
  if (name === "apiVersion" || name === "kind") {
    if (typeof value === "string") return value;
    if (options.repair) return DROPPED;
    return malformed(value, child(path, name), "must be a string");
  }
  if (name !== "metadata") return value;
  if (value === null) return {};
  if (!isMap(value)) return options.repair ? value : malformed(value, child(path, "metadata"), `json: cannot unmarshal ${jsonNodeOf(value).kind} into Go value of type v1.ObjectMeta`);
  try {
    const metadata = coerceMetadata(value, path, options);
    if (metadata["creationTimestamp"] === null) delete metadata["creationTimestamp"];
    return Bun.deepEquals(metadata, value) ? value : metadata;
  } catch (error) {
    if (error instanceof MalformedError) malformed(value, child(path, "metadata"), error.message);
    throw error;
  }
}

function malformed(value: unknown, path: string, why: string): never {
  const error = invalid(path, inKeyOrder(value), why);
  throw new MalformedError(formatFieldError(error), error);
}

/** Those of the resources inside an object, not its own. */
export function* validateEmbedded(object: JsonMap, root: Structure): Iterable<FieldError> {
  for (const [name, field] of Object.entries(object)) yield* validateResources(field, root.at(name), name);
}

/** `value` itself, if it is one, and those in it. */
export function* validateResources(value: unknown, structure: Structure | undefined, path: string): Iterable<FieldError> {
  if (!structure?.has.embedded) return;
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) yield* validateResources(item, structure.items, index(path, i));
    return;
  }
  if (!isMap(value)) return;
  if (structure.embedded) yield* validateOwn(value, path);
  for (const [name, field] of Object.entries(value)) {
    const property = structure.properties.get(name);
    yield* validateResources(field, property ?? structure.additional, property ? child(path, name) : key(path, name));
  }
}

function* validateOwn(value: JsonMap, path: string): Iterable<FieldError> {
  const { apiVersion, kind, metadata } = value;
  yield* text(child(path, "apiVersion"), apiVersion, (given) => (given.split("/").length > 2 ? `unexpected GroupVersion string: ${given}` : undefined));
  yield* text(child(path, "kind"), kind, (given) => {
    const problems = dns1035Label(given.toLowerCase());
    return problems.length > 0 ? `may have mixed case, but should otherwise match: ${problems.join(",")}` : undefined;
  });
  if (metadata === undefined) return;
  const { object } = canonical(objectMetaType(), metadata);
  const meta = object as unknown as ObjectMeta;
  const named: ApiObject = { apiVersion: "", kind: "", metadata: { ...meta, name: meta.name || "fakename" } };
  const at = child(path, "metadata");
  for (const error of validateMeta(named, (meta.namespace ?? "") !== "", pathSegmentName, { anyFinalizer: true })) yield { ...error, field: error.field.replace(/^metadata/, at) };
}

function* text(at: string, value: unknown, problem: (text: string) => string | undefined): Iterable<FieldError> {
  if (value === undefined) yield required(at, "");
  else if (typeof value !== "string") yield invalid(at, value, "must be a string");
  else if (value === "") yield invalid(at, value, "must not be empty");
  else {
    const detail = problem(value);
    if (detail !== undefined) yield invalid(at, value, detail);
  }
}
