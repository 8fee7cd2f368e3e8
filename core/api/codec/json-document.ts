/**
 * JSON read the careful way: the tree keeps duplicate keys, the order of keys and the digits of numbers, and a syntax error reads as Go's does.
 *
 * JSON.parse is four times as fast and forgets all of that, so json.ts comes here only when the text needs it: a body that does not parse,
 * one with duplicate keys or numbers that a double cannot hold, or one whose errors are to be told to the client.
 */
import { goQuoteRune } from "./go-rune.ts";

export type JsonNode =
  | { readonly kind: "object"; readonly entries: readonly (readonly [key: string, value: JsonNode])[] }
  | { readonly kind: "array"; readonly items: readonly JsonNode[] }
  | { readonly kind: "string"; readonly value: string; /** Between its quotes, if that is something else. */ readonly written?: string }
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "null" };

/** What JSON.parse yields, except that integers outside ±2^53 that fit an int64 are bigints. */
export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject;
export interface JsonObject { [key: string]: JsonValue }

export class JsonSyntaxError extends Error { override readonly name = "JsonSyntaxError"; }

/** How deep a body may nest. encoding/json stops at 10 000; what walks objects here is recursive, and nothing real comes near either. */
export const DEPTH_MAX = 1000;
const INT64_MAX = 2n ** 63n - 1n;
/** With a sign. A number of a million digits takes a long time to be made. */
const INT64_DIGITS_MAX = 20;
const NULL: JsonNode = { kind: "null" };

export function tooDeep(): JsonSyntaxError { return new JsonSyntaxError("exceeded max depth"); }

/** Throws JsonSyntaxError with the message Go's encoding/json has for it. */
export function parseJsonDocument(text: string): JsonNode {
  const reader = new Reader(text);
  const node = reader.value(0);
  reader.end();
  return node;
}

/** The same tree from a value: no duplicates, numbers as JavaScript prints them. */
export function jsonNodeOf(value: unknown): JsonNode {
  switch (typeof value) {
    case "string": return { kind: "string", value };
    case "number": case "bigint": return { kind: "number", text: String(value) };
    case "boolean": return { kind: "bool", value };
    case "object":
      if (value === null) return NULL;
      if (Array.isArray(value)) return { kind: "array", items: value.map(jsonNodeOf) };
      return { kind: "object", entries: Object.entries(value).filter(([, v]) => v !== undefined).map(([k, v]) => [k, jsonNodeOf(v)] as const) };
    default: return NULL;
  }
}

/** Of duplicate keys the last one stands, as in JSON.parse. */
export function jsonValueOf(node: JsonNode): JsonValue {
  switch (node.kind) {
    case "object": {
      const object: JsonObject = {};
      for (const [key, value] of node.entries) setKey(object, key, jsonValueOf(value));
      return object;
    }
    case "array": return node.items.map(jsonValueOf);
    case "string": case "bool": return node.value;
    case "number": return numberOf(node.text);
    case "null": return null;
  }
}

/** What Go says to a number that no double holds, where it keeps numbers without knowing what they are for; undefined: there is none. */
export function endlessNumber(node: JsonNode, place = "value"): string | undefined {
  const found = endlessIn(node);
  return found === undefined ? undefined : `json: cannot unmarshal number ${found} into Go ${place} of type float64`;
}

function endlessIn(node: JsonNode): string | undefined {
  switch (node.kind) {
    case "number": return Number.isFinite(Number(node.text)) ? undefined : node.text;
    case "array": return first(node.items, endlessIn);
    case "object": return first(node.entries, ([, value]) => endlessIn(value));
    default: return undefined;
  }
}

function first<T>(items: Iterable<T>, find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Assignment that is safe for "__proto__", a legal label key as far as JSON is concerned. */
export function setKey<V>(object: Record<string, V>, key: string, value: V): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  else object[key] = value;
}

/** Its own keys in alphabetical order; what is below is shared. */
export function keysInOrder<T extends object>(value: T): T {
  const object = {} as Record<string, unknown>;
  for (const key of Object.keys(value).sort()) setKey(object, key, (value as Record<string, unknown>)[key]);
  return object as T;
}

/** A copy with its keys in order at every level, as Go writes a map; without what is undefined. */
export function inKeyOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inKeyOrder);
  if (typeof value !== "object" || value === null) return value;
  const object: Record<string, unknown> = {};
  for (const key of Object.keys(value).sort()) {
    const item: unknown = (value as Record<string, unknown>)[key];
    if (item !== undefined) setKey(object, key, inKeyOrder(item));
  }
  return object;
}

function numberOf(text: string): number | bigint {
  const value = Number(text);
  if (Number.isSafeInteger(value) || text.length > INT64_DIGITS_MAX || !/^-?\d+$/.test(text)) return value;
  const exact = BigInt(text);
  return exact <= INT64_MAX && exact >= -INT64_MAX - 1n ? exact : value;
}

