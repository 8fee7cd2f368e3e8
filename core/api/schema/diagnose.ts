/**
 * Why a body does not fit its type, in the words of the API server's decoder (sigs.k8s.io/json over encoding/json).
 *
 * Called only when canonical() was not clean or a key stood twice. It walks the document in its own order, as the decoder does, because the
 * first wrong type is the one reported, unknown and duplicate fields are listed in the order met, and a type with a decoder of its own
 * (Quantity, Time …) stops everything.
 */
import { errorText } from "../meta/error-text.ts";
import { parseDurationNs } from "../meta/duration.ts";
import { goQuote } from "../meta/go-quote.ts";
import { parseQuantity, withoutSpaces } from "../meta/quantity.ts";
import { endlessNumber, type JsonNode } from "../codec/json-document.ts";
import { isBase64 } from "./canonical.ts";
import { goTypeName } from "./go-type-name.ts";
import { timeParseError } from "./time-parse-error.ts";
import type { FieldInfo, SpecialType, StructType, Type } from "./facts.ts";

export interface Diagnosis {
  /** The message of the fatal error, if there is one: `json: cannot unmarshal …`. Strict errors do not matter then. */
  readonly error: string | undefined;
  /** `unknown field "spec.foo"`, `duplicate field "spec.replicas"`. */
  readonly strict: readonly string[];
}

/** The decoder stops listing here. */
const STRICT_ERRORS_MAX = 100;
const INT32_MAX = 2n ** 31n - 1n;
const INT64_MAX = 2n ** 63n - 1n;

export function diagnose(type: Type, document: JsonNode): Diagnosis {
  const walk = new Diagnostician();
  try { walk.value(type, document); }
  catch (error) {
    if (!(error instanceof Fatal)) throw error;
    return { error: error.message, strict: [] };
  }
  return { error: walk.error, strict: walk.error === undefined ? [...walk.strict] : [] };
}

/** Duplicate keys only: what strict decoding finds in an object without a type, such as a custom resource. */
export function diagnoseUntyped(document: JsonNode): readonly string[] {
  const walk = new Diagnostician();
  walk.untyped(document);
  return [...walk.strict];
}

class Fatal extends Error {}

class Diagnostician {
  error: string | undefined;
  readonly strict = new Set<string>();
  /** Where we are, as strict errors write it: spec.containers[0]. */
  #path = "";
  /** Where we are, as type errors write it: no indices, no map keys, but the Go names of inlined structs. */
  readonly #fields: string[] = [];
  /** The struct the last field belongs to. */
  #struct = "";

  value(type: Type, node: JsonNode): void {
    switch (type.kind) {
      case "struct":
        if (node.kind === "object") this.#structure(type, node.entries);
        else this.#mismatch(type, node);
        break;
      case "map":
        if (node.kind === "object") this.#eachEntry(node.entries, (value) => this.value(type.values, value));
        else this.#mismatch(type, node);
        break;
      case "list":
        if (node.kind === "array") this.#eachItem(node.items, (item) => this.value(type.items, item));
        else this.#mismatch(type, node);
        break;
      case "scalar": this.#scalar(type, node); break;
      case "special": this.#special(type, node); break;
    }
  }

  untyped(node: JsonNode): void {
    if (node.kind === "object") this.#eachEntry(node.entries, (value) => this.untyped(value));
    else if (node.kind === "array") this.#eachItem(node.items, (item) => this.untyped(item));
  }

  #structure(type: StructType, entries: readonly (readonly [string, JsonNode])[]): void {
    const seen = new Set<string>();
    const structBefore = this.#struct;
    for (const [key, value] of entries) {
      const field = type.field(key);
      if (!field) { this.#strictError("unknown field", key); continue; }
      if (seen.has(key)) this.#strictError("duplicate field", key);
      seen.add(key);
      const names = [...embeddings(type, field), key];
      this.#fields.push(...names);
      this.#struct = type.goName;
      this.#inside(key, () => this.value(field.type, value));
      this.#fields.length -= names.length;
      this.#struct = structBefore;
    }
  }

