/**
 * Reads tokens in order and says what is wrong with them the way ANTLR's generated parsers do: one token too many is skipped, one token too few is
 * imagined, and reading goes on; anything else ends it.
 */
import { EOF, TOKEN_ORDER, type Token } from "./lexer.ts";
import type { Issue } from "./source.ts";

/** Reading cannot go on; the issues say why. */
export class Unreadable extends Error { override readonly name = "Unreadable"; }

const OPERATORS = ["'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'-'", "'+'", "'*'", "'/'", "'%'"];
/** What may follow the end of a member: what continues it, and operators. */
const CONTINUES = ["'.'", "'['", ...OPERATORS];

export class TokenReader {
  readonly #tokens: readonly Token[];
  readonly #issues: Issue[];
  #next = 0;
  /** Nothing is told before a token has been read that fits. */
  recovering = false;
  /** Where it went on after an error. */
  #failedAt = -1;
  /** What may follow the expression that is being read, innermost last. */
  readonly #enclosing: (readonly string[])[] = [[EOF, "'?'"]];

  constructor(tokens: readonly Token[], issues: Issue[]) { this.#tokens = tokens; this.#issues = issues; }

  peek(ahead = 0): Token { return this.#tokens[Math.min(this.#next + ahead, this.#tokens.length - 1)]!; }
  at(type: string, ahead = 0): boolean { return this.peek(ahead).type === type; }

  take(): Token {
    const token = this.peek();
    this.#next++;
    this.recovering = false;
    return token;
  }

  takeIf(type: string): Token | undefined { return this.at(type) ? this.take() : undefined; }

  /** Reads with `read` what stands before one of `ends`. */
  inside<T>(ends: readonly string[], read: () => T): T {
    this.#enclosing.push(ends);
    try {
      return read();
    } finally {
      this.#enclosing.pop();
    }
  }

  /** `follows`: what may come after it; by default what may come after a member. */
  expect(type: string, follows?: readonly string[]): Token { return this.matched(type, follows) ?? this.fail(`mismatched input '${this.peek().text}' expecting ${type}`); }

  /** As `expect`; undefined instead of an issue. */
  matched(type: string, follows?: readonly string[]): Token | undefined {
    const token = this.peek();
    if (token.type === type) return this.take();
    if (this.at(type, 1)) {
      this.report(`extraneous input '${token.text}' expecting ${type}`, token);
      this.take();
      return this.take();
    }
    if (type !== EOF && (follows ?? [...CONTINUES, ...this.#enclosing.at(-1)!]).includes(token.type)) {
      this.report(`missing ${type} at '${token.text}'`, token);
      return { type, text: `<missing ${type}>`, at: token.at };
    }
    return undefined;
  }

  /** Whether the next token, or the one after it, is one of `types`; if neither is, what cannot follow is skipped and reading may go on without. */
  begins(types: readonly string[]): boolean {
    if (types.includes(this.peek().type) || types.includes(this.peek(1).type)) {
      this.sync(types);
      return true;
    }
    this.mismatched(types);
    const follows = [...CONTINUES, ...this.#enclosing.flat()];
    while (!follows.includes(this.peek().type)) this.#next++;
    return false;
  }

  /** The next token is to be one of `types`; one that is not is skipped if that helps. */
  sync(types: readonly string[]): void {
    const token = this.peek();
    if (types.includes(token.type)) return;
    if (!types.includes(this.peek(1).type)) {
      this.mismatched(types);
      throw new Unreadable(token.text);
    }
    this.report(extraneous(token, types), token);
    this.take();
  }

  /** Skips what cannot follow, and at least one token if it has been here before. `nested`: what is wrong is part of a member, which may go on. `whole`: it is no part of a term. */
  recover({ nested, whole = false }: { readonly nested: boolean; readonly whole?: boolean }): void {
    if (this.#next === this.#failedAt) this.#next++;
    this.#failedAt = this.#next;
    const follows = whole && this.#enclosing.length === 1 ? [EOF] : [EOF, ...(nested ? CONTINUES : OPERATORS), ...this.#enclosing.flat()];
    while (!follows.includes(this.peek().type)) this.#next++;
  }

  mismatched(types: readonly string[], token = this.peek()): void { this.report(`mismatched input '${token.text}' expecting ${setOf(types)}`, token); }

  fail(message: string, token = this.peek()): never {
    this.report(message, token);
    throw new Unreadable(message);
  }

  report(message: string, { at }: Token): void {
    if (!this.recovering) this.#issues.push({ at, message: `Syntax error: ${message}` });
    this.recovering = true;
  }
}

export function extraneous({ text }: Token, types: readonly string[]): string { return `extraneous input '${text}' expecting ${setOf(types)}`; }

function setOf(types: readonly string[]): string {
  const expected = [...types].sort((a, b) => TOKEN_ORDER.indexOf(a) - TOKEN_ORDER.indexOf(b)).join(", ");
  return types.length === 1 ? expected : `{${expected}}`;
}
