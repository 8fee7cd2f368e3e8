/**
 * JSON values as the YAML that upstream writes: block style, a list no further in than its key, lines folded at the first space after eighty characters, keys in
 * the order people count in (k2 before k10), texts quoted where YAML 1.1 would read something else.
 *
 *   writeYaml({ b: ["x", "true"], a: "1" })      a: "1"\nb:\n- x\n- "true"\n
 *
 * Upstream makes YAML of its JSON by reading that as YAML. So some characters that JSON has no objection to are an error (YamlTextError), and next lines (U+0085) are
 * folded into spaces.
 *
 * Source: go.yaml.in/yaml/v2 {encode,emitterc,resolve,sorter}.go, sigs.k8s.io/yaml JSONToYAML
 */
import { goFloat } from "../meta/go-float.ts";
import { looksLikeOther } from "./yaml-scalars.ts";

const WIDTH = 80;
const INDENT = 2;
/** What YAML takes for a key of JSON is not longer, and on one line. */
const KEY_MAX = 1021;
/** In bytes. A longer key is written after a question mark. */
const SIMPLE_KEY_MAX = 128;

export class YamlTextError extends Error { override readonly name = "YamlTextError"; }

export function writeYaml(value: unknown): string {
  const writer = new Writer();
  writer.node(value, {});
  return writer.end();
}

/** Where a node stands. */
interface Place {
  /** It is the value of a key. */
  readonly isValue?: boolean;
  /** It is a key, on one line. */
  readonly isSimpleKey?: boolean;
}

type Style = "plain" | "single" | "double" | "literal";

/** What a text allows. */
interface Traits { readonly isMultiline: boolean; readonly plain: boolean; readonly single: boolean; readonly literal: boolean }

class Writer {
  readonly #parts: string[] = [];
  #column = 0;
  #indent = -INDENT; // of the block that is being written; the outermost has none
  /** Whether the last thing written was a space, or what counts as one. */
  #afterSpace = true;
  /** Whether nothing but indentation is on the line. */
  #isIndented = true;

  end(): string {
    this.#indent = -INDENT;
    this.#startLine();
    return this.#parts.join("");
  }

  node(value: unknown, place: Place): void {
    if (Array.isArray(value)) this.#list(value, place);
    else if (typeof value === "object" && value !== null) this.#map(value as Readonly<Record<string, unknown>>);
    else if (typeof value === "string") this.#text(readBack(value), place);
    else this.#plain(scalarText(value), place);
  }

