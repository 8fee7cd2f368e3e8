/**
 * Reads an expression.
 *
 *   const { expr, places, issues } = parse("self.size() > 2", macros);
 *
 * With issues there may be no expr. A text that is half right is read as far as it can be, to tell what is wrong with it.
 *
 * Source: cel-go parser/{parser,helper}.go, gen/CEL.g4
 */
import { Uint, type Scalar } from "../value/value.ts";
import { childrenOf, OPERATORS, type Expr, type MapEntry, type StructField } from "./expr.ts";
import { EOF, type Span, tokensOf, type Token } from "./lexer.ts";
import { MacroError, type Macro, type MacroBuilder } from "./macros.ts";
import type { Issue } from "./source.ts";
import { extraneous, TokenReader, Unreadable } from "./token-reader.ts";
import { unescapeBytes, unescapeString } from "./unescape.ts";

export interface Parsed {
  readonly expr: Expr | undefined;
  /** Where a node stands, by its number. */
  readonly places: ReadonlyMap<number, number>;
  readonly issues: readonly Issue[];
}

const DEPTH_MAX = 250;
const POINTS_MAX = 100_000;
/** A text has fewer nodes than characters, but for macros that copy what they are called on: each of `x.optMap(y, y).optMap(y, y)` and so on makes twice as many as the one before. */
const NODES_MIN = 1000, NODES_FOR_POINT = 8;
const [INT_MIN, INT_MAX, UINT_MAX] = [-(2n ** 63n), 2n ** 63n - 1n, 2n ** 64n - 1n];

