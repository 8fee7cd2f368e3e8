/**
 * How much an expression costs at least and at most, before anyone has evaluated it: what a rule may cost is decided when it is written, not when it is
 * asked.
 *
 *   estimateCost(checked, environment, ({ path }) => sizes.get(path.join(".")))
 *
 * Source: cel-go checker/cost.go
 */
import type { Checked } from "../check/checker.ts";
import type { Environment } from "../check/declarations.ts";
import { DYN, isOptional, type Kind, type Type } from "../check/type.ts";
import type { Call, Comprehension, Expr, Literal } from "../syntax/expr.ts";
import { ACCUMULATOR } from "../syntax/macros.ts";
import { countPoints } from "../value/value.ts";
import type { CallEstimate, CostNode, SizeOf } from "./call-estimate.ts";
import { COMPARES_STRINGS, LIST_COST, MAP_COST, REGEX_FACTOR, STRING_FACTOR, STRUCT_COST } from "./factors.ts";
import { libraryCost } from "./library-cost.ts";
import { either, fixed, FREE, LARGEST, product, sum, times, UNKNOWN_SIZE, type Estimate } from "./size-estimate.ts";

export function estimateCost(checked: Checked, environment: Environment, sizeOf: SizeOf): Estimate { return new Estimator(checked, environment, sizeOf).cost(checked.expr); }

/** Of the entries of a list or a map. */
interface EntrySize {
  readonly kind: "list" | "map";
  readonly key: Estimate;
  readonly value: Estimate;
}

interface Local {
  readonly path: readonly string[];
  readonly size: Estimate | undefined;
  readonly entries: EntrySize | undefined;
}

const ONE = fixed(1n);
const NOTHING: Estimate = { min: LARGEST, max: 0n };
const SCALARS: readonly Kind[] = ["bool", "double", "duration", "int", "timestamp", "uint"];

interface Arguments {
  readonly nodes: readonly CostNode[];
  readonly exprs: readonly Expr[];
  readonly costs: readonly Estimate[];
}

class Estimator {
  readonly #types: ReadonlyMap<number, Type>;
  readonly #references: Checked["references"];
  readonly #environment: Environment;
  readonly #sizeOf: SizeOf;
  readonly #paths = new Map<number, readonly string[]>();
  readonly #sizes = new Map<number, Estimate>();
  readonly #entries = new Map<number, EntrySize>();
  /** Innermost last. */
  readonly #locals: (readonly [name: string, local: Local])[] = [];

  constructor({ types, references }: Checked, environment: Environment, sizeOf: SizeOf) {
    this.#types = types; this.#references = references; this.#environment = environment; this.#sizeOf = sizeOf;
  }

  cost(expr: Expr): Estimate {
    switch (expr.kind) {
      case "literal": case "unspecified": return FREE;
      case "ident":
        this.#paths.set(expr.id, this.#local(expr.name)?.path ?? [expr.name]);
        return ONE;
      case "select": {
        const operand = this.cost(expr.operand);
        // Asking whether something is there is free.
        if (expr.test) return operand;
        this.#paths.set(expr.id, [...this.#path(expr.operand), expr.field]);
        return ["map", "struct", "param"].includes(this.#type(expr.operand).kind) ? sum(operand, ONE) : operand;
      }
      case "call": return this.#call(expr);
      case "list": {
        const costs = expr.elements.map((element) => this.cost(element));
        const value = expr.elements.length === 0 ? FREE : this.#anyOf(expr.elements);
        this.#entries.set(expr.id, { kind: "list", key: ONE, value });
        return sum(...costs, fixed(BigInt(LIST_COST)));
      }
      case "map": {
        const costs = expr.entries.flatMap(({ key, value }) => [this.cost(key), this.cost(value)]);
        const [keys, values] = [expr.entries.map(({ key }) => key), expr.entries.map(({ value }) => value)];
        this.#entries.set(expr.id, { kind: "map", key: keys.length === 0 ? FREE : this.#anyOf(keys), value: values.length === 0 ? FREE : this.#anyOf(values) });
        return sum(...costs, fixed(BigInt(MAP_COST)));
      }
      case "struct": return sum(...expr.fields.map(({ value }) => this.cost(value)), fixed(BigInt(STRUCT_COST)));
      case "comprehension": return isBinding(expr) ? this.#binding(expr) : this.#comprehension(expr);
    }
  }

  #anyOf(exprs: readonly Expr[]): Estimate { return exprs.map((each) => this.#known(each)).reduce(either, NOTHING); }

  #call(call: Call): Estimate {
    if (call.name === "dyn") return this.#dyn(call);
    const costs = call.args.map((arg) => this.cost(arg));
    const nodes = call.args.map((arg) => this.#node(arg));
    const reference = this.#references.get(call.id);
    if (reference?.kind !== "overloads") return FREE;
    const targetCost = call.target ? this.cost(call.target) : FREE;
    const target = call.target && this.#node(call.target);
    let cost = NOTHING;
    let size: Estimate | undefined;
    for (const id of reference.ids) {
      const estimate = this.#overload(call, id, { target, args: { nodes, exprs: call.args, costs } });
      cost = either(cost, estimate.cost);
      if (estimate.size) size = size ? either(size, estimate.size) : estimate.size;
      if (id === "index_list" || id === "index_map") {
        size = this.#entrySize(call.args[0]!)?.value;
        this.#paths.set(call.id, [...this.#path(call.args[0]!), id === "index_list" ? "@items" : "@values"]);
      }
      size ??= this.#size(call);
    }
    if (size) this.#sizes.set(call.id, size);
    return sum(targetCost, cost);
  }

  #dyn(call: Call): Estimate {
    const arg = call.args[0]!;
    const cost = this.cost(arg);
    this.#copySizes(call, arg);
    return sum(ONE, cost);
  }

