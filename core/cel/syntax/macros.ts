/**
 * Macros: calls that stand for another expression, which is put in their place as soon as they are read.
 *
 * Source: cel-go parser/macro.go, cel/library.go (optMap, optFlatMap), ext/comprehensions.go (two variables)
 */
import { OPERATORS, type Expr } from "./expr.ts";

/** Makes nodes that stand where the macro is called. */
export interface MacroBuilder {
  /** A copy with nodes of its own. */
  copy(expr: Expr): Expr;
  literal(value: boolean | bigint): Expr;
  ident(name: string): Expr;
  list(...elements: readonly Expr[]): Expr;
  emptyMap(): Expr;
  call(name: string, ...args: readonly Expr[]): Expr;
  method(name: string, target: Expr, ...args: readonly Expr[]): Expr;
  presence(operand: Expr, field: string): Expr;
  comprehension(parts: { readonly range: Expr; readonly iterVar: string; readonly iterVar2?: string; readonly accuVar: string; readonly init: Expr; readonly condition: Expr; readonly step: Expr; readonly result: Expr }): Expr;
}

export interface Macro {
  readonly name: string;
  readonly args: number;
  /** Whether it is called on something. */
  readonly method: boolean;
  /** Undefined: a call like any other. Throws MacroError. */
  readonly expand: (make: MacroBuilder, target: Expr | undefined, args: readonly Expr[]) => Expr | undefined;
}

export class MacroError extends Error {
  override readonly name = "MacroError";
  /** The argument that is wrong. */
  readonly expr: Expr;
  constructor(expr: Expr, message: string) { super(message); this.expr = expr; }
}

/** No one can write it. */
export const ACCUMULATOR = "@result";
const OLD_ACCUMULATOR = "__result__";
export const MAP_INSERT = "cel.@mapInsert";

interface Loop {
  readonly make: MacroBuilder;
  readonly range: Expr;
  readonly iterVar: string;
  readonly iterVar2?: string;
}

type Steps = { readonly init: Expr; readonly condition: Expr; readonly step: Expr; readonly result: Expr };

export const STANDARD_MACROS: readonly Macro[] = [
  { name: "has", args: 1, method: false, expand: has },
  overOne("all", all), overOne("exists", exists), overOne("exists_one", existsOne),
  { name: "map", args: 2, method: true, expand: (make, target, [name, step]) => mapped(oneVariable(make, target!, name!, NO_IDENTIFIER), undefined, step!) },
  { name: "map", args: 3, method: true, expand: (make, target, [name, filter, step]) => mapped(oneVariable(make, target!, name!, NO_IDENTIFIER), filter!, step!) },
  { name: "filter", args: 2, method: true, expand: (make, target, [name, filter]) => mapped(oneVariable(make, target!, name!, NO_IDENTIFIER), filter!, name!) },
];

export const OPTIONAL_MACROS: readonly Macro[] = [
  { name: "optMap", args: 2, method: true, expand: (make, target, args) => optional(make, target!, args, { name: "optMap", wrap: (mapped) => make.call("optional.of", mapped) }) },
  { name: "optFlatMap", args: 2, method: true, expand: (make, target, args) => optional(make, target!, args, { name: "optFlatMap", wrap: (mapped) => mapped }) },
];

export const TWO_VARIABLE_MACROS: readonly Macro[] = [
  overTwo("all", all), overTwo("exists", exists), overTwo("existsOne", existsOne), overTwo("exists_one", existsOne),
  ...[3, 4].flatMap((args): Macro[] => [transform("transformList", args, mapped), transform("transformMap", args, inserted(true)), transform("transformMapEntry", args, inserted(false))]),
];

const NO_NAME = "argument must be a simple name";
const NO_IDENTIFIER = "argument is not an identifier";

function has(make: MacroBuilder, _: Expr | undefined, [arg]: readonly Expr[]): Expr {
  if (arg!.kind !== "select") throw new MacroError(arg!, "invalid argument to has() macro");
  return make.presence(arg!.operand, arg!.field);
}

type Quantifier = (make: MacroBuilder, predicate: Expr) => Steps;

function all(make: MacroBuilder, predicate: Expr): Steps {
  return {
    init: make.literal(true), condition: make.call(OPERATORS.notStrictlyFalse, make.ident(ACCUMULATOR)),
    step: make.call(OPERATORS.and, make.ident(ACCUMULATOR), predicate), result: make.ident(ACCUMULATOR),
  };
}

