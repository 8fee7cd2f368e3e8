/**
 * YAML as Kubernetes reads it: YAML 1.1 the way go-yaml understands it, turned into JSON values.
 *
 * `yes`, `on` and `y` are booleans and 010 is eight, but 22:22 and 2026-01-02 are strings: sexagesimal numbers and timestamps are switched off.
 * Keys become strings. Of several documents the API reads the first.
 * A duplicate key keeps its last value, and is named. Most of the YAML that arrives (server-side apply) is JSON, which is read as such: thirty times as fast.
 * So is most of what is none (yaml-plain.ts).
 *
 *   parseYaml(text)            of a file of ours
 *   parseStrictYaml(text)      of one that may say nothing twice
 *   readYaml(text)             of a request: with what is twice in it, and no longer than is read in a moment, since nobody else is served meanwhile
 *
 * Source: sigs.k8s.io/yaml (goyaml.v2) resolve.go
 */
import {
  Composer, type CST, type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, Parser, type DocumentOptions, type ParseOptions, type Scalar, type SchemaOptions, type Tags, type YAMLMap, type YAMLParseError,
} from "yaml";
import { goFloat } from "../meta/go-float.ts";
import { goQuote } from "../meta/go-quote.ts";
import { DEPTH_MAX, inKeyOrder, setKey, type JsonObject, type JsonValue } from "./json-document.ts";
import { parseJson, stringify } from "./json.ts";
import { settleAliases } from "./yaml-aliases.ts";
import { keyText } from "./yaml-keys.ts";
import { plainYaml } from "./yaml-plain.ts";
import { numberIn } from "./yaml-scalars.ts";
import { endedWithin, laxLexer } from "./yaml-tokens.ts";
import { writeYaml } from "./yaml-writer.ts";

type Tag = Exclude<Tags[number], string>;

const TIMESTAMP = "tag:yaml.org,2002:timestamp";
const INT = "tag:yaml.org,2002:int";
/** Aliases that expand to more than this are an attack ("billion laughs"). */
const ALIASES_MAX = 100;
/** Anchors and aliases: each alias is looked for among all before it. */
const NAMES_MAX = 10_000;
/** Of a request, in characters, where there is more to it than lines. JSON may be as long as any body. */
const LENGTH_MAX = 1024 * 1024;
/** Of the same: what a text costs. A megabyte of keys and values, one a line, has as many, one of brackets twice as many. */
const LEXEMES_MAX = 500_000;

const FLOAT = "tag:yaml.org,2002:float";
/** A plain text that go-yaml takes for a number. */
const numbers = (tag: string, type: "bigint" | "number"): Tag =>
  ({ tag, identify: () => false, default: true, test: { test: (text: string) => typeof numberIn(text) === type } as RegExp, resolve: (text: string) => numberIn(text) });
/** What is said to be one, whatever it looks like. */
const FLOAT_SAID: Tag = {
  tag: FLOAT, identify: () => false, default: false,
  resolve(text: string) {
    const value = INFINITE.test(text) ? Number.parseFloat(text.replace(/^([-+]?)\.inf$/i, "$1Infinity")) : numberIn(text);
    if (value === undefined) throw new Error(`${CANNOT_DECODE}${text}\` as a !!float`);
    return Number(value);
  },
};
const CANNOT_DECODE = "cannot decode !!str `";
/** The parser's own for these alone: numbers are go-yaml's. */
const INFINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const isOurs = (tag: Tag): boolean => tag.tag === INT || tag.tag === TIMESTAMP || (tag.tag === FLOAT && "test" in tag && !tag.test?.test(".inf"));
/** Which go-yaml takes for lists like any, and which are looked through for each of their entries. */
const ORDERED: ReadonlySet<string> = new Set(["tag:yaml.org,2002:omap", "tag:yaml.org,2002:pairs"]);
const tagsOf = (tags: Tags): Tags => [numbers(INT, "bigint"), numbers(FLOAT, "number"), FLOAT_SAID, ...tags.filter((tag): tag is Tag => typeof tag !== "string" && !isOurs(tag) && !ORDERED.has(tag.tag))];

const OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  version: "1.1", intAsBigInt: true, uniqueKeys: false, strict: false, logLevel: "error", prettyErrors: false,
  customTags: tagsOf,
};

