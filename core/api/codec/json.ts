/**
 * JSON in and out, byte for byte as the API server writes it.
 *
 * Out: JSON.stringify's text with Go's HTML escapes (<, >, &, U+2028 and U+2029) and a final newline; pretty adds two spaces and no newline.
 * In: JSON.parse, unless the text has duplicate keys, integers that a double would round, halves of characters, or an error to report: then json-document.ts.
 * Integers outside ±2^53 are bigints from here to storage, and are written back digit for digit.
 */
import { isUtf8 } from "node:buffer";
import { DEPTH_MAX, jsonValueOf, parseJsonDocument, tooDeep, type JsonNode, type JsonValue } from "./json-document.ts";
import { replaceOctets } from "./not-utf8.ts";

/** `document` is there if duplicates were looked for and found; `hasFractions`: a number is written with a point, an exponent or very many digits, whatever its value. */
export interface ParsedJson { readonly value: JsonValue; readonly document: JsonNode | undefined; readonly hasFractions: boolean }

/** JSON.rawJSON is in every engine we run on, but not in TypeScript's library. */
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;

const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true }); // a byte order mark is no JSON
const BYTES = new TextEncoder();
/** An integer that a double may round, or half a character, which Go replaces. */
const CAREFUL = /\d{16}|\\u[dD][89a-fA-F]/;
const REPLACED = "\ufffd";
const ESCAPED = /[<>&\u2028\u2029]/;
const ESCAPED_ALL = /[<>&\u2028\u2029]/g;

/** Throws JsonSyntaxError with Go's message. */
export function parseJson(text: string): ParsedJson {
  let value: JsonValue;
  try { value = JSON.parse(text) as JsonValue; }
  catch { // the careful reader says what is wrong in Go's words
    const document = parseJsonDocument(text);
    return { value: jsonValueOf(document), document: undefined, hasFractions: false };
  }
  const { colons, hasFractions } = survey(text);
  const duplicates = colons !== countKeys(value);
  if (!duplicates && !CAREFUL.test(text)) return { value, document: undefined, hasFractions };
  const document = parseJsonDocument(text);
  return { value: jsonValueOf(document), document: duplicates ? document : undefined, hasFractions: hasFractions || /\d{19}/.test(text) };
}

/** Of what is no UTF-8 each byte is replaced, as in Go. */
export function decodeText(bytes: Uint8Array): string {
  const text = UTF8.decode(bytes);
  return text.includes(REPLACED) && !isUtf8(bytes) ? replaceOctets(bytes, () => REPLACED.charCodeAt(0)) : text;
}

/** Whether the API server sends otherwise what JSON.stringify has written. */
export function isEscaped(text: string): boolean { return ESCAPED.test(text); }

/** The text of an object as the API server sends it, without the final newline. */
export function jsonText(value: unknown, { pretty = false, indent = pretty ? 2 : undefined }: { readonly pretty?: boolean; readonly indent?: number } = {}): string {
  const text = stringify(value, indent);
  return ESCAPED.test(text) ? text.replace(ESCAPED_ALL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`) : text;
}

export function encodeJson(value: unknown, options: { readonly pretty?: boolean } = {}): Uint8Array {
  return BYTES.encode(options.pretty ? jsonText(value, options) : `${jsonText(value)}\n`);
}

/** JSON.stringify for values with integers that no double holds: their digits are written. */
export function stringify(value: unknown, indent?: number): string {
  try { return JSON.stringify(value, undefined, indent); }
  catch (error) { // a bigint somewhere; the replacer is four times as slow, so it waits for the one object in a million
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(value, bigintAsNumber, indent);
  }
}

function bigintAsNumber(_key: string, value: unknown): unknown { return typeof value === "bigint" ? rawJson(String(value)) : value; }

/** Colons outside strings: in well-formed JSON, one for every key of every object. Throws if the text nests too deep for those who come after. */
function survey(text: string): { readonly colons: number; readonly hasFractions: boolean } {
  let colons = 0;
  let depth = 0;
  let hasFractions = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 58) colons++;
    else if (code === 34) i = stringEnd(text, i);
    else if (code === 123 || code === 91) { if (++depth > DEPTH_MAX) throw tooDeep(); }
    else if (code === 125 || code === 93) depth--;
    else if (code === 46 || code === 69 || (code === 101 && isDigit(text.charCodeAt(i - 1)))) hasFractions = true; // an e is in true and false, too
  }
  return { colons, hasFractions };
}

function isDigit(code: number): boolean { return code >= 48 && code <= 57; }

/** The index of the quote that closes the string opened at `start`. */
function stringEnd(text: string, start: number): number {
  let end = text.indexOf("\"", start + 1);
  while (end > 0 && text.charCodeAt(end - 1) === 92) {
    let slashes = 1;
    while (text.charCodeAt(end - 1 - slashes) === 92) slashes++;
    if (slashes % 2 === 0) break;
    end = text.indexOf("\"", end + 1);
  }
  return end;
}

function countKeys(value: JsonValue): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) for (const item of value) count += countKeys(item);
  else for (const key in value) count += 1 + countKeys(value[key]!);
  return count;
}