  #eachEntry(entries: readonly (readonly [string, JsonNode])[], visit: (value: JsonNode) => void): void {
    const seen = new Set<string>();
    for (const [key, value] of entries) {
      if (seen.has(key)) this.#strictError("duplicate field", key);
      seen.add(key);
      this.#inside(key, () => visit(value));
    }
  }

  #eachItem(items: readonly JsonNode[], visit: (item: JsonNode) => void): void {
    const before = this.#path;
    items.forEach((item, index) => {
      this.#path = `${before}[${index}]`;
      visit(item);
    });
    this.#path = before;
  }

  #inside(key: string, visit: () => void): void {
    const before = this.#path;
    this.#path = before === "" ? key : `${before}.${key}`;
    visit();
    this.#path = before;
  }

  #strictError(what: string, key: string): void {
    if (this.strict.size < STRICT_ERRORS_MAX) this.strict.add(`${what} ${goQuote(this.#path === "" ? key : `${this.#path}.${key}`)}`);
  }

  #scalar(type: Type & { kind: "scalar" }, node: JsonNode): void {
    switch (type.scalar) {
      case "string": if (node.kind !== "string") this.#mismatch(type, node); break;
      case "bool": if (node.kind !== "bool") this.#mismatch(type, node); break;
      case "int32": this.#integer(type, node, INT32_MAX); break;
      case "int64": this.#integer(type, node, INT64_MAX); break;
      case "float64":
        if (node.kind !== "number") this.#mismatch(type, node);
        else if (!Number.isFinite(Number(node.text))) this.#report(`number ${node.text}`, goTypeName(type));
        break;
      case "bytes": this.#bytes(type, node); break;
    }
  }

  #integer(type: Type, node: JsonNode, max: bigint): void {
    if (node.kind !== "number") this.#mismatch(type, node);
    else if (!fitsInteger(node.text, max)) this.#report(`number ${node.text}`, goTypeName(type));
  }

  #bytes(type: Type, node: JsonNode): void {
    if (node.kind === "array") { this.#eachItem(node.items, (item) => { if (item.kind !== "null" && (item.kind !== "number" || !/^\d+$/.test(item.text) || Number(item.text) > 255)) this.#report(described(item), "uint8"); }); return; }
    if (node.kind !== "string") { this.#mismatch(type, node); return; }
    this.error ??= base64Problem(node.value);
  }

  /** null leaves what it meets as it was. */
  #mismatch(type: Type, node: JsonNode): void { if (node.kind !== "null") this.#report(described(node), goTypeName(type)); }

  #report(value: string, goType: string): void { this.error ??= this.#typeError(value, goType); }

  #typeError(value: string, goType: string): string {
    const where = this.#fields.length === 0 ? "Go value" : `Go struct field ${this.#struct}.${this.#fields.join(".")}`;
    return `json: cannot unmarshal ${value} into ${where} of type ${goType}`;
  }

  #special({ special, schema }: SpecialType, node: JsonNode): void {
    if (node.kind === "null") return;
    switch (special) {
      case "time": case "microTime": {
        if (node.kind !== "string") throw new Fatal(this.#typeError(described(node), "string"));
        const message = timeParseError(node.value, special === "microTime" ? "micro" : "plain");
        if (message !== undefined) throw new Fatal(message);
        break;
      }
      case "duration":
        if (node.kind !== "string") throw new Fatal(this.#typeError(described(node), "string"));
        rethrow(() => parseDurationNs(node.value));
        break;
      case "quantity": rethrow(() => parseQuantity(withoutSpaces(rawText(node)))); break;
      case "intOrString":
        if (node.kind === "string") break;
        if (node.kind !== "number") throw new Fatal(this.#typeError(described(node), "int32"));
        if (!fitsInteger(node.text, INT32_MAX)) throw new Fatal(this.#typeError(`number ${node.text}`, "int32"));
        break;
      case "schemaOrBool":
        if (node.kind === "object") this.#nested(schema!, node);
        else if (node.kind !== "bool") throw new Fatal("boolean or JSON schema expected");
        break;
      case "schemaOrArray":
        if (node.kind === "object") this.#nested(schema!, node);
        else if (node.kind === "array") for (const item of node.items) this.#nested(schema!, item);
        break;
      case "schemaOrStringArray":
        if (node.kind === "object") this.#nested(schema!, node);
        else if (node.kind === "array") for (const item of node.items) if (item.kind !== "string" && item.kind !== "null") throw new Fatal(this.#typeError(described(item), "string"));
        break;
      default: { // anything goes that is a number at all
        const endless = endlessNumber(node);
        if (endless !== undefined) throw new Fatal(this.error ?? endless);
        if (special === "any") this.untyped(node);
      }
    }
  }

  /** A decoder inside a decoder: lenient about unknown fields, and its error ends the outer one. */
  #nested(schema: StructType, node: JsonNode): void {
    const inner = new Diagnostician();
    inner.value(schema, node);
    if (inner.error !== undefined) throw new Fatal(inner.error);
  }
}

/** The Go names of the inlined structs a field comes through: VolumeSource for a volume's emptyDir. */
function embeddings(type: StructType, field: FieldInfo): readonly string[] {
  if (type.members.includes(field)) return [];
  for (const member of type.members)
    if (member.inline && member.type.kind === "struct" && member.type.field(field.name) === field) return [member.type.goName, ...embeddings(member.type, field)];
  return [];
}

function described(node: JsonNode): string { return node.kind; }

/** With a sign. More are no number of 64 bits, and a row of a million would take long to become one. */
const DIGITS_MAX = 20;

function fitsInteger(text: string, max: bigint): boolean {
  if (text.length > DIGITS_MAX || !/^-?\d+$/.test(text)) return false;
  const value = BigInt(text);
  return value <= max && value >= -max - 1n;
}

function rawText(node: JsonNode): string {
  switch (node.kind) {
    case "string": return node.value;
    case "number": return node.text;
    case "bool": return String(node.value);
    case "null": return "null";
    default: return node.kind === "array" ? "[]" : "{}"; // neither is a quantity
  }
}

function rethrow(parse: () => unknown): void {
  try { parse(); }
  catch (error) { throw new Fatal(errorText(error), { cause: error }); }
}

/** What Go says to a text that is no base64; undefined: it is. */
export function base64Problem(text: string): string | undefined { return isBase64(text.replace(/[\r\n]/g, "")) ? undefined : `illegal base64 data at input byte ${illegalAt(text)}`; }

/** Where Go's decoder gives up on what is no base64. It passes over line breaks, and counts them. Source: encoding/base64 decodeQuantum */
function illegalAt(text: string): number {
  let pending = 0; // characters of a group of four that is not whole yet
  for (let at = 0; at < text.length; at++) {
    if (isLineBreak(text[at])) continue;
    if (/[A-Za-z0-9+/]/.test(text[at]!)) { pending = (pending + 1) % 4; continue; }
    if (text[at] !== "=" || pending < 2) return at;
    const next = afterLineBreaks(text, at + 1);
    if (pending === 3) return next; // whole, and more after it
    if (next === text.length) return next;
    return text[next] === "=" ? afterLineBreaks(text, next + 1) : next - 1;
  }
  return text.length - pending;
}

function afterLineBreaks(text: string, from: number): number {
  let at = from;
  while (isLineBreak(text[at])) at++;
  return at;
}

function isLineBreak(character: string | undefined): boolean { return character === "\n" || character === "\r"; }