function exists(make: MacroBuilder, predicate: Expr): Steps {
  return {
    init: make.literal(false), condition: make.call(OPERATORS.notStrictlyFalse, make.call(OPERATORS.not, make.ident(ACCUMULATOR))),
    step: make.call(OPERATORS.or, make.ident(ACCUMULATOR), predicate), result: make.ident(ACCUMULATOR),
  };
}

function existsOne(make: MacroBuilder, predicate: Expr): Steps {
  return {
    init: make.literal(0n), condition: make.literal(true),
    step: make.call(OPERATORS.conditional, predicate, make.call(OPERATORS.add, make.ident(ACCUMULATOR), make.literal(1n)), make.ident(ACCUMULATOR)),
    result: make.call(OPERATORS.equals, make.ident(ACCUMULATOR), make.literal(1n)),
  };
}

function overOne(name: string, quantifier: Quantifier): Macro {
  return { name, args: 2, method: true, expand: (make, target, [variable, predicate]) => closed(oneVariable(make, target!, variable!, NO_NAME), quantifier(make, predicate!)) };
}

function overTwo(name: string, quantifier: Quantifier): Macro {
  return { name, args: 3, method: true, expand: (make, target, args) => closed(twoVariables(make, target!, args), quantifier(make, args[2]!)) };
}

function transform(name: string, args: number, expand: (loop: Loop, filter: Expr | undefined, step: Expr) => Expr): Macro {
  return { name, args, method: true, expand: (make, target, given) => expand(twoVariables(make, target!, given), args === 4 ? given[2]! : undefined, given.at(-1)!) };
}

/** A list of what `element` becomes, for each element that passes the filter. */
function mapped(loop: Loop, filter: Expr | undefined, element: Expr): Expr {
  const { make } = loop;
  const step = filtered(make, make.call(OPERATORS.add, make.ident(ACCUMULATOR), make.list(element)), filter);
  return closed(loop, { init: make.list(), condition: make.literal(true), step, result: make.ident(ACCUMULATOR) });
}

function inserted(keyed: boolean): (loop: Loop, filter: Expr | undefined, value: Expr) => Expr {
  return (loop, filter, value) => {
    const { make, iterVar } = loop;
    const step = filtered(make, keyed ? make.call(MAP_INSERT, make.ident(ACCUMULATOR), make.ident(iterVar), value) : make.call(MAP_INSERT, make.ident(ACCUMULATOR), value), filter);
    return closed(loop, { init: make.emptyMap(), condition: make.literal(true), step, result: make.ident(ACCUMULATOR) });
  };
}

function filtered(make: MacroBuilder, step: Expr, filter: Expr | undefined): Expr {
  return filter ? make.call(OPERATORS.conditional, filter, step, make.ident(ACCUMULATOR)) : step;
}

function closed({ make, range, iterVar, iterVar2 }: Loop, steps: Steps): Expr {
  return make.comprehension({ range, iterVar, ...(iterVar2 === undefined ? {} : { iterVar2 }), accuVar: ACCUMULATOR, ...steps });
}

function oneVariable(make: MacroBuilder, range: Expr, variable: Expr, otherwise: string): Loop {
  return { make, range, iterVar: free(variable, nameOf(variable, otherwise)) };
}

function nameOf(variable: Expr, otherwise: string): string {
  if (variable.kind !== "ident") throw new MacroError(variable, otherwise);
  return variable.name;
}

function twoVariables(make: MacroBuilder, range: Expr, [first, second]: readonly Expr[]): Loop {
  const [iterVar, iterVar2] = [nameOf(first!, NO_NAME), nameOf(second!, NO_NAME)];
  if (iterVar === iterVar2) throw new MacroError(second!, `duplicate variable name: ${iterVar}`);
  return { make, range, iterVar: free(first!, iterVar), iterVar2: free(second!, iterVar2) };
}

function free(variable: Expr, name: string): string {
  if (name === ACCUMULATOR || name === OLD_ACCUMULATOR) throw new MacroError(variable, "iteration variable overwrites accumulator variable");
  return name;
}

/** A comprehension over nothing, whose accumulator is the variable. */
function optional(make: MacroBuilder, target: Expr, [variable, body]: readonly Expr[], { name, wrap }: { readonly name: string; readonly wrap: (mapped: Expr) => Expr }): Expr {
  const accuVar = nameOf(variable!, `${name}() variable name must be a simple identifier`);
  const mapped = make.comprehension({
    range: make.list(), iterVar: "#unused", accuVar, init: make.method("value", make.copy(target)), condition: make.literal(false), step: make.ident(accuVar), result: body!,
  });
  return make.call(OPERATORS.conditional, make.method("hasValue", target), wrap(mapped), make.call("optional.none"));
}
