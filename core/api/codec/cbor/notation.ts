/**
 * CBOR for people: diagnostic notation (RFC 8949, 8), as the API server has it in messages.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/runtime/serializer/cbor/internal/modes/diagnostic.go, github.com/fxamacker/cbor/v2 diagnose.go
 */
import { isUtf8 } from "node:buffer";
import { CborBytes, CborFloat, type CborItem, CborMap, CborSimple, CborTag } from "./items.ts";

export function cborNotation(item: CborItem): string {
  if (typeof item === "string") return quoted(item, '"');
  if (item === null || typeof item !== "object") return String(item);
  if (item instanceof CborBytes) return item.bytes.length > 0 && isUtf8(item.bytes) ? quoted(Buffer.from(item.bytes).toString(), "'") : `h'${Buffer.from(item.bytes).toString("hex")}'`;
  if (item instanceof CborFloat) return floatText(item.value);
  if (item instanceof CborMap) return `{${item.flat.map((one, i) => `${i === 0 ? "" : i % 2 === 0 ? ", " : ": "}${cborNotation(one)}`).join("")}}`;
  if (item instanceof CborTag) return `${item.number}(${cborNotation(item.content)})`;
  if (item instanceof CborSimple) return item.value === 23 ? "undefined" : `simple(${item.value})`;
  return Array.isArray(item) ? `[${item.map((one: CborItem) => cborNotation(one)).join(", ")}]` : '""'; // a text that is none was refused before
}

function quoted(text: string, quote: '"' | "'"): string {
  const body = text.replace(/[\t\n\r\\"']/g, (sign) => (sign === "\t" ? "\\t" : sign === "\n" ? "\\n" : sign === "\r" ? "\\r" : sign === "\\" || sign === quote ? `\\${sign}` : sign))
    .replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return quote + body + quote;
}

/** A float shows that it is one. */
function floatText(value: number): string {
  const text = Object.is(value, -0) ? "-0" : String(value);
  const [digits = "", exponent] = text.split("e");
  return `${digits.includes(".") ? digits : `${digits}.0`}${exponent === undefined ? "" : `e${exponent}`}`;
}
