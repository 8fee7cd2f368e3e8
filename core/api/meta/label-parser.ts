/**
 * The grammar of label selector strings. label-selector.ts is what to call.
 *
 *   selector    = requirement { "," requirement }
 *   requirement = [ "!" ] key | key ( "=" | "==" | "!=" | ">" | "<" ) [ value ] | key ( "in" | "notin" ) "(" [ value ] { "," [ value ] } ")"
 *
 * Source: kubernetes v1.36 apimachinery/pkg/labels/selector.go
 */
import { formatFieldError, invalid } from "./field-error.ts";
import { checkRequirement, type LabelOperator, type LabelRequirement } from "./label-requirement.ts";
import { qualifiedName } from "./names.ts";

interface Token { readonly kind: "identifier" | "symbol" | "word" | "end" | "error"; readonly text: string }

const END: Token = { kind: "end", text: "" };
const OPERATORS: Readonly<Record<string, LabelOperator>> = { "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt", in: "in", notin: "notin" };
const OPERATORS_EXPECTED = "in, notin, =, ==, !=, gt, lt";

export class LabelParser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = scan(text);
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      const next = this.#peek();
      if (next.kind === "end") return requirements;
      if (!isValue(next) && next.text !== "!") throw new Error(`found '${next.text}', expected: !, identifier, or 'end of string'`);
      requirements.push(this.#requirementOrThrow());
      const separator = this.#take();
      if (separator.kind === "end") return requirements;
      if (!isSymbol(separator, ",")) throw new Error(`found '${separator.text}', expected: ',' or 'end of string'`);
      const after = this.#peek();
      if (!isValue(after) && !isSymbol(after, "!")) throw new Error(`found '${after.text}', expected: identifier after ','`);
    }
  }

  #requirementOrThrow(): LabelRequirement {
    try {
      const requirement = this.#requirement();
      checkRequirement(requirement);
      return requirement;
    } catch (error) {
      throw new Error(`unable to parse requirement: ${(error as Error).message}`);
    }
  }

  #requirement(): LabelRequirement {
    const negated = isSymbol(this.#peek(), "!");
    if (negated) this.#take();
    const name = this.#take();
    if (!isValue(name)) throw new Error(`found '${name.text}', expected: identifier`);
    const key = name.text;
    const problems = qualifiedName(key);
    if (problems.length > 0) throw new Error(formatFieldError(invalid("<nil>", key, problems.join("; "))));
    const next = this.#peek();
    if (negated) return { key, operator: "!", values: [] };
    if (next.kind === "end" || isSymbol(next, ",")) return { key, operator: "exists", values: [] };
    const operator = this.#operator();
    return { key, operator, values: operator === "in" || operator === "notin" ? this.#values() : this.#exactValue() };
  }

  #operator(): LabelOperator {
    const token = this.#take();
    const operator = token.kind === "symbol" || token.kind === "word" ? OPERATORS[token.text] : undefined;
    if (operator === undefined) throw new Error(`found '${token.text}', expected: ${OPERATORS_EXPECTED}`);
    return operator;
  }

  /** Sorted and without repetitions; an empty place between commas is the empty value. */
  #values(): string[] {
    const open = this.#take();
    if (!isSymbol(open, "(")) throw new Error(`found '${open.text}' expected: '('`);
    const first = this.#peek();
    if (isSymbol(first, ")")) { this.#take(); return [""]; }
    if (!isValue(first) && !isSymbol(first, ",")) throw new Error(`found '${first.text}', expected: ',', ')' or identifier`);
    const values = this.#identifiers();
    this.#take(); // the ")" that ended the list
    return [...values].sort();
  }

  #identifiers(): Set<string> {
    const values = new Set<string>();
    for (;;) {
      const token = this.#take();
      const next = this.#peek();
      if (isValue(token)) {
        values.add(token.text);
        if (isSymbol(next, ")")) return values;
        if (!isSymbol(next, ",")) throw new Error(`found '${next.text}', expected: ',' or ')'`);
      } else if (isSymbol(token, ",")) {
        if (values.size === 0 || isSymbol(next, ")") || isSymbol(next, ",")) values.add("");
        if (isSymbol(next, ")")) return values;
      } else throw new Error(`found '${token.text}', expected: ',', or identifier`);
    }
  }

  #exactValue(): string[] {
    const next = this.#peek();
    if (next.kind === "end" || isSymbol(next, ",")) return [""];
    this.#take();
    if (!isValue(next)) throw new Error(`found '${next.text}', expected: identifier`);
    return [next.text];
  }

  #peek(): Token { return this.#tokens[this.#at] ?? END; }
  #take(): Token { return this.#tokens[this.#at++] ?? END; }
}

/** `in` and `notin` are ordinary words wherever a value may stand. */
function isValue({ kind }: Token): boolean { return kind === "identifier" || kind === "word"; }
function isSymbol({ kind, text }: Token, symbol: string): boolean { return kind === "symbol" && text === symbol; }

function scan(text: string): Token[] {
  const tokens: Token[] = [];
  for (const [part] of text.matchAll(/==|!=|[=!(),><]|[^=!(),> \t\r\n<]+/g)) {
    if (/^[=!(),><]/.test(part)) tokens.push({ kind: "symbol", text: part });
    else tokens.push({ kind: part === "in" || part === "notin" ? "word" : "identifier", text: part });
  }
  return tokens;
}
