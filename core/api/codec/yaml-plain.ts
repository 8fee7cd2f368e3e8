/**
 * The YAML that manifests are written in, read in a fraction of the time that a reader of all of YAML takes: blocks of keys and items, scalars and collections on one line, literal texts.
 *
 * What is not surely of that kind (anchors, tags, folded and continued lines, keys that are no plain names or stand twice, whatever is an error) is left to the reader of all of YAML: undefined.
 */
import { type JsonObject, type JsonValue, setKey } from "./json-document.ts";

/** What a plain scalar is, where it may be more than a text. */
export type ResolveScalar = (text: string) => JsonValue;

const DEPTH_MAX = 100;
/** Different scalars that somebody else is asked for, who takes a while for each. */
const RESOLVED_MAX = 1000;

/** Breaks of lines and ends of texts that are not what they look like. */
const STRANGE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/;
const KEY = /^(?:([A-Za-z_$][\w.$/-]*)|"([^"\\\t]*)"|'([^'\t]*)') *:(?: +|$)/;
const WORD = /^[A-Za-z_$/][\w.$/-]*$/;
const NUMBER = /^(?:0|-?[1-9]\d{0,14}|[1-9]\d{0,7}\.\d{1,7})$/;
/** What a plain scalar may begin with; a hyphen with something after it. */
const PLAIN_START = /^(?:[\w./+~=$(<\u00a1-\u{10ffff}]|-[^\s])/u;
const DOUBLE_QUOTED = /"(?:[^"\\\u0000-\u001f]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[\da-fA-F]{4})*"/y;
const SINGLE_QUOTED = /'(?:[^'\t]|'')*'/y;
const FLOW_WORD = /[\w./+$~=()<>@*-]+/y;
const COMMENT = /^ *(?:#|$)/;
/** Texts that a reader of YAML 1.1 takes for something else, as far as they are letters. */
const OTHER_WORDS = /^(?:null|y|n|yes|no|on|off|true|false)$/i;

/** Decimal, hexadecimal, octal, binary, base 60, infinity and not-a-number. */
const NUMBERS = /^[-+]?(?:(?:\.\d[\d_]*|\d[\d_]*(?:\.[\d_]*)?)(?:[eE][-+]?\d+)?|0x[\da-fA-F_]+|0o?[0-7_]+|0b[01_]+|\d+(?::[0-5]?\d)+(?:\.\d*)?|\.(?:inf|Inf|INF|nan|NaN|NAN))$/;

/** Whether the plain text would be read as something that is no string, by us or by a YAML 1.1 reader with all its types. */
export function readsAsOther(text: string): boolean {
  return text === "" || /^(?:~|null|y|n|yes|no|on|off|true|false|<<|=)$/i.test(text) || NUMBERS.test(text) || /^\d{4}-\d\d?-\d\d?(?:$|[Tt ])/.test(text);
}

class NotPlain extends Error { override readonly name = "NotPlain"; }

/** The first document; undefined: it is not plain. `resolve` is asked for scalars that are neither texts nor numbers as everybody writes them. */
export function readPlainYaml(text: string, resolve: ResolveScalar): JsonValue | undefined {
  if (STRANGE.test(text)) return undefined;
  try {
    return new Reader(text, resolve).document();
  } catch (error) {
    if (error instanceof NotPlain) return undefined;
    throw error;
  }
}

function fail(): never { throw new NotPlain(); }

class Reader {
  readonly #lines: string[];
  readonly #resolve: ResolveScalar;
  readonly #resolved = new Map<string, JsonValue>();
  /** Without a line break, which a literal text at the end would need. */
  #endsOpen = false;
  #at = 0;
  /** Of the line at `#at`: how far it is indented, and what of it is left. */
  #indent = 0;
  #rest = "";

  constructor(text: string, resolve: ResolveScalar) {
    this.#lines = text.split("\n");
    if (this.#lines.at(-1) === "") this.#lines.pop();
    else this.#endsOpen = true;
    this.#resolve = resolve;
  }

  document(): JsonValue {
    this.#seek();
    if (/^--- *$/.test(this.#lines[this.#at] ?? "")) this.#next();
    if (this.#indent < 0) fail();
    const value = this.#block(this.#indent, 0);
    if (this.#indent >= 0) fail();
    return value;
  }

  #next(): void {
    this.#at++;
    this.#seek();
  }

  /** Goes on to the next line that says something; at the end of the document the indentation is -1. */
  #seek(): void {
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at]!;
      let indent = 0;
      while (line.charCodeAt(indent) === 32) indent++;
      const code = line.charCodeAt(indent);
      if (code === 35 || Number.isNaN(code)) continue;
      if (code === 9) fail();
      if (indent === 0 && (line.startsWith("---") || line.startsWith("...")) && /^(?:---(?:\s|$)|\.\.\. *$)/.test(line)) break;
      this.#indent = indent;
      this.#rest = line.slice(indent);
      return;
    }
    this.#indent = -1;
    this.#rest = "";
  }

  #block(indent: number, depth: number): JsonValue {
    if (depth > DEPTH_MAX) fail();
    return isItem(this.#rest) ? this.#items(indent, depth) : this.#entries(indent, depth);
  }

  #items(indent: number, depth: number): JsonValue[] {
    const items: JsonValue[] = [];
    while (this.#indent === indent && isItem(this.#rest)) {
      const rest = this.#rest.slice(1).replace(/^ +/, "");
      if (COMMENT.test(rest)) {
        this.#next();
        items.push(this.#indent > indent ? this.#block(this.#indent, depth + 1) : null);
      } else if (isItem(rest) || KEY.test(rest)) {
        this.#indent += this.#rest.length - rest.length; // a block that begins on the line of the item
        this.#rest = rest;
        items.push(this.#block(this.#indent, depth + 1));
      } else {
        items.push(this.#scalar(rest, indent));
      }
    }
    if (this.#indent > indent) fail();
    return items;
  }

  #entries(indent: number, depth: number): JsonObject {
    const object: JsonObject = {};
    while (this.#indent === indent && !isItem(this.#rest)) {
      const found = KEY.exec(this.#rest) ?? fail();
      const [all, word, double, single] = found;
      if (word !== undefined && OTHER_WORDS.test(word)) fail();
      const key = word ?? double ?? single!;
      if (Object.hasOwn(object, key)) fail();
      const rest = this.#rest.slice(all.length);
      if (!COMMENT.test(rest)) {
        setKey(object, key, this.#scalar(rest, indent));
        continue;
      }
      this.#next();
      const isBelow = this.#indent > indent || (this.#indent === indent && isItem(this.#rest));
      setKey(object, key, isBelow ? this.#block(this.#indent, depth + 1) : null);
    }
    if (this.#indent > indent) fail();
    return object;
  }

  /** What stands on the rest of a line, below a block that is indented so far; and goes on to the next. */
  #scalar(rest: string, indent: number): JsonValue {
    const first = rest[0];
    if (first === "|") return this.#literal(rest, indent);
    if (rest.includes("\t")) fail();
    let value: JsonValue;
    if (first === '"' || first === "'" || first === "[" || first === "{") {
      const flow = new Flow(rest, (text) => this.#plain(text));
      value = flow.value(0);
      if (!/^(?: +#.*| *)$/.test(rest.slice(flow.at))) fail();
    } else {
      if (!PLAIN_START.test(rest)) fail();
      const comment = rest.indexOf(" #");
      const text = (comment < 0 ? rest : rest.slice(0, comment)).trimEnd();
      if (text.includes(": ") || text.endsWith(":")) fail();
      value = this.#plain(text);
    }
    this.#next();
    if (this.#indent > indent) fail(); // it goes on there, or is wrong
    return value;
  }

  #literal(header: string, indent: number): string {
    const chomping = /^\|([-+]?) *$/.exec(header)?.[1] ?? fail();
    const start = ++this.#at;
    let own = -1;
    let end = start;
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at]!;
      let spaces = 0;
      while (line.charCodeAt(spaces) === 32) spaces++;
      if (spaces === line.length) {
        if (own < 0 ? spaces > 0 : spaces > own) fail();
        continue;
      }
      if (own < 0) own = spaces > indent ? spaces : fail();
      if (spaces < own) break;
      end = this.#at + 1;
    }
    if (own < 0 || (this.#endsOpen && this.#at === this.#lines.length)) fail();
    const kept = chomping === "+" ? this.#at : end;
    const text = this.#lines.slice(start, kept).map((line) => line.slice(own)).join("\n");
    this.#seek();
    if (this.#indent > indent) fail();
    return chomping === "-" ? text : `${text}\n`;
  }

  #plain(text: string): JsonValue {
    if (NUMBER.test(text)) return Number(text);
    if (WORD.test(text) ? !OTHER_WORDS.test(text) : !readsAsOther(text)) return text;
    let value = this.#resolved.get(text);
    if (value !== undefined) return value;
    if (this.#resolved.size >= RESOLVED_MAX) fail();
    value = this.#resolve(text);
    this.#resolved.set(text, value);
    return value;
  }
}

function isItem(rest: string): boolean { return rest.charCodeAt(0) === 45 && (rest.length === 1 || rest.charCodeAt(1) === 32); }

/** Quoted texts, and collections on one line. */
class Flow {
  readonly #text: string;
  readonly #plain: (text: string) => JsonValue;
  at = 0;

  constructor(text: string, plain: (text: string) => JsonValue) {
    this.#text = text;
    this.#plain = plain;
  }

  value(depth: number): JsonValue {
    if (depth > DEPTH_MAX) fail();
    switch (this.#text[this.at]) {
      case '"': return JSON.parse(this.#take(DOUBLE_QUOTED)) as string;
      case "'": return this.#take(SINGLE_QUOTED).slice(1, -1).replaceAll("''", "'");
      case "[": return this.#list(depth);
      case "{": return this.#object(depth);
      default: {
        const text = this.#take(FLOW_WORD);
        if (!PLAIN_START.test(text)) fail();
        return this.#plain(text);
      }
    }
  }

  #list(depth: number): JsonValue[] {
    const items: JsonValue[] = [];
    this.#skip();
    if (this.#is("]")) return items;
    for (;;) {
      items.push(this.value(depth + 1));
      this.#spaces();
      if (this.#is("]")) return items;
      this.#comma();
    }
  }

  #object(depth: number): JsonObject {
    const object: JsonObject = {};
    this.#skip();
    if (this.#is("}")) return object;
    for (;;) {
      const isQuoted = /["']/.test(this.#text[this.at] ?? "");
      const key = isQuoted ? this.value(depth + 1) : this.#take(FLOW_WORD);
      if (typeof key !== "string" || Object.hasOwn(object, key) || (!isQuoted && (!WORD.test(key) || OTHER_WORDS.test(key)))) fail();
      if (this.#text[this.at] !== ":" || (!isQuoted && this.#text[this.at + 1] !== " ")) fail();
      this.#skip();
      setKey(object, key as string, this.value(depth + 1));
      this.#spaces();
      if (this.#is("}")) return object;
      this.#comma();
    }
  }

  #comma(): void {
    if (this.#text[this.at] !== ",") fail();
    this.#skip();
  }

  #skip(): void {
    this.at++;
    this.#spaces();
  }

  #spaces(): void { while (this.#text[this.at] === " ") this.at++; }

  #is(end: string): boolean {
    if (this.#text[this.at] !== end) return false;
    this.at++;
    return true;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const [found] = pattern.exec(this.#text) ?? fail();
    this.at += found.length;
    return found;
  }
}