  #list(list: readonly unknown[], { isValue = false }: Place): void {
    if (list.length === 0) { this.#mark("[", { spaced: true, leavesSpace: true }); this.#mark("]"); return; }
    const outer = this.#indent;
    if (!(isValue && !this.#isIndented)) this.#indent += INDENT;
    for (const item of list) {
      this.#startLine();
      this.#mark("-", { spaced: true, indents: true });
      this.node(item, {});
    }
    this.#indent = outer;
  }

  #map(map: Readonly<Record<string, unknown>>): void {
    const keys = Object.keys(map).filter((key) => map[key] !== undefined);
    if (keys.length === 0) { this.#mark("{", { spaced: true, leavesSpace: true }); this.#mark("}"); return; }
    this.#indent += INDENT;
    for (const key of keys.sort(compareKeys)) {
      if (key.length > KEY_MAX || key.includes("\u0085")) throw new YamlTextError("yaml: line 1: did not find expected ',' or '}'");
      const text = readBack(key);
      this.#startLine();
      if (!traitsOf(text).isMultiline && Buffer.byteLength(text) <= SIMPLE_KEY_MAX) {
        this.#text(text, { isSimpleKey: true });
        this.#mark(":");
      } else {
        this.#mark("?", { spaced: true, indents: true });
        this.#text(text, {});
        this.#startLine();
        this.#mark(":", { spaced: true, indents: true });
      }
      this.node(map[key], { isValue: true });
    }
    this.#indent -= INDENT;
  }

  #text(text: string, place: Place): void {
    this.#indent += INDENT;
    const { isSimpleKey = false } = place;
    switch (styleOf(text, isSimpleKey)) {
      case "plain": this.#plain(text, place); break;
      case "single": this.#single(text, !isSimpleKey); break;
      case "double": this.#double(text, !isSimpleKey); break;
      case "literal": this.#literal(text); break;
    }
    this.#indent -= INDENT;
  }

  /** What has no line breaks. */
  #plain(text: string, { isSimpleKey = false }: Place): void {
    if (!this.#afterSpace) this.#put(" ");
    if (this.#column + text.length <= WIDTH || isSimpleKey) this.#put(text); // as nearly all
    else this.#folded(text, { mayFold: !isSimpleKey, folds: (_at, next) => next !== " " });
    this.#afterSpace = this.#isIndented = false;
  }

  #single(text: string, mayFold: boolean): void {
    this.#mark("'", { spaced: true });
    this.#folded(text, { mayFold, folds: (at, next, length) => at > 0 && at < length - 1 && next !== " ", shown: (character) => (character === "'" ? "''" : character) });
    this.#mark("'");
    this.#afterSpace = this.#isIndented = false;
  }

  #double(text: string, mayFold: boolean): void {
    const isMarked = text.startsWith("\ufeff"); // upstream escapes all of it
    this.#mark('"', { spaced: true });
    this.#folded(text, {
      mayFold, keepsSpace: true, folds: (at, _next, length) => at > 0 && at < length - 1,
      shown: (character) => (isMarked || isBreak(character) || character === '"' || character === "\\" || !isPrintable(character) ? escaped(character) : character),
    });
    this.#mark('"');
    this.#afterSpace = this.#isIndented = false;
  }

  /** `folds`: whether the line may end at the space at `at`, with `next` after it. `keepsSpace`: a space that would be lost at the start of a line is escaped. */
  #folded(text: string, { mayFold, folds, shown, keepsSpace = false }: {
    readonly mayFold: boolean; readonly keepsSpace?: boolean; folds(at: number, next: string | undefined, length: number): boolean; shown?(character: string): string;
  }): void {
    const characters = [...text];
    let wasSpace = false, wasBreak = false;
    for (const [at, character] of characters.entries()) {
      if (!keepsSpace && isBreak(character)) { // one of Unicode's: the next line is indented as any other
        this.#break(character);
        this.#isIndented = true;
        wasBreak = true;
        continue;
      }
      if (wasBreak) this.#startLine();
      wasBreak = false;
      const isSpace = character === " " && (shown?.(" ") ?? " ") === " ";
      if (isSpace && mayFold && !wasSpace && this.#column > WIDTH && folds(at, characters[at + 1], characters.length)) {
        this.#startLine();
        if (keepsSpace && characters[at + 1] === " ") this.#put("\\");
      } else {
        this.#put(shown ? shown(character) : character);
        if (!isSpace) this.#isIndented = false;
      }
      wasSpace = isSpace;
    }
  }

  #literal(text: string): void {
    const first = text[0]!;
    let breaks = 0;
    while (breaks < text.length && isBreak(text[text.length - 1 - breaks]!)) breaks++;
    const chomping = breaks === 0 ? "-" : breaks > 1 || text.length === 1 ? "+" : "";
    this.#mark("|", { spaced: true });
    if (first === " " || isBreak(first)) this.#mark(String(INDENT));
    if (chomping) this.#mark(chomping);
    this.#break("\n");
    this.#afterSpace = this.#isIndented = true;
    for (const part of text.split(/([\r\n\u0085\u2028\u2029])/)) {
      if (part === "") continue;
      if (isBreak(part)) { this.#break(part); this.#isIndented = true; continue; }
      this.#startLine();
      this.#put(part);
      this.#isIndented = false;
    }
  }

  #startLine(): void {
    const indent = Math.max(this.#indent, 0);
    if (!this.#isIndented || this.#column > indent || (this.#column === indent && !this.#afterSpace)) this.#break("\n");
    if (this.#column < indent) this.#put(" ".repeat(indent - this.#column));
    this.#afterSpace = this.#isIndented = true;
  }

  #mark(mark: string, { spaced = false, leavesSpace = false, indents = false }: { readonly spaced?: boolean; readonly leavesSpace?: boolean; readonly indents?: boolean } = {}): void {
    if (spaced && !this.#afterSpace) this.#put(" ");
    this.#put(mark);
    this.#afterSpace = leavesSpace;
    this.#isIndented &&= indents;
  }

  #put(text: string): void {
    this.#parts.push(text);
    this.#column += /[\ud800-\udbff]/.test(text) ? [...text].length : text.length;
  }

  #break(text: string): void {
    this.#parts.push(text);
    this.#column = 0;
  }
}

function styleOf(text: string, isSimpleKey: boolean): Style {
  const traits = traitsOf(text);
  if (text.includes("\n")) return traits.literal && !isSimpleKey ? "literal" : "double";
  if (looksLikeOther(text) || (isSimpleKey && traits.isMultiline)) return "double";
  return traits.plain ? "plain" : traits.single ? "single" : "double";
}