  #overload(call: Call, id: string, { target, args }: { readonly target: CostNode | undefined; readonly args: Arguments }): CallEstimate {
    const argCosts = sum(...args.costs);
    const estimator = this.#environment.overloads.get(id)?.cost?.estimate ?? libraryCost(call.name)?.estimate;
    const estimate = estimator?.({ target, args: args.nodes, sizeOf: (node) => this.#sizeOfNode(node), overload: id });
    if (estimate) return { ...estimate, cost: sum(estimate.cost, argCosts) };
    const standard = this.#standard(call, id, { target, args });
    return standard?.whole ? standard : { ...standard, cost: sum(standard?.cost ?? ONE, argCosts) };
  }

  /** `whole`: with the arguments. Undefined: 1. */
  #standard(call: Call, id: string, { target, args }: { readonly target: CostNode | undefined; readonly args: Arguments }): (CallEstimate & { readonly whole?: true }) | undefined {
    const [first, second] = args.nodes;
    const known = (node: CostNode): Estimate => node.size ?? UNKNOWN_SIZE;
    const reading = (node: CostNode): Estimate => times(known(node), STRING_FACTOR);
    if (COMPARES_STRINGS.has(id)) {
      const max = [known(first!).max, known(second!).max].reduce((a, b) => (a < b ? a : b));
      return { cost: times({ min: max > 0n ? 1n : 0n, max }, STRING_FACTOR) };
    }
    switch (id) {
      case "string_format": return target && { cost: reading(target) };
      case "string_to_bytes": return { cost: reading(first!), size: { min: known(first!).min, max: BigInt.asUintN(64, known(first!).max * 4n) } };
      case "bytes_to_string": return { cost: reading(first!), size: { min: known(first!).min / 4n, max: known(first!).max } };
      case "strings_quote": return { cost: reading(first!), size: { min: known(first!).min + 2n, max: BigInt.asUintN(64, known(first!).max * 2n + 2n) } };
      case "starts_with_string": case "ends_with_string": return { cost: reading(first!) };
      case "in_list": return { cost: times(known(second!), 1) };
      case "matches_string": return target && { cost: product(times(sum(known(target), ONE), STRING_FACTOR), times(known(first!), REGEX_FACTOR)) };
      case "contains_string": return target && { cost: product(reading(target), reading(first!)) };
      case "logical_or": case "logical_and": return { whole: true, cost: { min: args.costs[0]!.min, max: sum(...args.costs).max } };
      case "conditional": return { whole: true, ...this.#conditional(call, args) };
      case "add_string": case "add_bytes": case "add_list": {
        const size = sum(known(first!), known(second!));
        this.#setEntries(call, unionOf(this.#entrySize(args.exprs[0]!), this.#entrySize(args.exprs[1]!)));
        return { cost: id === "add_list" ? ONE : times(size, STRING_FACTOR), size };
      }
      default: return undefined;
    }
  }

  #conditional(call: Call, { nodes, exprs, costs }: Arguments): CallEstimate {
    const known = (node: CostNode | undefined): Estimate => node?.size ?? UNKNOWN_SIZE;
    this.#setEntries(call, unionOf(this.#entrySize(exprs[1]!), this.#entrySize(exprs[2]!)));
    return { cost: sum(costs[0]!, either(costs[1]!, costs[2]!)), size: either(known(nodes[1]), known(nodes[2])) };
  }

