/**
 * Types of expressions.
 *
 *   listOf(STRING), mapOf(STRING, INT), optionalOf(INT)
 *   struct("kubernetes.URL")          a type with fields or one of a library
 *   param("A")                        stands for any one type
 *   formatType(type)                  "list(string)"
 *
 * Source: cel-go common/types/types.go, checker/{types,format}.go
 */
export type Kind = "none" | "any" | "bool" | "bytes" | "double" | "duration" | "dyn" | "error" | "int" | "list" | "map" | "null" | "opaque" | "param" | "string" | "struct" | "timestamp" | "type" | "uint";

export class Type {
  readonly kind: Kind;
  /** What type(x) is called at run time. */
  readonly name: string;
  readonly parameters: readonly Type[];
  /** How many types it is made of. */
  readonly parts: number;
  #text: string | undefined;

  constructor(kind: Kind, name: string, parameters: readonly Type[] = []) {
    this.kind = kind; this.name = name; this.parameters = parameters;
    this.parts = parameters.reduce((sum, { parts }) => sum + parts, 1);
  }

  /** As messages show it. Two types with the same text are the same type. */
  get text(): string { return (this.#text ??= formatType(this)); }
}

export const BOOL = new Type("bool", "bool");
export const BYTES = new Type("bytes", "bytes");
export const DOUBLE = new Type("double", "double");
export const DURATION = new Type("duration", "google.protobuf.Duration");
export const DYN = new Type("dyn", "dyn");
export const ERROR = new Type("error", "error");
export const INT = new Type("int", "int");
/** Of a field that is declared without one: nothing but dyn stands for it. */
export const NONE = new Type("none", "");
export const NULL = new Type("null", "null_type");
export const STRING = new Type("string", "string");
export const TIMESTAMP = new Type("timestamp", "google.protobuf.Timestamp");
export const TYPE = new Type("type", "type");
export const UINT = new Type("uint", "uint");

export function listOf(element: Type): Type { return new Type("list", "list", [element]); }
export function mapOf(key: Type, value: Type): Type { return new Type("map", "map", [key, value]); }
export function optionalOf(value: Type): Type { return opaque("optional_type", value); }
export function opaque(name: string, ...parameters: readonly Type[]): Type { return new Type("opaque", name, parameters); }
export function struct(name: string): Type { return new Type("struct", name); }
export function param(name: string): Type { return new Type("param", name); }
/** The type of a type. */
export function typeOfType(of: Type): Type { return new Type("type", "type", [of]); }

export const LIST = listOf(DYN);
export const MAP = mapOf(DYN, DYN);
export const OPTIONAL = opaque("optional_type");

export function isDyn({ kind }: Type): boolean { return kind === "dyn" || kind === "any"; }
export function isDynOrError(type: Type): boolean { return type.kind === "error" || isDyn(type); }
export function isOptional(type: Type): boolean { return type.kind === "opaque" && type.name === "optional_type"; }
/** What is in an optional; itself for another type. */
export function withoutOptional(type: Type): Type { return isOptional(type) ? type.parameters[0]! : type; }

export function sameType(a: Type, b: Type): boolean { return a === b || (a.kind === b.kind && a.text === b.text); }

/** Parameters are the same whatever they are called. */
export function equivalentTypes(a: Type, b: Type): boolean {
  if (a === b) return true;
  if (a.kind !== b.kind || a.parameters.length !== b.parameters.length || (a.kind !== "param" && a.name !== b.name)) return false;
  return a.parameters.every((parameter, i) => equivalentTypes(parameter, b.parameters[i]!));
}

const SHOWN: Partial<Readonly<Record<Kind, string>>> = { any: "any", duration: "duration", error: "!error!", null: "null", timestamp: "timestamp" };

function formatType(type: Type): string {
  const shown = SHOWN[type.kind] ?? type.name;
  return type.parameters.length === 0 ? shown : `${shown}(${type.parameters.map((parameter) => parameter.text).join(", ")})`;
}

/** "string.(int, int)" for a method, "(int, int)" for a function. */
export function formatArguments(types: readonly Type[], method: boolean): string {
  const args = `(${(method ? types.slice(1) : types).map(({ text }) => text).join(", ")})`;
  return method ? `${types[0]!.text}.${args}` : args;
}
