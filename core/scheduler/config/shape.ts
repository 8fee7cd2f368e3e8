/** Reads a JSON value against a shape, strictly: what is not in the shape, or of another type, is a problem with its path. */
import { parseDurationMs } from "../../api/meta/duration.ts";

export type Shape = "string" | "integer" | "boolean" | "duration" | "base64" | "number" | "any" | { readonly list: Shape } | { readonly fields: Readonly<Record<string, Shape>> };

/** Problems in upstream's words: `unknown field "profiles[0].nme"`. */
export function misfits(value: unknown, shape: Shape, path = ""): string[] {
  if (value === null || value === undefined || shape === "any") return [];
  if (typeof shape === "string") return fits(value, shape) ? [] : [`${path}: ${JSON.stringify(value)} is not ${NAMES[shape]}`];
  if ("list" in shape) return Array.isArray(value) ? value.flatMap((item, i) => misfits(item, shape.list, `${path}[${i}]`)) : [`${path}: is not a list`];
  if (typeof value !== "object" || Array.isArray(value)) return [`${path || "the document"}: is not an object`];
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = path === "" ? name : `${path}.${name}`;
    const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
    return field === undefined ? [`unknown field ${JSON.stringify(at)}`] : misfits(inner, field, at);
  });
}

const NAMES: Readonly<Record<Exclude<Shape, object>, string>> = { string: "a string", integer: "a whole number", boolean: "a boolean", duration: "a duration such as 30s", base64: "base64", number: "a number", any: "anything" };

function fits(value: unknown, shape: Exclude<Shape, object>): boolean {
  switch (shape) {
    case "integer": return Number.isSafeInteger(value);
    case "number": return typeof value === "number";
    case "boolean": return typeof value === "boolean";
    case "duration": return typeof value === "string" && isDuration(value);
    case "base64": return typeof value === "string" && /^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(value);
    case "string": return typeof value === "string";
    case "any": return true;
  }
}

function isDuration(text: string): boolean {
  try {
    parseDurationMs(text);
    return true;
  } catch { // what it says about the text, the caller says better
    return false;
  }
}
