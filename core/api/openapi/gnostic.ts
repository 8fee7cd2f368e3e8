/**
 * How gnostic's messages follow an OpenAPI document in JSON: field by field, except that maps are lists of named values, that "one of" is a message around the choice, and that
 * values of any shape (extensions, enums) are YAML text.
 *
 * Source: github.com/google/gnostic-models openapiv2/OpenAPIv2.proto, openapiv3/OpenAPIv3.proto
 */
import { stringify } from "../codec/json.ts";
import { writeYaml, YamlTextError } from "../codec/yaml-writer.ts";
import { boolField, doubleField, intField, nest, textField } from "../../protobuf/fields.ts";
import type { BackwardWriter } from "../../protobuf/wire.ts";

export type Json = Readonly<Record<string, unknown>>;
/** Writes the content of a message. */
export type Message = (writer: BackwardWriter, value: unknown) => void;
/** One field of a message: its number, where it is in JSON, and what it is. */
export interface Field { readonly number: number; readonly key: string; readonly type: "string" | "bool" | "int64" | "double" | Message; readonly repeated?: boolean }

export function field(number: number, key: string, type: Field["type"]): Field { return { number, key, type }; }
export function many(number: number, key: string, type: Field["type"]): Field { return { number, key, type, repeated: true }; }

/** `extensions` is the number of the field that takes every x-… key. */
export function message(fields: readonly Field[], extensions?: number): Message {
  const descending = [...fields].sort((a, b) => b.number - a.number);
  return (writer, value) => {
    const json = jsonOf(value);
    if (extensions !== undefined) {
      for (const key of Object.keys(json).filter((name) => name.startsWith("x-")).reverse()) nest(writer, extensions, () => named(writer, key, () => anyValue(writer, json[key])));
    }
    for (const { number, key, type, repeated } of descending) {
      const found = json[key];
      if (found === undefined) continue;
      for (const item of repeated ? listOf(found).toReversed() : [found]) writeField(writer, number, type, item);
    }
  };
}

/** Documents of others go through here as well: one whose parts are of other types than OpenAPI has cannot be told. Throws. */
function jsonOf(value: unknown): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`an object was expected, not ${stringify(value ?? null).slice(0, SHOWN_MAX)}`);
  return value as Json;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`a list was expected, not ${stringify(value ?? null).slice(0, SHOWN_MAX)}`);
  return value;
}

const SHOWN_MAX = 100;

export function writeField(writer: BackwardWriter, number: number, type: Field["type"], value: unknown): void {
  if ((type === "string" || type === "bool") && typeof value !== (type === "string" ? "string" : "boolean")) throw new Error(`a ${type} was expected, not ${stringify(value ?? null).slice(0, SHOWN_MAX)}`);
  if (type === "string") textField(writer, number, value as string);
  else if (type === "bool") boolField(writer, number, value === true);
  else if (type === "int64") intField(writer, number, value as number);
  else if (type === "double") doubleField(writer, number, value as number);
  else nest(writer, number, () => type(writer, value));
}

/** { name = 1, value = 2 } */
function named(writer: BackwardWriter, name: string, writeValue: () => void): void {
  nest(writer, 2, writeValue);
  textField(writer, 1, name);
}

/** A map: repeated named values in field `number`. */
export function mapOf(number: number, value: Message): Message {
  return (writer, map) => { for (const [key, item] of Object.entries(jsonOf(map)).reverse()) nest(writer, number, () => named(writer, key, () => value(writer, item))); };
}

/** Any { yaml = 2 } */
export function anyValue(writer: BackwardWriter, value: unknown): void { textField(writer, 2, yamlOf(value)); }

/** JSON is YAML, too, and escapes what YAML has no character for. */
function yamlOf(value: unknown): string {
  try {
    return writeYaml(value);
  } catch (error) {
    if (error instanceof YamlTextError) return stringify(value);
    throw error;
  }
}
