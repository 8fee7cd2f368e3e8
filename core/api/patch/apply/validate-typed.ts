/**
 * Whether a configuration fits its schema: no unknown fields, scalars of the right kind, no two items of a list with the same key.
 * Throws TypedError with every misfit.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 typed/validate.go
 */
import { goNumber } from "../../meta/go-float.ts";
import { formatGo, goTypeOf, isMap, isScalar, type JsonMap } from "../json-value.ts";
import { childNode, type ListSchema, type MapSchema, type ScalarKind, type SchemaNode, shapeOf } from "../schema.ts";
import { fieldElement, formatElement, itemElement } from "./path-element.ts";
import { type Misfit, TypedError } from "./typed-error.ts";

export function validateTyped(schema: SchemaNode, object: JsonMap, { duplicates = false }: { readonly duplicates?: boolean } = {}): void {
  const misfits: Misfit[] = [];
  new Validator(misfits, duplicates).value(schema, object, "");
  if (misfits.length > 0) throw new TypedError(misfits);
}

class Validator {
  readonly #misfits: Misfit[];
  readonly #duplicates: boolean;
  constructor(misfits: Misfit[], duplicates: boolean) { this.#misfits = misfits; this.#duplicates = duplicates; }

  value(schema: SchemaNode, value: unknown, path: string): void {
    if (value === null || value === undefined) return;
    switch (shapeOf(schema, value)) {
      case "scalar": {
        const message = misfitOf(schema.scalar!, value);
        if (message !== undefined) this.#misfits.push({ path, message });
        return;
      }
      case "map":
        if (isMap(value)) this.#map(schema.map!, value, path);
        else this.#misfits.push({ path, message: `expected map, got &{${formatGo(value)}}` });
        return;
      case "list":
        if (Array.isArray(value)) this.#list(schema.list!, value, path);
        else this.#misfits.push({ path, message: `expected list, got &{${formatGo(value)}}` });
    }
  }

  #map(schema: MapSchema, map: JsonMap, path: string): void {
    for (const [key, value] of Object.entries(map)) {
      const child = childNode(schema, key);
      const at = `${path}${formatElement(fieldElement(key))}`;
      if (child === undefined) { this.#misfits.push({ path: at, message: "field not declared in schema" }); return; }
      this.value(child, value, at);
    }
  }

  #list(schema: ListSchema, list: readonly unknown[], path: string): void {
    const seen = new Set<string>();
    for (const [at, item] of list.entries()) {
      let element = `i:${at}`;
      if (!schema.atomic) {
        try { element = itemElement(schema, item); } catch (error) {
          if (!(error instanceof TypedError)) throw error;
          this.#misfits.push({ path, message: `element ${at}: ${error.message}` });
          return;
        }
        if (seen.has(element) && !this.#duplicates) this.#misfits.push({ path, message: `duplicate entries for key ${formatElement(element)}` });
        seen.add(element);
      }
      this.value(schema.items, item, `${path}${formatElement(element)}`);
    }
  }
}

function misfitOf(kind: ScalarKind, value: unknown): string | undefined {
  switch (kind) {
    case "numeric": return typeof value === "number" || typeof value === "bigint" ? undefined : `expected numeric (int or float), got ${goTypeOf(value)}`;
    case "string": return typeof value === "string" ? undefined : `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
    case "boolean": return typeof value === "boolean" ? undefined : `expected boolean, got &{${formatGo(value)}}`;
    case "untyped": return isScalar(value) ? undefined : `expected any scalar, got &{${formatGo(value)}}`;
  }
}

/** A value as Go's %#v prints it. */
function goSyntax(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  if (isMap(value)) return `map[string]interface {}{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${goSyntax(value[key])}`).join(", ")}}`;
  return typeof value === "string" ? JSON.stringify(value) : value === null ? "interface {}(nil)" : typeof value === "number" ? goNumber(value) : String(value);
}
