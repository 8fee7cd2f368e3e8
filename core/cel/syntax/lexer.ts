/**
 * The words of an expression. The type of a word is its name in the grammar, as messages show it: `'&&'`, `IDENTIFIER`.
 *
 * Source: cel-go parser/gen/CEL.g4
 */
import type { Issue } from "./source.ts";

export interface Token {
  readonly type: string;
  readonly text: string;
  readonly at: number;
}

export interface Span { readonly at: number; readonly length: number }

export const EOF = "<EOF>";

/** All types, in the order in which messages list them. */
export const TOKEN_ORDER = ["'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'['", "']'", "'{'", "'}'", "'('", "')'", "'.'", "','", "'-'", "'!'", "'?'", "':'", "'+'", "'*'",
  "'/'", "'%'", "'true'", "'false'", "'null'", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER", EOF];

const ESCAPE = /\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})/y;
const PREFIX = /(?:[bB][rR]?|[rR])?(?=["'])/y;

/** Tried in this order; no later one matches more than an earlier one that matches. */
const WORDS = new RegExp([
  String.raw`(?<skipped>[\t \r\n\f]+|//[^\n]*)`,
  String.raw`(?<NUM_FLOAT>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)`,
  String.raw`(?<NUM_UINT>(?:0x[0-9a-fA-F]+|\d+)[uU])`,
  String.raw`(?<NUM_INT>0x[0-9a-fA-F]+|\d+)`,
  String.raw`(?<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)`,
  "(?<ESC_IDENTIFIER>`[A-Za-z0-9_.\\-/ ]+`)",
  String.raw`(?<symbol>==|!=|<=|>=|&&|\|\||[<>[\]{}().,\-!?:+*/%])`,
].join("|"), "uy");

const KEYWORDS = new Set(["in", "true", "false", "null"]);
/** How far a word that is none was read: with the character at which it failed. */
const BROKEN = /[=&|].?|`[A-Za-z0-9_.\-/ ]*.?|./suy;
const BROKEN_IN_TEXT = /\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?.?|./suy;

/** The last token is EOF. What is no word is reported and left out: it is `broken`. */
export function tokensOf(text: string): { readonly tokens: readonly Token[]; readonly broken: readonly Span[]; readonly issues: readonly Issue[] } {
  const tokens: Token[] = [];
  const broken: Span[] = [];
  const issues: Issue[] = [];
  let at = 0;
  while (at < text.length) {
    const literal = literalAt(text, at);
    if (literal) {
      tokens.push(literal);
      at += literal.text.length;
      continue;
    }
    const match = matchAt(WORDS, text, at);
    if (!match) {
      const wrong = brokenAt(text, at);
      issues.push({ at, message: `Syntax error: token recognition error at: '${wrong}'` });
      broken.push({ at, length: wrong.length });
      at += wrong.length;
      continue;
    }
    const type = Object.entries(match.groups!).find(([, found]) => found !== undefined)![0];
    if (type !== "skipped") tokens.push({ type: type === "symbol" || KEYWORDS.has(match[0]) ? `'${match[0]}'` : type, text: match[0], at });
    at += match[0].length;
  }
  return { tokens: [...tokens, { type: EOF, text: EOF, at: text.length }], broken, issues };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** A text or bytes. Not a pattern: a regular expression would need room for every character of it. */
function literalAt(text: string, at: number): Token | undefined {
  const prefix = matchAt(PREFIX, text, at)?.[0];
  if (prefix === undefined) return undefined;
  const start = at + prefix.length;
  const raw = /[rR]/.test(prefix);
  for (const quote of [text[start]!.repeat(3), text[start]!]) {
    const { end, closed } = text.startsWith(quote, start) ? readUntil(text, start + quote.length, { quote, raw }) : NOT_CLOSED;
    if (closed) return { type: /[bB]/.test(prefix) ? "BYTES" : "STRING", text: text.slice(at, end), at };
  }
  return undefined;
}

const NOT_CLOSED = { end: 0, closed: false };

/** `end`: after the closing quote, or where it cannot go on. */
function readUntil(text: string, from: number, { quote, raw }: { readonly quote: string; readonly raw: boolean }): { readonly end: number; readonly closed: boolean } {
  let at = from;
  while (at < text.length) {
    if (text.startsWith(quote, at)) return { end: at + quote.length, closed: true };
    const char = text[at]!;
    if (quote.length === 1 && (char === "\n" || char === "\r")) break;
    const escape = !raw && char === "\\" ? matchAt(ESCAPE, text, at) : undefined;
    if (escape === null) break;
    at += escape ? escape[0].length : 1;
  }
  return { end: at, closed: false };
}

function brokenAt(text: string, at: number): string {
  const quote = text[at]!;
  if (quote !== '"' && quote !== "'") return matchAt(BROKEN, text, at)![0];
  const { end } = readUntil(text, at + 1, { quote, raw: false });
  return text.slice(at, end) + (matchAt(BROKEN_IN_TEXT, text, end)?.[0] ?? "");
}
