/**
 * Expressions as trees. Each node has a number of its own by which its place and, once checked, its type and what it refers to are found.
 *
 * Operators are calls of functions with names that no one can write: `a + b` is `_+_`(a, b).
 */
import type { Scalar } from "../value/value.ts";

export type Expr = Literal | Ident | Select | Call | ListExpr | MapExpr | StructExpr | Comprehension | Unspecified;

interface Node<K extends string> {
  readonly kind: K;
  readonly id: number;
}

export interface Literal extends Node<"literal"> { readonly value: Scalar }
export interface Ident extends Node<"ident"> { readonly name: string }
export interface Select extends Node<"select"> {
  readonly operand: Expr;
  readonly field: string;
  /** has(operand.field) */
  readonly test: boolean;
}
export interface Call extends Node<"call"> {
  readonly name: string;
  /** What a method is called on. */
  readonly target: Expr | undefined;
  readonly args: readonly Expr[];
}
export interface ListExpr extends Node<"list"> {
  readonly elements: readonly Expr[];
  /** Which elements are written with a question mark. */
  readonly optional: ReadonlySet<number>;
}
export interface MapEntry { readonly id: number; readonly key: Expr; readonly value: Expr; readonly optional: boolean }
export interface MapExpr extends Node<"map"> { readonly entries: readonly MapEntry[] }
export interface StructField { readonly id: number; readonly name: string; readonly value: Expr; readonly optional: boolean }
export interface StructExpr extends Node<"struct"> { readonly name: string; readonly fields: readonly StructField[] }
/** `accuVar` begins as `init`; for each element of `range`, while `condition` holds, it becomes `step`; `result` is the value of the whole. */
export interface Comprehension extends Node<"comprehension"> {
  readonly range: Expr;
  /** The element of a list, the key of a map; with a second variable the index or the key. */
  readonly iterVar: string;
  readonly iterVar2: string | undefined;
  readonly accuVar: string;
  readonly init: Expr;
  readonly condition: Expr;
  readonly step: Expr;
  readonly result: Expr;
}
/** Stands where the text was wrong. */
export interface Unspecified extends Node<"unspecified"> { readonly kind: "unspecified" }

export const OPERATORS = {
  conditional: "_?_:_", and: "_&&_", or: "_||_", not: "!_", negate: "-_", equals: "_==_", notEquals: "_!=_", less: "_<_", lessEquals: "_<=_", greater: "_>_",
  greaterEquals: "_>=_", add: "_+_", subtract: "_-_", multiply: "_*_", divide: "_/_", modulo: "_%_", index: "_[_]", optIndex: "_[?_]", optSelect: "_?._",
  in: "@in", notStrictlyFalse: "@not_strictly_false",
} as const;

/** The dotted name that selects spell, if they spell one. */
export function qualifiedName(expr: Expr): string | undefined {
  if (expr.kind === "ident") return expr.name;
  if (expr.kind !== "select" || expr.test) return undefined;
  const prefix = qualifiedName(expr.operand);
  return prefix === undefined ? undefined : `${prefix}.${expr.field}`;
}

/** What stands directly below, in the order in which it is evaluated. */
export function childrenOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case "select": return [expr.operand];
    case "call": return expr.target ? [expr.target, ...expr.args] : expr.args;
    case "list": return expr.elements;
    case "map": return expr.entries.flatMap(({ key, value }) => [key, value]);
    case "struct": return expr.fields.map(({ value }) => value);
    case "comprehension": return [expr.range, expr.init, expr.condition, expr.step, expr.result];
    default: return [];
  }
}
