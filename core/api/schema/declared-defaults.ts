/**
 * Defaults that the types themselves declare (`+default=…`): a container port's protocol, an RBD volume's pool.
 *
 * They fill what is absent, and what is the zero value of a field that is not a pointer, as upstream's generated defaulters do. Most defaults are
 * not declared but code; those belong to the resource. Types from which no declared default can be reached are not walked. What is filled in
 * stands last in its object: make the object canonical again before it is stored.
 */
import type { FieldInfo, StructType, Type } from "./facts.ts";

export class DeclaredDefaults {
  /** Whether a default is declared in the type or below it. */
  readonly #reaches = new Map<StructType, boolean>();
  /** Of types with defaults in or below them: the fields that this is about, a few of many. */
  readonly #concerned = new Map<StructType, readonly FieldInfo[]>();

  /** Changes `object` in place. */
  apply(type: StructType, object: object): void {
    if (!this.#reachesAny(type)) return;
    const target = object as Record<string, unknown>;
    for (const field of this.#fieldsOf(type)) {
      const value = target[field.name];
      if (field.default !== undefined && isUnset(field, value)) target[field.name] = field.default;
      else this.#descend(field.type, value);
    }
  }

  #fieldsOf(type: StructType): readonly FieldInfo[] {
    const known = this.#concerned.get(type);
    if (known) return known;
    const fields = type.fields.filter((field) => field.default !== undefined || this.#reachesBelow(field.type));
    this.#concerned.set(type, fields);
    return fields;
  }

  #descend(type: Type, value: unknown): void {
    if (typeof value !== "object" || value === null) return;
    if (type.kind === "struct") this.apply(type, value);
    else if (type.kind === "list" && this.#walks(type.items)) for (const item of value as unknown[]) this.#descend(type.items, item);
    else if (type.kind === "map" && this.#walks(type.values)) for (const item of Object.values(value)) this.#descend(type.values, item);
  }

  #walks(type: Type): boolean { return type.kind === "struct" && this.#reachesAny(type); }

  #reachesAny(type: StructType): boolean {
    const known = this.#reaches.get(type);
    if (known !== undefined) return known;
    this.#reaches.set(type, false); // no type that contains itself (JSONSchemaProps) declares a default
    const reaches = type.fields.some((field) => field.default !== undefined || this.#reachesBelow(field.type));
    this.#reaches.set(type, reaches);
    return reaches;
  }

  #reachesBelow(type: Type): boolean {
    switch (type.kind) {
      case "struct": return this.#reachesAny(type);
      case "list": return this.#reachesBelow(type.items);
      case "map": return this.#reachesBelow(type.values);
      default: return false;
    }
  }
}

function isUnset(field: FieldInfo, value: unknown): boolean {
  if (value === undefined || value === null) return field.pointer || !isZero(field.default); // a zero default of a plain field is what absence means
  return !field.pointer && isZero(value) && !isZero(field.default);
}

function isZero(value: unknown): boolean { return value === "" || value === 0 || value === false; }

export const declaredDefaults: DeclaredDefaults = new DeclaredDefaults();
