/** Reads a JSON value against a shape, strictly, and says what does not fit as Go's decoder does: users know its words. */
import { parseDurationMs } from "../../api/meta/duration.ts";
import { jsonKindOf } from "../../api/patch/json-value.ts";

type Text = "string" | "duration" | "base64";
type Whole = "int32" | "int64";

export type Shape =
  | Text | Whole | "boolean" | "float32" | "any"
  /** A text of a type that has a name. */
  | { readonly text: string }
  | { readonly list: Shape }
  /** A map, by whatever keys. */
  | { readonly entries: Shape }
  /** `go`: what the type is called, with its package. */
  | { readonly go: string; readonly fields: Readonly<Record<string, Shape>> };

/** Source: Go encoding/json UnmarshalTypeError; sigs.k8s.io/json for `unknown` */
export interface Misfits {
  /** The first value of another type: what is there could not be read at all. */
  readonly wrong: string | undefined;
  /** `unknown field "profiles[0].nme"`, in the order they are found. */
  readonly unknown: readonly string[];
}

export function misfits(value: unknown, shape: Shape): Misfits {
  const found = { wrong: undefined as string | undefined, unknown: [] as string[] };
  look(value, shape, { found, path: "", names: [], owner: "" });
  return found;
}

interface At {
  readonly found: { wrong: string | undefined; readonly unknown: string[] };
  /** With indexes, and without. */
  readonly path: string;
  readonly names: readonly string[];
  /** The type that has the field. */
  readonly owner: string;
}

function look(value: unknown, shape: Shape, at: At): void {
  if (value === null || value === undefined || shape === "any") return;
  const wrong = (problem: string): void => void (at.found.wrong ??= problem);
  const mistaken = (): void => wrong(`json: cannot unmarshal ${told(value, shape)} into Go ${at.names.length === 0 ? "value" : `struct field ${at.owner}.${at.names.join(".")}`} of type ${typeOf(shape)}`);
  if (typeof shape === "string") {
    if (!hasType(value, shape)) return mistaken();
    const problem = unreadable(value, shape);
    return problem === undefined ? undefined : wrong(problem);
  }
  if ("text" in shape) return typeof value === "string" ? undefined : mistaken();
  if ("list" in shape) return Array.isArray(value) ? value.forEach((item, i) => look(item, shape.list, { ...at, path: `${at.path}[${i}]` })) : mistaken();
  if (typeof value !== "object" || Array.isArray(value)) return mistaken();
  if ("entries" in shape) return Object.values(value).forEach((item) => look(item, shape.entries, at));
  for (const [name, inner] of Object.entries(value)) {
    const path = at.path === "" ? name : `${at.path}.${name}`;
    if (Object.hasOwn(shape.fields, name)) look(inner, shape.fields[name]!, { found: at.found, path, names: [...at.names, name], owner: shape.go.split(".").at(-1)! });
    else at.found.unknown.push(`unknown field ${JSON.stringify(path)}`);
  }
}

function hasType(value: unknown, shape: Text | Whole | "boolean" | "float32"): boolean {
  switch (shape) {
    case "int32": return Number.isInteger(value) && Math.abs(value as number) <= 2 ** 31 - 1;
    case "int64": return Number.isInteger(value);
    case "float32": return typeof value === "number";
    case "boolean": return typeof value === "boolean";
    default: return typeof value === "string";
  }
}

/** A text that is none of its kind. */
function unreadable(value: unknown, shape: Text | Whole | "boolean" | "float32"): string | undefined {
  if (shape === "duration" && !isDuration(value as string)) return `time: invalid duration ${JSON.stringify(value)}`;
  if (shape !== "base64") return undefined;
  const bad = (value as string).search(/[^A-Za-z0-9+/=\s]/);
  return bad < 0 ? undefined : `illegal base64 data at input byte ${bad}`;
}

function isDuration(text: string): boolean {
  try {
    parseDurationMs(text);
    return true;
  } catch { // what it says about the text, Go says in other words
    return false;
  }
}

function typeOf(shape: Exclude<Shape, "any">): string {
  if (typeof shape !== "string") {
    if ("list" in shape) return `[]${typeOf(shape.list as Exclude<Shape, "any">)}`;
    if ("entries" in shape) return `map[string]${typeOf(shape.entries as Exclude<Shape, "any">)}`;
    return "text" in shape ? shape.text : shape.go;
  }
  return shape === "boolean" ? "bool" : shape === "duration" ? "string" : shape === "base64" ? "[]uint8" : shape;
}

/** Numbers that are too large, or not whole, are shown. */
function told(value: unknown, shape: Shape): string {
  if (typeof value === "number") return shape === "int32" || shape === "int64" ? `number ${value}` : "number";
  return jsonKindOf(value);
}