function traitsOf(text: string): Traits {
  const isMultiline = BREAKS.test(text);
  const isAmbiguous = /^(?:---|\.\.\.|[#,[\]{}&*!|>'"%@`]|[?:-](?:[ \t]|$))|:(?:[ \t]|$)/.test(text) || COMMENT.test(text);
  const edges = /^[ \r\n\u0085\u2028\u2029]|[ \r\n\u0085\u2028\u2029]$/.test(text);
  const breakThenSpace = /[\r\n\u0085\u2028\u2029] /.test(text);
  const odd = / [\r\n\u0085\u2028\u2029]/.test(text) || !isAllPrintable(text);
  return { isMultiline, plain: !isMultiline && !isAmbiguous && !edges && !odd, single: !breakThenSpace && !odd, literal: !odd && !text.endsWith(" ") };
}

const BREAKS = /[\r\n\u0085\u2028\u2029]/;
const COMMENT = /[ \t\r\n\u0085\u2028\u2029]#/;
function isBreak(character: string): boolean { return BREAKS.test(character); }

const UNPRINTABLE = /[^\n\x20-\x7e\u00a0-\ud7ff\ue000-\ufefe\uff00-\ufffd]/u;
function isPrintable(character: string): boolean { return !UNPRINTABLE.test(character); }
function isAllPrintable(text: string): boolean { return !UNPRINTABLE.test(text); }

const ESCAPES: Readonly<Record<string, string>> = {
  "\0": "0", "\x07": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", "\x1b": "e", '"': '"', "\\": "\\", "\u0085": "N", "\u00a0": "_", "\u2028": "L", "\u2029": "P",
};

function escaped(character: string): string {
  const code = character.codePointAt(0)!;
  const known = ESCAPES[character];
  if (known !== undefined) return `\\${known}`;
  const [letter, digits] = code <= 0xff ? ["x", 2] as const : code <= 0xffff ? ["u", 4] as const : ["U", 8] as const;
  return `\\${letter}${code.toString(16).toUpperCase().padStart(digits, "0")}`;
}

/** What the reader of YAML makes of a text in JSON: it takes U+0085 for the end of a line. */
function readBack(text: string): string {
  if (REFUSED.test(text)) throw new YamlTextError("yaml: control characters are not allowed");
  if (!text.includes("\u0085")) return text;
  return text.replace(/[ \u0085]+/g, (found) => (found.includes("\u0085") ? "\n".repeat(found.replaceAll(" ", "").length - 1) || " " : found));
}

/** Those that JSON escapes are none of them. */
const REFUSED = /[\x7f-\x84\x86-\x9f\ufffe\uffff]/;

function scalarText(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value !== "number" || Number.isSafeInteger(value)) return String(value === 0 ? 0 : value);
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? wholeText(value) : goFloat(value);
}

/** JSON has its digits, as few as tell it from every other and then noughts; what fits 64 bits is a whole number to YAML. */
function wholeText(value: number): string {
  const whole = BigInt(String(value));
  return whole >= -(2n ** 63n) && whole < 2n ** 64n ? String(whole) : goFloat(value);
}

/** Letters after everything else, numbers by their size. */
function compareKeys(a: string, b: string): number {
  const left = [...a], right = [...b];
  for (let i = 0; i < left.length && i < right.length; i++) {
    if (left[i] === right[i]) continue;
    const l = left[i]!, r = right[i]!;
    const isLetter = LETTER.test(l), isOtherLetter = LETTER.test(r);
    if (isLetter && isOtherLetter) return byCode(l, r);
    if (isLetter || isOtherLetter) return isOtherLetter ? -1 : 1;
    const digits = digitsFrom(left, i), otherDigits = digitsFrom(right, i);
    const leads = (l === "0" || r === "0") && hasNumberBefore(left, i) ? 1n : 0n; // zeros count within a number
    const number = numberOf(leads, digits), other = numberOf(leads, otherDigits);
    if (number !== other) return number < other ? -1 : 1;
    if (digits.length !== otherDigits.length) return digits.length - otherDigits.length;
    return byCode(l, r);
  }
  return left.length - right.length;
}

const LETTER = /^\p{L}$/u;
const DIGIT = /^\p{Nd}$/u;

function byCode(a: string, b: string): number { return a.codePointAt(0)! - b.codePointAt(0)!; }

function digitsFrom(characters: readonly string[], start: number): readonly string[] {
  let end = start;
  while (end < characters.length && DIGIT.test(characters[end]!)) end++;
  return characters.slice(start, end);
}

function hasNumberBefore(characters: readonly string[], end: number): boolean {
  for (let i = end - 1; i >= 0 && DIGIT.test(characters[i]!); i--) if (characters[i] !== "0") return true;
  return false;
}

/** Within 64 bits, as Go counts. */
function numberOf(leads: bigint, digits: readonly string[]): bigint {
  return BigInt.asIntN(64, digits.reduce((sum, digit) => sum * 10n + BigInt(digit.codePointAt(0)! - 48), leads));
}