export class YamlError extends Error { override readonly name = "YamlError"; }

/** `duplicates`: "yaml: unmarshal errors:\n  line 3: key "a" already set in map", or nothing. */
export interface ReadYaml {
  readonly value: JsonValue;
  readonly duplicates: readonly string[];
  /** The value as go-yaml has it written for who reads it as JSON, where it has integers of 64 bits without a sign, which are rounded in `value`. */
  readonly json?: string;
}

/** The first document as a JSON value; an empty text is null. Throws YamlError. */
export function parseYaml(text: string): JsonValue {
  const plainJson = jsonObjectIn(text);
  return plainJson === undefined ? guarded(() => valueOf(firstDocument(text, {}))) : plainJson;
}

/** The same of what a client has sent, fields in alphabetical order, in which upstream then reads them. Throws YamlError. */
export function readYaml(text: string): ReadYaml {
  const isWide = text.length <= LENGTH_MAX && WIDE.test(text);
  const plainJson = isWide ? undefined : jsonObjectIn(text);
  const plain = plainJson ?? plainYaml(text);
  if (plain !== undefined) return guarded(() => ({ value: inKeyOrder(plain) as JsonValue, duplicates: [] }));
  if (text.length > LENGTH_MAX) throw new YamlError(`yaml: document is longer than ${LENGTH_MAX} characters: send JSON instead`);
  return guarded(() => {
    const lines = new LineCounter();
    const first = firstDocument(text, { lines, lexemesMax: LEXEMES_MAX });
    const value = inKeyOrder(valueOf(first, isWide)); // which has an end: what is twice in it is looked for only then
    const duplicates = duplicatesIn(first, lines);
    return isWide ? { ...unsigned(value), duplicates } : { value: value as JsonValue, duplicates };
  });
}

/** A number of so many digits. */
const WIDE = /[:[,-]\s*\+?(?:\d{19,20}|0[xXbBoO]?[\da-fA-F]{16,})\s*(?:[,}\]#]|$)/m;

function unsigned(exact: unknown): Pick<ReadYaml, "value" | "json"> {
  const value = narrowed(exact);
  return value === exact ? { value: value as JsonValue } : { value: value as JsonValue, json: stringify(exact) };
}

/** With doubles for what no integer of 64 bits with a sign is; itself if there is nothing of that kind. */
function narrowed(value: unknown): unknown {
  if (typeof value === "bigint") return value === BigInt.asIntN(64, value) ? value : Number(value);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]): [string, unknown, boolean] => { const own = narrowed(item); return [key, own, own !== item]; });
  if (!entries.some(([, , isOther]) => isOther)) return value;
  if (Array.isArray(value)) return entries.map(([, item]) => item);
  const object: Record<string, unknown> = {};
  for (const [key, item] of entries) setKey(object, key, item);
  return object;
}

/** The same of a file, where what is said twice is a mistake. Throws YamlError. */
export function parseStrictYaml(text: string): JsonValue {
  const { value, duplicates } = readYaml(text);
  if (duplicates.length > 0) throw new YamlError(`strict decoding error: ${duplicates.join(", ")}`);
  return value;
}

/** The parser and what it yields are recursive: a text that nests without end ends here. */
function guarded<T>(read: () => T): T {
  try { return read(); }
  catch (error) {
    if (error instanceof RangeError) throw tooDeep(error);
    if (error instanceof ReferenceError) throw badAlias(error);
    if (error instanceof Error && error.message.startsWith("Merge sources must be")) throw new YamlError("yaml: map merge requires map or sequence of maps as the value", { cause: error });
    throw error;
  }
}

/** The parser's own words, as Go's would say it. */
function badAlias(cause: ReferenceError): YamlError {
  const name = /^Unresolved alias .*: (.*)$/s.exec(cause.message)?.[1];
  return new YamlError(`yaml: ${name === undefined ? "document contains excessive aliasing" : `unknown anchor '${name}' referenced`}`, { cause });
}

function tooDeep(cause?: unknown): YamlError { return new YamlError("yaml: exceeded max depth", { cause }); }