  #binding(expr: Comprehension): Estimate {
    const cost = sum(this.cost(expr.range), this.cost(expr.init));
    this.#locals.push([expr.accuVar, this.#bound(expr.init)]);
    const result = this.cost(expr.result);
    this.#locals.pop();
    this.#copySizes(expr, expr.result);
    return sum(cost, result);
  }

  #comprehension(expr: Comprehension): Estimate {
    const before = sum(this.cost(expr.range), this.cost(expr.init));
    this.#locals.push([expr.accuVar, this.#bound(expr.init)]);
    const variables = this.#variables(expr);
    this.#locals.push(...variables);
    const turn = sum(this.cost(expr.condition), this.cost(expr.step));
    this.#locals.splice(-variables.length);
    const result = this.cost(expr.result);
    this.#locals.pop();
    const turns = this.#known(expr.range);
    if (expr.init.kind === "literal") {
      const size = this.#size(expr.init);
      if (size) this.#sizes.set(expr.id, size);
    } else if (expr.init.kind === "list" || expr.init.kind === "map") {
      this.#sizes.set(expr.id, turns);
      this.#setEntries(expr, this.#entrySize(expr.step));
    }
    return sum(before, result, product(turns, turn));
  }

  #variables({ range, iterVar, iterVar2 }: Comprehension): (readonly [name: string, local: Local])[] {
    const entries = this.#entrySize(range);
    const isList = (entries?.kind ?? this.#type(range).kind) === "list";
    const at = (part: string, size: Estimate | undefined): Local => ({ path: [...this.#path(range), part], size, entries: undefined });
    if (iterVar2 !== undefined) return [[iterVar, at(isList ? "@indices" : "@keys", entries?.key)], [iterVar2, at(isList ? "@items" : "@values", entries?.value)]];
    return [[iterVar, isList ? at("@items", entries?.value) : at("@keys", entries?.key)]];
  }

  #bound(expr: Expr): Local { return { path: this.#path(expr), size: this.#size(expr), entries: this.#entrySize(expr) }; }
  #local(name: string): Local | undefined { return this.#locals.findLast(([each]) => each === name)?.[1]; }
  #type(expr: Expr): Type { return this.#types.get(expr.id) ?? DYN; }

  #path(expr: Expr): readonly string[] {
    const local = expr.kind === "ident" ? this.#local(expr.name) : undefined;
    return local?.path ?? this.#paths.get(expr.id) ?? [];
  }

  #node(expr: Expr): CostNode {
    const path = this.#path(expr);
    return { path: path.length === 0 || path[0] === ACCUMULATOR ? undefined : path, type: this.#type(expr), expr, size: this.#size(expr) };
  }

  #sizeOfNode(node: CostNode): Estimate { return node.size ?? this.#sizeOf(node) ?? UNKNOWN_SIZE; }
  #known(expr: Expr): Estimate { return this.#size(expr) ?? UNKNOWN_SIZE; }

  #size(expr: Expr): Estimate | undefined {
    const computed = this.#sizes.get(expr.id) ?? writtenSize(expr);
    if (computed) return computed;
    const given = this.#sizeOf({ path: this.#path(expr), type: this.#type(expr), expr });
    if (given) this.#sizes.set(expr.id, given);
    return given ?? (isScalar(this.#type(expr)) ? ONE : undefined) ?? (expr.kind === "ident" ? this.#local(expr.name)?.size : undefined);
  }

  #entrySize(expr: Expr): EntrySize | undefined { return this.#entries.get(expr.id) ?? (expr.kind === "ident" ? this.#local(expr.name)?.entries : undefined); }

  #setEntries(expr: Expr, entries: EntrySize | undefined): void { if (entries) this.#entries.set(expr.id, entries); }

  #copySizes(to: Expr, from: Expr): void {
    const size = this.#size(from);
    if (size) this.#sizes.set(to.id, size);
    this.#setEntries(to, this.#entrySize(from));
  }
}

function unionOf(a: EntrySize | undefined, b: EntrySize | undefined): EntrySize | undefined {
  return a && b && { kind: a.kind, key: either(a.key, b.key), value: either(a.value, b.value) };
}

/** Gives a value a name: a comprehension over nothing. */
function isBinding({ range, condition, accuVar }: Comprehension): boolean {
  return range.kind === "list" && range.elements.length === 0 && condition.kind === "literal" && condition.value === false && accuVar !== "__result__";
}

function writtenSize(expr: Expr): Estimate | undefined {
  switch (expr.kind) {
    case "literal": return fixed(BigInt(literalSize(expr)));
    case "list": return fixed(BigInt(expr.elements.length));
    case "map": return fixed(BigInt(expr.entries.length));
    default: return undefined;
  }
}

function literalSize({ value }: Literal): number {
  if (typeof value === "string") return countPoints(value);
  return value instanceof Uint8Array ? value.length : 1;
}

function isScalar(type: Type): boolean { return SCALARS.includes(type.kind) || (isOptional(type) && isScalar(type.parameters[0]!)); }
