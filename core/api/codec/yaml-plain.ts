/**
 * The YAML that people and programs write most: blocks of keys and entries, and scalars that are texts of one line or follow a `|`. It is read line by line, twenty times
 * as fast as by the reader of all YAML, which holds everything up for seconds with a megabyte.
 *
 *   plainYaml(text)      its value; undefined: there is more to it (brackets, anchors, tags, a key twice, a mistake), and the other reader has it
 *
 * What is read here is read there as the same value (test/fuzz).
 */
import { DEPTH_MAX, setKey, type JsonObject, type JsonValue } from "./json-document.ts";
import { numberIn } from "./yaml-scalars.ts";

/** Of several characters' meaning, or none. */
const ODD = /[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
/** Documents, and what is said before them. */
const MARKS = /^(?:---|\.\.\.|%)/m;
/** Longer keys are none that YAML has without a question mark before them. */
const KEY_MAX = 1000;
const DOUBLE = /^"((?:[^"\\]|\\(?:["\\bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}))*)"/;
const SINGLE = /^'((?:[^']|'')*)'/;
/** What begins no plain text, or might be more than one. */
const MARKED = /^(?:[,[\]{}#&*!|>'"%@`]|[-?:](?:\s|$)|[?:])/;
const NULLS: ReadonlySet<string> = new Set(["", "~", "null", "Null", "NULL"]);
const TRUTHS: ReadonlySet<string> = new Set(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"]);
const LIES: ReadonlySet<string> = new Set(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"]);
const OTHERS = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|<<|=)$/;

/** Thrown within: it is for the other reader. */
const NOT_PLAIN = Symbol("not plain");

export function plainYaml(text: string): JsonValue | undefined {
  const body = text.startsWith("---\n") ? text.slice(4) : text;
  if (MARKS.test(body) || !body.endsWith("\n")) return undefined;
  try {
    return new PlainReader(body.split("\n")).document();
  } catch (error) {
    if (error === NOT_PLAIN) return undefined;
    throw error;
  }
}

class PlainReader {
  readonly #lines: readonly string[];
  #at = -1; // of the line that is looked at
  #indent = -1; // -1 at the end
  #content = ""; // of it, without its indentation

  constructor(lines: readonly string[]) {
    this.#lines = lines;
    this.#next();
  }

  document(): JsonValue {
    const value = this.#block(0, 0);
    if (this.#indent !== -1) throw NOT_PLAIN;
    return value;
  }

  /** To the next line with something on it. */
  #next(): void {
    while (++this.#at < this.#lines.length) {
      const line = this.#lines[this.#at]!, indent = line.search(/[^ ]/);
      if (indent < 0 || line[indent] === "#") continue;
      if (ODD.test(line)) throw NOT_PLAIN;
      [this.#indent, this.#content] = [indent, indent === 0 ? line : line.slice(indent)];
      return;
    }
    this.#indent = -1;
  }

  /** What stands indented by so much. */
  #block(indent: number, depth: number): JsonValue {
    if (this.#indent !== indent || depth >= DEPTH_MAX / 2) throw NOT_PLAIN;
    return isEntry(this.#content) ? this.#entries(indent, depth) : this.#map(indent, depth);
  }

  #entries(indent: number, depth: number): JsonValue[] {
    const entries: JsonValue[] = [];
    while (this.#indent === indent && isEntry(this.#content)) {
      const rest = this.#content.slice(1), offset = rest.search(/[^ ]/);
      const inner = rest.slice(Math.max(0, offset));
      if (offset < 0 || inner.startsWith("#")) {
        this.#next();
        entries.push(this.#indent > indent ? this.#block(this.#indent, depth + 1) : null);
      } else if (isEntry(inner)) throw NOT_PLAIN;
      else if (keyOf(inner) !== undefined) {
        [this.#indent, this.#content] = [indent + 1 + offset, inner];
        entries.push(this.#map(this.#indent, depth + 1));
      } else entries.push(this.#scalar(inner, indent));
    }
    if (this.#indent > indent) throw NOT_PLAIN;
    return entries;
  }

  #map(indent: number, depth: number): JsonObject {
    const map: JsonObject = {};
    while (this.#indent === indent && !isEntry(this.#content)) {
      const found = keyOf(this.#content);
      if (found === undefined || Object.hasOwn(map, found.key)) throw NOT_PLAIN;
      const { key, rest } = found;
      if (rest !== "" && !rest.startsWith("#")) setKey(map, key, this.#scalar(rest, indent));
      else {
        this.#next();
        const isNested = this.#indent > indent || (this.#indent === indent && isEntry(this.#content));
        setKey(map, key, isNested ? this.#block(this.#indent, depth + 1) : null);
      }
    }
    if (this.#indent > indent) throw NOT_PLAIN;
    return map;
  }

  /** `indent`: of what it is the value in. A text may go on in lines that are indented more: not here. */
  #scalar(text: string, indent: number): JsonValue {
    const value = /^\|[-+]? *$/.test(text) ? this.#literal(text[1] ?? "", indent) : scalarOf(text);
    if (!text.startsWith("|")) this.#next();
    if (this.#indent > indent) throw NOT_PLAIN;
    return value;
  }

  #literal(chomp: string, indent: number): string {
    const lines: string[] = [];
    let own = -1;
    for (this.#at++; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at]!, spaces = line.search(/[^ ]/);
      if (spaces < 0 && line.length > Math.max(own, 0)) throw NOT_PLAIN;
      if (spaces >= 0 && own < 0) own = spaces;
      if (own >= 0 && (own <= indent || (spaces >= 0 && spaces < own))) break;
      if (ODD.test(line)) throw NOT_PLAIN;
      lines.push(line.slice(Math.max(own, 0)));
    }
    if (own <= indent) throw NOT_PLAIN;
    this.#at--;
    this.#next();
    if (this.#indent === -1 && lines.at(-1) === "") lines.pop(); // behind the last line break is no line
    const text = `${lines.join("\n")}\n`;
    return chomp === "+" ? text : text.replace(/\n+$/, chomp === "-" ? "" : "\n");
  }
}

function isEntry(content: string): boolean { return content === "-" || content.startsWith("- "); }

/** The key that a line begins with, and what comes after its colon. */
function keyOf(content: string): { readonly key: string; readonly rest: string } | undefined {
  const quoted = (content.startsWith("\"") ? DOUBLE : SINGLE).exec(content)?.[0];
  const end = quoted === undefined ? content.search(/:(?: |$)/) : /^:(?: |$)/.test(content.slice(quoted.length)) ? quoted.length : -1;
  if (end < 0) return undefined;
  const written = quoted ?? content.slice(0, end);
  if (end > KEY_MAX || (quoted === undefined && written.includes(" #"))) throw NOT_PLAIN;
  const key = scalarOf(written);
  if (typeof key !== "string") throw NOT_PLAIN;
  return { key, rest: content.slice(end + 1).trimStart() };
}

function scalarOf(text: string): JsonValue {
  if (text.startsWith("\"") || text.startsWith("'")) return quotedOf(text);
  const comment = text.indexOf(" #");
  const plain = (comment < 0 ? text : text.slice(0, comment)).replace(/ +$/, "");
  if (plain === "[]") return [];
  if (plain === "{}") return {};
  if (MARKED.test(plain) || /:(?: |$)/.test(plain) || OTHERS.test(plain)) throw NOT_PLAIN;
  if (NULLS.has(plain)) return null;
  if (TRUTHS.has(plain)) return true;
  if (LIES.has(plain)) return false;
  const value = numberIn(plain);
  if (value === undefined) return plain;
  if (typeof value === "bigint" && !Number.isSafeInteger(Number(value))) throw NOT_PLAIN;
  return Number(value);
}

function quotedOf(text: string): string {
  const found = (text.startsWith("\"") ? DOUBLE : SINGLE).exec(text);
  if (!found || !/^(?: *| +#.*)$/.test(text.slice(found[0].length))) throw NOT_PLAIN;
  return text.startsWith("\"") ? JSON.parse(found[0]) as string : found[1]!.replaceAll("''", "'");
}
