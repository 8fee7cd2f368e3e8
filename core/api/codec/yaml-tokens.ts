/**
 * The tokens of a YAML text, where go-yaml is laxer than the parser we have: within brackets and quotes it does not look at indentation, a dash before a
 * bracket or a comma is a text (`[tar, xf, -]`), and a text that ends within a block scalar ends it without a line break.
 *
 * Source: go.yaml.in/yaml/v2 scannerc.go
 */
import { type CST, Lexer } from "yaml";

/** What the lexer does not show. */
interface Inside {
  /** How far a line must be indented to belong to what is being read. */
  indentNext: number;
  /** How many brackets are open. */
  readonly flowLevel: number;
  /** Asked for the next character alone, it wants to know whether that is an indicator. */
  charAt(offset: number): string | undefined;
  parseFlowCollection(): Generator<string, unknown>;
  parseQuotedScalar(): Generator<string, unknown>;
}

export function laxLexer(): Lexer {
  const lexer = new Lexer(), inside = lexer as unknown as Inside;
  const { parseFlowCollection, parseQuotedScalar, charAt } = inside;
  const lax = (parse: () => Generator<string, unknown>) => function* parseLaxly(): Generator<string, unknown> {
    const { indentNext } = inside;
    inside.indentNext = 0;
    const next: unknown = yield* parse.call(inside);
    inside.indentNext = indentNext;
    return next;
  };
  const isText = (character: string | undefined): boolean => character === "-" && inside.flowLevel > 0 && /^[[\]{},]$/.test(charAt.call(inside, 1) ?? "");
  const charAtLaxly = (offset: number): string | undefined => {
    const character = charAt.call(inside, offset);
    return offset === 0 && isText(character) ? undefined : character;
  };
  Object.assign(inside, { parseFlowCollection: lax(parseFlowCollection), parseQuotedScalar: lax(parseQuotedScalar), charAt: charAtLaxly });
  return lexer;
}

/** The last token of a text that ends without a line break: a block scalar there has none to keep. Mutates. What stands before the end is not looked at: it may nest as deep as the text is long. */
export function endedWithin(token: CST.Token): CST.Token {
  if (token.type !== "document") return token;
  let at: CST.Token | null | undefined = token.value;
  while (at && "items" in at) {
    const last: CST.CollectionItem | undefined = at.items.at(-1);
    at = last?.value ?? last?.key;
  }
  if (at?.type !== "block-scalar" || /\n *$/.test(at.source)) return token;
  const header = at.props.find((prop) => prop.type === "block-scalar-header") as CST.SourceToken | undefined;
  if (header) header.source = `${header.source.replace(/[-+]/, "")}-`;
  return token;
}
