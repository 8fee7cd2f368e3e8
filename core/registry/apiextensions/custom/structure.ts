/**
 * A structural schema as those who walk objects need it: one node a schema, made when first looked at, with everything looked up once.
 *
 *   const structure = structureOf(version.schema?.openAPIV3Schema)
 *
 * Pruning, defaulting and the rest ask a node about the value it stands for. What stands under allOf, anyOf, oneOf and not only restricts values; it is
 * asked by validation alone (clauses).
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/{structural,convert}.go
 */
import type { JSONSchemaProps, ValidationRule } from "../../../api/gen/apiextensions.v1.ts";
import { compileRegex, type Regex } from "../../../cel/regex.ts";
import { additionalOf, itemsOf } from "../structural.ts";
import { formatCheck, type FormatCheck } from "./formats.ts";

export type Schema = Readonly<JSONSchemaProps>;

export interface Clauses {
  readonly allOf: readonly Structure[];
  readonly anyOf: readonly Structure[];
  readonly oneOf: readonly Structure[];
  readonly not: Structure | undefined;
}

export class Structure {
  readonly schema: Schema;
  readonly type: string;
  readonly nullable: boolean;
  readonly intOrString: boolean;
  /** Keeps what it does not know. */
  readonly preserves: boolean;
  /** Is a resource of its own: has apiVersion, kind and metadata. */
  readonly embedded: boolean;
  /** Undefined: none. A default of null is none. */
  readonly byDefault: unknown;
  readonly properties: ReadonlyMap<string, Structure>;
  /** Whether something is said about keys that are no property. */
  readonly hasAdditional: boolean;
  /** What those keys hold; undefined if nothing is said of that. */
  readonly additional: Structure | undefined;
  readonly items: Structure | undefined;
  readonly listType: string | undefined;
  readonly listMapKeys: readonly string[];
  readonly rules: readonly ValidationRule[];
  /** Properties with a default. */
  readonly defaulted: readonly (readonly [name: string, structure: Structure])[];
  /** Whether the node or what is below it has a default, an embedded resource, a set or a map of a list, a rule: else those who look for one need not look. */
  readonly has: { readonly defaults: boolean; readonly embedded: boolean; readonly keyedLists: boolean; readonly rules: boolean };

  #clauses: Clauses | undefined;
  #pattern: Regex | string | undefined;
  #format: FormatCheck | undefined;

  constructor(schema: Schema, { embedded = false }: { readonly embedded?: boolean } = {}) {
    this.schema = schema;
    this.type = schema.type ?? "";
    this.nullable = schema.nullable === true;
    this.intOrString = schema["x-kubernetes-int-or-string"] === true;
    this.preserves = schema["x-kubernetes-preserve-unknown-fields"] === true;
    this.embedded = embedded || schema["x-kubernetes-embedded-resource"] === true;
    this.byDefault = schema.default ?? undefined;
    this.properties = new Map(Object.entries(schema.properties ?? {}).map(([name, property]) => [name, new Structure(property)]));
    this.hasAdditional = schema.additionalProperties !== undefined && schema.additionalProperties !== null;
    const [additional, items] = [additionalOf(schema), itemsOf(schema)];
    this.additional = additional && new Structure(additional);
    this.items = items && new Structure(items);
    this.listType = schema["x-kubernetes-list-type"];
    this.listMapKeys = schema["x-kubernetes-list-map-keys"] ?? [];
    this.rules = schema["x-kubernetes-validations"] ?? [];
    this.defaulted = [...this.properties].filter(([, property]) => property.byDefault !== undefined);
    const below = [...this.properties.values(), ...(this.additional ? [this.additional] : []), ...(this.items ? [this.items] : [])];
    const any = (part: "defaults" | "embedded" | "keyedLists" | "rules"): boolean => below.some(({ has }) => has[part]);
    this.has = {
      defaults: this.byDefault !== undefined || any("defaults"),
      embedded: this.embedded || any("embedded"),
      keyedLists: this.listType === "set" || this.listType === "map" || any("keyedLists"),
      rules: this.rules.length > 0 || any("rules"),
    };
  }

  /** What the value under `key` of an object is. */
  at(key: string): Structure | undefined { return this.properties.get(key) ?? this.additional; }

  get clauses(): Clauses {
    if (this.#clauses) return this.#clauses;
    const { allOf = [], anyOf = [], oneOf = [], not } = this.schema;
    const made = (schemas: readonly Schema[]): Structure[] => schemas.map((schema) => new Structure(schema));
    return (this.#clauses = { allOf: made(allOf), anyOf: made(anyOf), oneOf: made(oneOf), not: not && new Structure(not) });
  }

  /** A pattern that was stored although it cannot be read is told by its error. */
  get pattern(): Regex | string | undefined {
    const { pattern } = this.schema;
    if (!pattern) return undefined;
    if (this.#pattern !== undefined) return this.#pattern;
    try {
      this.#pattern = compileRegex(pattern);
    } catch (error) {
      this.#pattern = (error as Error).message;
    }
    return this.#pattern;
  }

  /** Undefined for a format nobody checks. */
  get format(): FormatCheck | undefined { return (this.#format ??= formatCheck(this.type, this.schema.format ?? "")); }
}

/** The root of a version: a resource, whatever its schema says; without one, an object of which nothing is known. */
export function structureOf(schema: Schema | undefined): Structure { return new Structure(schema ?? {}, { embedded: true }); }
