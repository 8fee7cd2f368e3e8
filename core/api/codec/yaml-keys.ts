/**
 * Keys of maps in YAML, which are texts in JSON: what each is written as, and what is said of those that have no text.
 *
 * Source: sigs.k8s.io/yaml yaml.go convertToJSONableObject, go.yaml.in/yaml/v2 decode.go mapping
 */
import { goFloat } from "../meta/go-float.ts";
import { goQuote } from "../meta/go-quote.ts";

/** Of a float32: so many digits tell it from every other. */
const DIGITS_MAX = 9;
const INT64_END = 2n ** 63n;

/** As the composer has it: whole numbers are bigints, maps Maps. `item`: what stands under it. Throws an Error. */
export function keyText(key: unknown, item: unknown): string {
  if (key instanceof Uint8Array) return Buffer.from(key).toString("utf8");
  if (Array.isArray(key) || key instanceof Map || key instanceof Set) throw new Error(`yaml: invalid map key: ${syntaxOf(key)}`);
  if (key === null || key === undefined || (typeof key === "bigint" && key >= INT64_END))
    throw new Error(`unsupported map key of type: ${typeof key === "bigint" ? "uint64" : "%!s(<nil>)"}, key: ${shown(key)}, value: ${shown(item)}`);
  return typeof key === "number" ? floatText(key) : String(key);
}

/** Upstream rounds them to 32 bits. */
function floatText(value: number): string {
  const rounded = Math.fround(value);
  if (!Number.isFinite(rounded)) return Number.isNaN(rounded) ? ".nan" : rounded > 0 ? ".inf" : "-.inf";
  for (let digits = 1; digits < DIGITS_MAX; digits++) {
    const short = Number(rounded.toPrecision(digits));
    if (Math.fround(short) === rounded) return goFloat(short);
  }
  return goFloat(Number(rounded.toPrecision(DIGITS_MAX)));
}

function shown(value: unknown): string { return value === null || value === undefined ? "<nil>" : syntaxOf(value); }

/** As Go's %#v prints what go-yaml has read. */
function syntaxOf(value: unknown): string {
  if (value === null || value === undefined) return "interface {}(nil)";
  if (typeof value === "string") return goQuote(value);
  if (value instanceof Uint8Array) return goQuote(Buffer.from(value).toString("utf8"));
  if (typeof value === "bigint") return value >= INT64_END ? `0x${value.toString(16)}` : String(value);
  if (typeof value === "number") return goFloat(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(syntaxOf).join(", ")}}`;
  if (value instanceof Map) return mapSyntax([...value]);
  return value instanceof Set ? mapSyntax([...value].map((key) => [key, null])) : String(value);
}

function mapSyntax(entries: readonly (readonly [unknown, unknown])[]): string {
  const texts = entries.map(([key, item]) => [syntaxOf(key), syntaxOf(item)] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[interface {}]interface {}{${texts.map(([key, item]) => `${key}:${item}`).join(", ")}}`;
}
