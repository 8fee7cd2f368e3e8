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

export const EOF = "<EOF>";

/** All types, in the order in which messages list them. */
export const TOKEN_ORDER = ["'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'['", "']'", "'{'", "'}'", "'('", "')'", "'.'", "','", "'-'", "'!'", "'?'", "':'", "'+'", "'*'",
  "'/'", "'%'", "'true'", "'false'", "'null'", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER", EOF];

const ESCAPE = String.raw`\\(?:[abfnrtv"'\\?${"`"}]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})`;
const QUOTED = String.raw`"""(?:${ESCAPE}|[^\\])*?"""|'''(?:${ESCAPE}|[^\\])*?'''|"(?:${ESCAPE}|[^\\"\n\r])*"|'(?:${ESCAPE}|[^\\'\n\r])*'`;
const RAW = String.raw`[rR](?:"""[^]*?"""|'''[^]*?'''|"[^"\n\r]*"|'[^'\n\r]*')`;

/** Tried in this order; no later one matches more than an earlier one that matches. */
const WORDS = new RegExp([
  String.raw`(?<skipped>[\t \r\n\f]+|//[^\n]*)`,
  String.raw`(?<NUM_FLOAT>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)`,
  String.raw`(?<NUM_UINT>(?:0x[0-9a-fA-F]+|\d+)[uU])`,
  String.raw`(?<NUM_INT>0x[0-9a-fA-F]+|\d+)`,
  `(?<BYTES>[bB](?:${QUOTED}|${RAW}))`,
  `(?<STRING>${QUOTED}|${RAW})`,
  String.raw`(?<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)`,
  "(?<ESC_IDENTIFIER>`[A-Za-z0-9_.\\-/ ]+`)",
  String.raw`(?<symbol>==|!=|<=|>=|&&|\|\||[<>[\]{}().,\-!?:+*/%])`,
].join("|"), "uy");

const KEYWORDS = new Set(["in", "true", "false", "null"]);
/** How far a word that is none was read: with the character at which it failed. */
const BROKEN = new RegExp(String.raw`[bB]?(?:[rR]"[^"\n\r]*[^]?|[rR]'[^'\n\r]*[^]?|"(?:${ESCAPE}|[^\\"\n\r])*(?:\\[^]?|[^])?|'(?:${ESCAPE}|[^\\'\n\r])*(?:\\[^]?|[^])?)|[=&|][^]?|${"`"}[A-Za-z0-9_.\-/ ]*[^]?|[^]`, "uy");

/** The last token is EOF. What is no word is reported and left out. */
export function tokensOf(text: string): { readonly tokens: readonly Token[]; readonly issues: readonly Issue[] } {
  const tokens: Token[] = [];
  const issues: Issue[] = [];
  let at = 0;
  while (at < text.length) {
    WORDS.lastIndex = at;
    const match = WORDS.exec(text);
    if (!match) {
      BROKEN.lastIndex = at;
      const broken = BROKEN.exec(text)?.[0] ?? text[at]!;
      issues.push({ at, message: `Syntax error: token recognition error at: '${broken}'` });
      at += broken.length;
      continue;
    }
    const type = Object.entries(match.groups!).find(([, found]) => found !== undefined)![0];
    if (type !== "skipped") tokens.push({ type: type === "symbol" || KEYWORDS.has(match[0]) ? `'${match[0]}'` : type, text: match[0], at });
    at += match[0].length;
  }
  return { tokens: [...tokens, { type: EOF, text: EOF, at: text.length }], issues };
}