const RESERVED = new Set(["as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void", "while"]);
const RELATIONS = new Map([["'<'", OPERATORS.less], ["'<='", OPERATORS.lessEquals], ["'>='", OPERATORS.greaterEquals], ["'>'", OPERATORS.greater], ["'=='", OPERATORS.equals], ["'!='", OPERATORS.notEquals], ["'in'", OPERATORS.in]]);
const FACTORS = new Map([["'*'", OPERATORS.multiply], ["'/'", OPERATORS.divide], ["'%'", OPERATORS.modulo]]);
const SUMMANDS = new Map([["'+'", OPERATORS.add], ["'-'", OPERATORS.subtract]]);
const NUMBERS = ["NUM_INT", "NUM_FLOAT"];
const IDENTIFIERS = ["IDENTIFIER", "ESC_IDENTIFIER"];
/** What an expression may begin with. */
const MEMBER_STARTS = ["'['", "'{'", "'('", "'.'", "'-'", "'true'", "'false'", "'null'", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"];
const STARTS = [...MEMBER_STARTS, "'!'"];
const ENTRY_STARTS = [...STARTS, "'?'"];

export function parse(text: string, macros: readonly Macro[]): Parsed {
  const points = countPoints(text);
  if (points > POINTS_MAX) return { expr: undefined, places: new Map(), issues: [{ at: undefined, message: `expression code point size exceeds limit: size: ${points}, limit ${POINTS_MAX}` }] };
  const { tokens, broken, issues } = tokensOf(text);
  return new Parser(text, new TokenReader(tokens, issues as Issue[]), { macros, broken, nodesMax: NODES_MIN + NODES_FOR_POINT * points, issues: issues as Issue[] }).parse();
}

function countPoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

type Rule = "expr" | "relation" | "calc" | "member";

class OverLimit extends Error { override readonly name = "OverLimit"; }

class Parser {
  readonly #text: string;
  readonly #tokens: TokenReader;
  readonly #broken: readonly Span[];
  readonly #nodesMax: number;
  readonly #macros: ReadonlyMap<string, Macro>;
  readonly #issues: Issue[];
  readonly #places = new Map<number, number>();
  /** How deep rules of the grammar stand in themselves, as upstream's parser counts it. */
  readonly #ruleDepths: Record<Rule, number> = { expr: 0, relation: 0, calc: 0, member: 0 };
  /** How many operators stand above one another below a node. */
  readonly #depths = new WeakMap<Expr, number>();
  #lastId = 0;
  /** How many parentheses, lists, maps and arguments of functions stand around. */
  #nesting = 0;

  constructor(text: string, tokens: TokenReader, { macros, broken, nodesMax, issues }: { readonly macros: readonly Macro[]; readonly broken: readonly Span[]; readonly nodesMax: number; readonly issues: Issue[] }) {
    this.#text = text; this.#tokens = tokens; this.#broken = broken; this.#nodesMax = nodesMax; this.#issues = issues;
    this.#macros = new Map(macros.map((macro) => [macroKey(macro.name, macro.args, macro.method), macro]));
  }

  parse(): Parsed {
    try {
      const expr = this.#expr();
      this.#tokens.expect(EOF);
      return { expr, places: this.#places, issues: this.#issues };
    } catch (error) {
      if (error instanceof OverLimit) this.#issues.push({ at: undefined, message: error.message });
      else if (!(error instanceof Unreadable)) throw error;
      return { expr: undefined, places: this.#places, issues: this.#issues };
    }
  }

  /** Reads one `rule` deeper. */
  #deeper<T>(rule: Rule, read: () => T): T {
    if (++this.#ruleDepths[rule] > DEPTH_MAX) throw new OverLimit(`expression recursion limit exceeded: ${DEPTH_MAX}`);
    const result = read();
    this.#ruleDepths[rule]--;
    return result;
  }

  #expr(): Expr {
    return this.#deeper("expr", () => {
      const condition = this.#logical("'||'", OPERATORS.or, () => this.#and());
      const op = this.#tokens.takeIf("'?'");
      if (!op) return condition;
      const ifTrue = this.#tokens.inside(["':'"], () => this.#logical("'||'", OPERATORS.or, () => this.#and()));
      if (!this.#tokens.matched("':'", STARTS)) {
        this.#tokens.mismatched(["':'"]);
        this.#tokens.recover({ nested: this.#nesting > 0, whole: true });
        return condition;
      }
      return this.#call(op, OPERATORS.conditional, [condition, ifTrue, this.#expr()], true);
    });
  }

  #and(): Expr { return this.#logical("'&&'", OPERATORS.and, () => this.#relation()); }

  /** Terms become a balanced tree: it is as deep as the logarithm of their number. */
  #logical(type: string, name: string, term: () => Expr): Expr {
    const terms = [term()];
    const ops: number[] = [];
    for (let op = this.#tokens.takeIf(type); op; op = this.#tokens.takeIf(type)) {
      terms.push(term());
      ops.push(this.#id(op.at));
    }
    const balanced = (low: number, high: number): Expr => {
      const middle = Math.floor((low + high + 1) / 2);
      const left = middle === low ? terms[middle]! : balanced(low, middle - 1);
      const right = middle === high ? terms[middle + 1]! : balanced(middle + 1, high);
      return this.#made({ kind: "call", id: ops[middle]!, name, target: undefined, args: [left, right] }, false);
    };
    return ops.length === 0 ? terms[0]! : balanced(0, ops.length - 1);
  }

  #relation(): Expr { return this.#deeper("relation", () => this.#leftToRight("relation", RELATIONS, () => this.#sum())); }
  #sum(): Expr { return this.#deeper("calc", () => this.#leftToRight("calc", SUMMANDS, () => this.#leftToRight("calc", FACTORS, () => this.#unary()))); }

  /** What stands on the right of an operator is read by the rule itself. */
  #leftToRight(rule: "relation" | "calc", operators: ReadonlyMap<string, string>, term: () => Expr): Expr {
    let left = term();
    for (let name = operators.get(this.#tokens.peek().type); name; name = operators.get(this.#tokens.peek().type)) {
      const op = this.#tokens.take();
      left = this.#call(op, name, [left, this.#deeper(rule, term)], true);
    }
    return left;
  }

  #unary(): Expr {
    if (!this.#tokens.begins(STARTS)) return { kind: "unspecified", id: this.#id(this.#tokens.peek().at) };
    if (this.#tokens.at("'!'")) return this.#repeated("'!'", OPERATORS.not);
    // A minus before a number is a part of it; of several the last is not.
    if (this.#tokens.at("'-'") && !NUMBERS.includes(this.#tokens.peek(1).type)) return this.#repeated("'-'", OPERATORS.negate);
    return this.#member();
  }

  #repeated(type: string, name: string): Expr {
    let count = 0;
    while (this.#tokens.at(type, count)) count++;
    const isLonely = type === "'-'" && !MEMBER_STARTS.includes(this.#tokens.peek(count).type);
    const first = this.#tokens.peek();
    for (let i = 0; i < (isLonely ? count - 1 : count); i++) this.#tokens.take();
    if (isLonely) return this.#lonelyMinus();
    if (type === "'!'" && !STARTS.includes(this.#tokens.peek().type) && !STARTS.includes(this.#tokens.peek(1).type)) this.#tokens.fail(extraneous(this.#tokens.peek(), STARTS));
    this.#tokens.sync(STARTS);
    const member = this.#member();
    return count % 2 === 0 ? member : this.#call(first, name, [member], false);
  }

  /** A minus before nothing is told of, then read as one between two terms. */
  #lonelyMinus(): Expr {
    this.#tokens.report(this.#noViable(this.#tokens.peek(), this.#tokens.peek(1)), this.#tokens.peek(1));
    return { kind: "unspecified", id: this.#id(this.#tokens.peek().at) };
  }

  #member(): Expr {
    return this.#deeper("member", () => {
      let expr = this.#primary();
      for (;;) {
        if (this.#tokens.at("'.'")) {
          const selected = this.#afterDot(expr);
          if (!selected) return expr;
          expr = selected;
        } else if (this.#tokens.at("'['")) expr = this.#indexed(expr);
        else return expr;
      }
    });
  }

  /** Undefined: there is no name after it, and the member ends before it. */
  #afterDot(operand: Expr): Expr | undefined {
    const next = this.#tokens.peek(1);
    if (next.type !== "'?'" && !IDENTIFIERS.includes(next.type)) {
      this.#tokens.report(this.#notSelected(this.#tokens.peek(), next), next);
      this.#tokens.recover({ nested: this.#nesting > 0 });
      return undefined;
    }
    const dot = this.#tokens.take();
    const optional = this.#tokens.takeIf("'?'");
    if (optional) this.#tokens.sync(IDENTIFIERS);
    const name = this.#tokens.take();
    if (name.type === "ESC_IDENTIFIER") this.#issues.push({ at: name.at, message: "unsupported syntax: '`'" });
    if (optional) return this.#call(dot, OPERATORS.optSelect, [operand, { kind: "literal", id: this.#id(name.at), value: name.text }], true);
    const open = this.#tokens.takeIf("'('");
    if (!open) return this.#made({ kind: "select", id: this.#id(dot.at), operand, field: name.text, test: false }, true);
    return this.#invoked(open, name.text, { target: operand, args: this.#args() });
  }

  #notSelected(from: Token, token: Token): string {
    return ["'true'", "'false'", "'null'"].includes(token.type) && this.#isNext(from, token) ? `mismatched input '${token.text}' expecting IDENTIFIER` : this.#noViable(from, token);
  }

  /** Whether nothing stands between them, or only what is no token. */
  #isNext(dot: Token, token: Token): boolean {
    return this.#brokenIn(dot.at, token.at).reduce((at, { length }) => at + length, dot.at + 1) === token.at;
  }

  #brokenIn(from: number, end: number): readonly Span[] { return this.#broken.filter(({ at }) => at >= from && at < end); }

  #noViable(from: Token, token: Token): string {
    const end = token.type === EOF ? this.#text.length : token.at + token.text.length;
    const read = this.#brokenIn(from.at, end).reduceRight((text, { at, length }) => text.slice(0, at - from.at) + text.slice(at - from.at + length), this.#text.slice(from.at, end));
    return `no viable alternative at input '${read}'`;
  }

  #indexed(operand: Expr): Expr {
    const open = this.#tokens.take();
    this.#tokens.sync([...STARTS, "'?'"]);
    const optional = this.#tokens.takeIf("'?'");
    const index = this.#tokens.inside(["']'", "'?'"], () => this.#expr());
    this.#tokens.expect("']'");
    return this.#call(open, optional ? OPERATORS.optIndex : OPERATORS.index, [operand, index], true);
  }

  /** After the parenthesis. */
  #args(): Expr[] {
    this.#tokens.sync([...STARTS, "')'"]);
    const args: Expr[] = [];
    this.#tokens.inside(["')'", "','", "'?'"], () => {
      if (this.#tokens.at("')'")) return;
      do args.push(this.#expr()); while (this.#tokens.takeIf("','"));
    });
    this.#tokens.expect("')'");
    return args;
  }

  #primary(): Expr {
    this.#nesting++;
    try {
      return this.#primaryOf(this.#tokens.peek());
    } finally {
      this.#nesting--;
    }
  }

  #primaryOf(token: Token): Expr {
    switch (token.type) {
      case "'('": {
        this.#tokens.take();
        const expr = this.#tokens.inside(["')'", "'?'"], () => this.#expr());
        this.#tokens.expect("')'");
        return expr;
      }
      case "'['": return this.#list();
      case "'{'": return this.#map();
      case "'.'": case "IDENTIFIER": return this.#named();
      default: return this.#literal();
    }
  }

  #named(): Expr {
    const start = this.#tokens.peek();
    if (this.#tokens.at("'.'") && !this.#tokens.at("IDENTIFIER", 1)) {
      this.#tokens.report(this.#notSelected(start, this.#tokens.peek(1)), this.#tokens.peek(1));
      this.#tokens.recover({ nested: true });
      return { kind: "unspecified", id: this.#id(start.at) };
    }
    const dot = this.#tokens.takeIf("'.'");
    const length = this.#messageNameLength();
    if (length > 0) return this.#message(dot, length);
    const name = this.#tokens.take();
    const open = this.#tokens.takeIf("'('");
    const args = open && this.#args();
    if (RESERVED.has(name.text)) return this.#wrong(start.at, `reserved identifier: ${name.text}`);
    const full = `${dot ? "." : ""}${name.text}`;
    return open && args ? this.#invoked(open, full, { target: undefined, args }) : { kind: "ident", id: this.#id(name.at), name: full };
  }

  /** How many tokens of a dotted name stand before a brace. */
  #messageNameLength(): number {
    let length = 1;
    while (this.#tokens.at("'.'", length) && this.#tokens.at("IDENTIFIER", length + 1)) length += 2;
    return this.#tokens.at("'{'", length) ? length : 0;
  }

  #message(dot: Token | undefined, length: number): Expr {
    const name = Array.from({ length }, () => this.#tokens.take().text).join("");
    const id = this.#id(this.#tokens.take().at);
    this.#tokens.sync(["'}'", "','", "'?'", ...IDENTIFIERS]);
    const fields: StructField[] = [];
    this.#entries("'}'", ["'?'", ...IDENTIFIERS], () => {
      this.#tokens.sync(["'?'", ...IDENTIFIERS]);
      const optional = this.#tokens.takeIf("'?'") !== undefined;
      if (optional) this.#tokens.sync(IDENTIFIERS);
      const field = this.#tokens.take();
      const colon = this.#tokens.expect("':'", STARTS);
      const fieldId = this.#id(colon.at);
      if (field.type === "ESC_IDENTIFIER") this.#wrong(field.at, "unsupported syntax: '`'");
      fields.push({ id: fieldId, name: field.text, value: this.#expr(), optional });
    });
    return this.#made({ kind: "struct", id, name: `${dot ? "." : ""}${name}`, fields }, false);
  }

  #list(): Expr {
    const id = this.#id(this.#tokens.take().at);
    this.#tokens.sync([...STARTS, "'?'", "','", "']'"]);
    const elements: Expr[] = [];
    const optional = new Set<number>();
    this.#entries("']'", ENTRY_STARTS, () => {
      if (this.#tokens.takeIf("'?'")) optional.add(elements.length);
      elements.push(this.#expr());
    });
    return this.#made({ kind: "list", id, elements, optional }, false);
  }

  #map(): Expr {
    const id = this.#id(this.#tokens.take().at);
    this.#tokens.sync([...STARTS, "'?'", "','", "'}'"]);
    const entries: MapEntry[] = [];
    this.#entries("'}'", ENTRY_STARTS, () => {
      const optional = this.#tokens.takeIf("'?'") !== undefined;
      const key = this.#tokens.inside(["':'", "'?'"], () => this.#expr());
      const colon = this.#tokens.expect("':'", STARTS);
      entries.push({ id: this.#id(colon.at), key, value: this.#expr(), optional });
    });
    return this.#made({ kind: "map", id, entries }, false);
  }

  /** Entries with commas between them, perhaps one after the last, and what closes them. */
  #entries(close: string, starts: readonly string[], read: () => void): void {
    this.#tokens.inside([close, "','", "'?'"], () => {
      if (this.#tokens.at(close) || this.#tokens.at("','")) return;
      read();
      while (this.#tokens.at("','") && starts.includes(this.#tokens.peek(1).type)) {
        this.#tokens.take();
        read();
      }
    });
    if (!this.#tokens.recovering) this.#tokens.sync([close, "','"]);
    this.#tokens.takeIf("','");
    this.#tokens.expect(close);
  }

  #literal(): Expr {
    const start = this.#tokens.peek();
    if (this.#tokens.at("'-'") && !NUMBERS.includes(this.#tokens.peek(1).type)) return this.#lonelyMinus();
    const sign = this.#tokens.takeIf("'-'") ? "-" : "";
    const { type, text } = this.#tokens.take();
    const value = this.#valueOf(type, sign + text);
    return typeof value === "object" && value !== null && "wrong" in value ? this.#wrong(start.at, value.wrong) : { kind: "literal", id: this.#id(start.at), value };
  }

  #valueOf(type: string, text: string): Scalar | { readonly wrong: string } {
    switch (type) {
      case "'true'": return true;
      case "'false'": return false;
      case "'null'": return null;
      case "NUM_INT": {
        const value = text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text);
        return value < INT_MIN || value > INT_MAX ? { wrong: "invalid int literal" } : value;
      }
      case "NUM_UINT": {
        const value = BigInt(text.slice(0, -1));
        return value > UINT_MAX ? { wrong: "invalid uint literal" } : new Uint(value);
      }
      case "NUM_FLOAT": return Number.isFinite(Number(text)) ? Number(text) : { wrong: "invalid double literal" };
      default:
        try {
          return type === "BYTES" ? unescapeBytes(text.slice(1)) : unescapeString(text);
        } catch (error) {
          return { wrong: (error as Error).message };
        }
    }
  }

  #call(at: Token, name: string, args: readonly Expr[], counted: boolean): Expr {
    return this.#made({ kind: "call", id: this.#id(at.at), name, target: undefined, args }, counted);
  }

  /** A call, or what the macro of that name makes of it. */
  #invoked(open: Token, name: string, { target, args }: { readonly target: Expr | undefined; readonly args: readonly Expr[] }): Expr {
    const id = this.#id(open.at);
    const macro = this.#macros.get(macroKey(name, args.length, target !== undefined));
    const depth = 1 + Math.max(0, ...[...(target ? [target] : []), ...args].map((below) => this.#depths.get(below) ?? 0));
    try {
      const expanded = macro?.expand(this.#builder(open.at), target, args);
      if (expanded) {
        this.#depths.set(expanded, depth);
        return expanded;
      }
    } catch (error) {
      if (!(error instanceof MacroError)) throw error;
      return this.#wrong(this.#places.get(error.expr.id), error.message);
    }
    return this.#made({ kind: "call", id, name, target, args }, target !== undefined);
  }

  #builder(at: number): MacroBuilder {
    const call = (name: string, target: Expr | undefined, args: readonly Expr[]): Expr => ({ kind: "call", id: this.#id(at), name, target, args });
    return {
      copy: (expr) => this.#copy(expr),
      literal: (value) => ({ kind: "literal", id: this.#id(at), value }),
      ident: (name) => ({ kind: "ident", id: this.#id(at), name }),
      list: (...elements) => ({ kind: "list", id: this.#id(at), elements, optional: new Set() }),
      emptyMap: () => ({ kind: "map", id: this.#id(at), entries: [] }),
      call: (name, ...args) => call(name, undefined, args),
      method: (name, target, ...args) => call(name, target, args),
      presence: (operand, field) => ({ kind: "select", id: this.#id(at), operand, field, test: true }),
      comprehension: (parts) => ({ kind: "comprehension", id: this.#id(at), ...parts, iterVar2: parts.iterVar2 }),
    };
  }

  #copy(expr: Expr): Expr {
    const id = this.#id(this.#places.get(expr.id) ?? 0);
    const copy = (below: Expr): Expr => this.#copy(below);
    switch (expr.kind) {
      case "select": return { ...expr, id, operand: copy(expr.operand) };
      case "call": return { ...expr, id, target: expr.target && copy(expr.target), args: expr.args.map(copy) };
      case "list": return { ...expr, id, elements: expr.elements.map(copy) };
      case "map": return { ...expr, id, entries: expr.entries.map((entry) => ({ ...entry, id: this.#id(this.#places.get(entry.id) ?? 0), key: copy(entry.key), value: copy(entry.value) })) };
      case "struct": return { ...expr, id, fields: expr.fields.map((field) => ({ ...field, id: this.#id(this.#places.get(field.id) ?? 0), value: copy(field.value) })) };
      case "comprehension":
        return { ...expr, id, range: copy(expr.range), init: copy(expr.init), condition: copy(expr.condition), step: copy(expr.step), result: copy(expr.result) };
      default: return { ...expr, id };
    }
  }

  /** `counted`: whether it adds to the depth that is limited. */
  #made<E extends Expr>(expr: E, counted: boolean): E {
    const depth = Math.max(0, ...childrenOf(expr).map((below) => this.#depths.get(below) ?? 0)) + (counted ? 1 : 0);
    if (depth > DEPTH_MAX) throw new OverLimit("max recursion depth exceeded");
    this.#depths.set(expr, depth);
    return expr;
  }

  #wrong(at: number | undefined, message: string): Expr {
    this.#issues.push({ at, message });
    return { kind: "unspecified", id: this.#id(at ?? 0) };
  }

  #id(at: number): number {
    if (this.#lastId >= this.#nodesMax) throw new OverLimit(`expression node count exceeds limit: ${this.#nodesMax}`);
    this.#places.set(++this.#lastId, at);
    return this.#lastId;
  }
}

function macroKey(name: string, args: number, method: boolean): string { return `${name}:${args}:${method}`; }