/** JSON that YAML reads no other way: an object without a key twice, an endless number, a line break of YAML's own or an unpaired surrogate. */
function jsonObjectIn(text: string): JsonValue | undefined {
  if (!/^\s*\{/.test(text) || text.includes('"<<"') || /\\u[dD][89a-fA-F]|[\d.][eE]\+?\d{3}|[\u0085\u2028\u2029\ufeff]/.test(text)) return undefined;
  try {
    const { value, document } = parseJson(text);
    return document === undefined ? value : undefined;
  } catch {
    return undefined; // the reader of YAML says what is wrong with it
  }
}

/** In the order in which Go finds them: when a value has been read, what is twice within it first. An alias is read anew where it stands, and what is merged is read into the map. */
function duplicatesIn(first: Document.Parsed | undefined, lines: LineCounter): readonly string[] {
  if (!first?.contents) return [];
  const told: string[] = [];
  const look = (node: unknown): void => {
    const found = isAlias(node) ? node.resolve(first) : node;
    if (isSeq(found)) for (const item of found.items) look(item);
    else if (isMap(found)) lookInto(found, new Set());
  };
  const lookInto = (map: YAMLMap, seen: Set<unknown>): void => {
    for (const { key, value } of map.items) {
      if (!isScalar(key)) continue;
      if (typeof key.value === "symbol") { merge(value, seen); continue; }
      look(value);
      if (seen.has(key.value)) told.push(`  line ${lineOf(value, key)}: key ${typeof key.value === "string" ? goQuote(key.value) : String(key.value)} already set in map`);
      seen.add(key.value);
    }
  };
  const merge = (node: unknown, seen: Set<unknown>): void => {
    const found = isAlias(node) ? node.resolve(first) : node;
    if (isMap(found)) lookInto(found, seen);
    else if (isSeq(found)) for (const item of found.items.toReversed()) merge(item, seen);
  };
  const lineOf = (value: unknown, key: Scalar): number => lines.linePos((isNode(value) && !(isScalar(value) && value.source === "") ? value : key).range?.[0] ?? 0).line;
  look(first.contents);
  return told.length === 0 ? [] : [`yaml: unmarshal errors:\n${told.join("\n")}`];
}

/** As upstream writes JSON as YAML. Throws YamlTextError for what it has no YAML for. */
export function encodeYaml(value: unknown): string { return writeYaml(value); }

/** What comes after it is not looked at. */
function firstDocument(text: string, options: TokenOptions): Document.Parsed | undefined {
  const [first] = new Composer(OPTIONS).compose(tokensOf(text, options), true, text.length);
  const [error] = first?.errors ?? [];
  if (error && /^maximum call stack/i.test(error.message)) throw tooDeep(error);
  if (error) throw new YamlError(`yaml: ${placed(text, error)}`, { cause: error });
  return first as Document.Parsed | undefined;
}

interface TokenOptions { readonly lines?: LineCounter; readonly lexemesMax?: number }

function* tokensOf(text: string, { lines, lexemesMax = Infinity }: TokenOptions): Generator<CST.Token> {
  const parser = new Parser(lines?.addNewLine);
  let names = 0, count = 0, before = "", at = 0;
  lines?.addNewLine(0);
  for (const lexeme of laxLexer().lex(text)) {
    if (++count > lexemesMax) throw new YamlError(`yaml: document has more than ${lexemesMax} tokens: send JSON instead`);
    if (before !== SCALAR && /^[&*]/.test(lexeme) && ++names > NAMES_MAX) throw new YamlError("yaml: document contains excessive aliasing");
    if (lexeme.startsWith("\"") && /\\[uU]/.test(lexeme)) refuseHalves(text, lexeme, at);
    if (!ZERO_WIDTH.test(lexeme)) at += lexeme.length;
    before = lexeme;
    yield* parser.next(lexeme);
  }
  for (const token of parser.end()) yield text.endsWith("\n") ? token : endedWithin(token);
}

/** An escape of half a character, which JSON has in pairs and YAML has not. `at`: where the scalar begins. */
function refuseHalves(text: string, scalar: string, at: number): void {
  for (const { 1: short, 2: long, index } of scalar.matchAll(/\\(?:u([\da-fA-F]{4})|U([\da-fA-F]{8})|.)/gs)) {
    const value = Number.parseInt(short ?? long ?? "0", 16);
    if ((value < 0xd800 || value > 0xdfff) && value <= 0x10ffff) continue;
    const line = text.slice(0, at + index).split("\n").length;
    throw new YamlError(`yaml: ${line === 1 ? "" : `line ${line}: `}found invalid Unicode character escape code`);
  }
}

/** What the lexer says of the text that is none of it. */
const ZERO_WIDTH = /^[\x02\x18\x1f]$/;
/** What the lexer says before a scalar's text. */
const SCALAR = "\x1f";

/** What go-yaml's scanner has to say to what the parser calls so; it says nothing of the first line. */
const SCANNED: Readonly<Partial<Record<YAMLParseError["code"], string>>> = {
  BAD_SCALAR_START: "found character that cannot start any token", TAB_AS_INDENT: "found character that cannot start any token", MISSING_CHAR: "found unexpected end of stream",
  BLOCK_AS_IMPLICIT_KEY: "mapping values are not allowed in this context", MULTILINE_IMPLICIT_KEY: "mapping values are not allowed in this context",
};

function placed(text: string, { code, message, pos: [start] }: YAMLParseError): string {
  const scanned = code === "MISSING_CHAR" && !message.startsWith("Missing closing") ? undefined : SCANNED[code] ?? (message.startsWith("Unexpected block-seq-ind") ? "block sequence entries are not allowed in this context" : undefined);
  const colon = code.endsWith("_IMPLICIT_KEY") ? Math.max(0, text.slice(start).search(/:\s/)) : 0; // which has no key that it could belong to
  const line = text.slice(0, start + colon).split("\n").length;
  const end = UNENDED.exec(message)?.[1];
  if (end !== undefined) return expected(text, start, /[{[,:]\s*$/.test(text.slice(0, start)) ? "node content" : `',' or '${end}'`);
  if (message.startsWith(CANNOT_DECODE)) return message;
  if (message.startsWith("Unexpected , in flow")) return expected(text, start, "node content");
  return scanned === undefined ? `line ${line}: ${lowerFirst(message)}` : line === 1 ? scanned : `line ${line}: ${scanned}`;
}

const UNENDED = /^Flow (?:map|sequence) (?:in block collection must be sufficiently indented and|must) end with a (.)/;

/** What go-yaml's parser says: it counts lines from none on, and the end is after the last. */
function expected(text: string, at: number, what: string): string {
  const isEnd = text.slice(at).trim() === "";
  const line = isEnd ? text.replace(/\n$/, "").split("\n").length : text.slice(0, at).split("\n").length - 1;
  return `${line === 0 ? "" : `line ${line}: `}did not find expected ${what}`;
}

function lowerFirst(text: string): string { return text.charAt(0).toLowerCase() + text.slice(1); }

/** `exact`: with integers of 64 bits without a sign. */
function valueOf(document: Document.Parsed | undefined, exact = false): JsonValue {
  if (!document || document.contents === null) return null;
  const endless = settleAliases(document);
  const value: unknown = document.toJS({ mapAsMap: true, maxAliasCount: ALIASES_MAX });
  try {
    return plain(value, exact);
  } catch (error) {
    throw endless === undefined ? error : new YamlError(`yaml: anchor '${endless}' value contains itself`, { cause: error });
  }
}

function plain(value: unknown, exact: boolean, depth = 0): JsonValue {
  if (depth > DEPTH_MAX) throw tooDeep();
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) || (!exact && value !== BigInt.asIntN(64, value)) ? Number(value) : value;
  if (typeof value === "number" && !Number.isFinite(value)) throw new YamlError(`json: unsupported value: ${goFloat(value)}`);
  if (Array.isArray(value)) return value.map((item) => plain(item, exact, depth + 1));
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8"); // !!binary becomes the text it encodes, as in go-yaml
  if (value instanceof Map) {
    const object: JsonObject = {};
    for (const [key, item] of value) setKey(object, textOf(key, item), plain(item, exact, depth + 1));
    return object;
  }
  if (value instanceof Set) {
    const object: JsonObject = {};
    for (const key of value) setKey(object, textOf(key, null), null);
    return object;
  }
  return (value ?? null) as JsonValue;
}

function textOf(key: unknown, item: unknown): string {
  try {
    return keyText(key, item);
  } catch (error) {
    throw error instanceof RangeError ? error : new YamlError((error as Error).message, { cause: error });
  }
}