const ESCAPES: Readonly<Record<string, string>> = { "\"": "\"", "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) { this.#text = text; }

  value(depth: number): JsonNode {
    this.#space();
    switch (this.#text[this.#at]) {
      case "{": return this.#object(depth + 1);
      case "[": return this.#array(depth + 1);
      case "\"": {
        const start = this.#at + 1;
        const value = this.#string();
        const written = this.#text.slice(start, this.#at - 1);
        return written === value ? { kind: "string", value } : { kind: "string", value, written };
      }
      case "t": return this.#word("true", { kind: "bool", value: true });
      case "f": return this.#word("false", { kind: "bool", value: false });
      case "n": return this.#word("null", NULL);
      default: return this.#number();
    }
  }

  end(): void {
    this.#space();
    if (this.#at < this.#text.length) this.#fail("after top-level value");
  }

  #object(depth: number): JsonNode {
    this.#enter(depth);
    const entries: [string, JsonNode][] = [];
    this.#space();
    if (this.#take("}")) return { kind: "object", entries };
    for (;;) {
      this.#space();
      if (this.#text[this.#at] !== "\"") this.#fail("looking for beginning of object key string");
      const key = this.#string();
      this.#space();
      if (!this.#take(":")) this.#fail("after object key");
      entries.push([key, this.value(depth)]);
      this.#space();
      if (this.#take("}")) return { kind: "object", entries };
      if (!this.#take(",")) this.#fail("after object key:value pair");
    }
  }

  #array(depth: number): JsonNode {
    this.#enter(depth);
    const items: JsonNode[] = [];
    this.#space();
    if (this.#take("]")) return { kind: "array", items };
    for (;;) {
      items.push(this.value(depth));
      this.#space();
      if (this.#take("]")) return { kind: "array", items };
      if (!this.#take(",")) this.#fail("after array element");
    }
  }

  #enter(depth: number): void {
    if (depth > DEPTH_MAX) throw tooDeep();
    this.#at++;
  }

  #string(): string {
    this.#at++;
    let value = "";
    for (;;) {
      PLAIN.lastIndex = this.#at;
      const plain = PLAIN.exec(this.#text)![0];
      value += plain;
      this.#at += plain.length;
      if (this.#take("\"")) return value.toWellFormed();
      if (!this.#take("\\")) this.#fail("in string literal");
      const escape = this.#text[this.#at];
      if (escape === "u") { value += this.#unicode(); continue; }
      const char = escape === undefined ? undefined : ESCAPES[escape];
      if (char === undefined) this.#fail("in string escape code");
      value += char;
      this.#at++;
    }
  }

  #unicode(): string {
    this.#at++;
    const start = this.#at;
    for (; this.#at < start + 4; this.#at++)
      if (!/[0-9a-fA-F]/.test(this.#text[this.#at] ?? "")) this.#fail("in \\u hexadecimal character escape");
    return String.fromCharCode(Number.parseInt(this.#text.slice(start, this.#at), 16));
  }

  #word(word: string, node: JsonNode): JsonNode {
    for (let i = 1; i < word.length; i++) {
      this.#at++;
      if (this.#text[this.#at] !== word[i]) this.#fail(`in literal ${word} (expecting '${word[i]}')`, true);
    }
    this.#at++;
    return node;
  }

  #number(): JsonNode {
    NUMBER.lastIndex = this.#at;
    const text = NUMBER.exec(this.#text)?.[0];
    if (text === undefined) {
      if (!this.#take("-")) this.#fail("looking for beginning of value");
      this.#fail("in numeric literal", true);
    }
    this.#at += text.length;
    const next = this.#text[this.#at];
    if (next === "." && !/[.eE]/.test(text)) { this.#at++; this.#fail("after decimal point in numeric literal", true); }
    if ((next === "e" || next === "E") && !/[eE]/.test(text)) {
      this.#at += /^[+-]/.test(this.#text.slice(this.#at + 1)) ? 2 : 1;
      this.#fail("in exponent of numeric literal", true);
    }
    return { kind: "number", text };
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      this.#at++;
    }
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  /** `within`: the end comes in the middle of a word or a number, for which Go tries a space. */
  #fail(where: string, within = false): never {
    const code = this.#text.codePointAt(this.#at) ?? (within ? 0x20 : undefined);
    if (code === 0xfeff) throw new JsonSyntaxError(`invalid character 'ï' ${where}`); // Go looks at bytes: a byte order mark begins with this one
    throw new JsonSyntaxError(code === undefined ? "unexpected end of JSON input" : `invalid character ${goQuoteRune(code)} ${where}`);
  }
}
