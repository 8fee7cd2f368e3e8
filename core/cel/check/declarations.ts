/**
 * What expressions may name: variables, types with fields, functions with overloads.
 *
 *   defineFunction("size", overload("size_string", [STRING], INT, ([text]) => …), method("string_size", [STRING], INT, …))
 *   new Environment([standardLibrary, stringsLibrary]).with({ variables: { self: STRING } })
 *
 * What an overload does may be said for each, or for all at once: then it is asked whatever the types of the values are.
 *
 * Source: cel-go common/decls/decls.go, checker/env.go
 */
import type { CallEstimator } from "../cost/call-estimate.ts";
import type { Macro } from "../syntax/macros.ts";
import { RegexError } from "../regex.ts";
import { EvalError, type Value } from "../value/value.ts";
import { struct as structNamed, typeOfType, type Type } from "./type.ts";

/** Is not called with errors, unless it says so. */
export type Implementation = (args: readonly Value[]) => Value;

export interface Overload {
  readonly id: string;
  readonly args: readonly Type[];
  readonly result: Type;
  /** Called on its first argument. */
  readonly method: boolean;
  /** Missing: the function's own. */
  readonly apply?: Implementation;
  readonly cost?: OverloadCost;
}

export interface OverloadCost {
  readonly estimate: CallEstimator;
  /** What a call has cost. */
  readonly actual: (args: readonly Value[], result: Value) => number;
  /** It does not depend on the result, and is paid before the call: who cannot pay for all of it has none of it. */
  readonly ahead?: true;
}

export interface FunctionDeclaration {
  readonly name: string;
  readonly overloads: readonly Overload[];
  readonly apply?: Implementation;
  /** Whether overloads are told apart by the number of arguments alone: each looks at the values itself. */
  readonly unguarded?: boolean;
  /** The second argument is a pattern: one that is written out is read once. Throws RegexError. */
  readonly withPattern?: (pattern: string) => Implementation;
}

export interface Library {
  readonly functions?: readonly FunctionDeclaration[];
  readonly macros?: readonly Macro[];
  /** Types that can be named: `type(x) == duration`. */
  readonly types?: readonly Type[];
}

/** Types with fields. */
export interface StructTypes {
  has(name: string): boolean;
  /** Undefined: there is no such field. */
  field(struct: string, field: string): Type | undefined;
  /** A value of the type with these fields; an EvalError for one that cannot be made. */
  make?(name: string, fields: ReadonlyMap<string, Value>): Value;
}

export function overload(id: string, args: readonly Type[], result: Type, apply?: Implementation, cost?: OverloadCost): Overload {
  return { id, args, result, method: false, ...(apply && { apply }), ...(cost && { cost }) };
}

export function method(id: string, args: readonly Type[], result: Type, apply?: Implementation, cost?: OverloadCost): Overload { return { ...overload(id, args, result, apply, cost), method: true }; }

export function defineFunction(name: string, ...overloads: readonly Overload[]): FunctionDeclaration { return { name, overloads }; }
/** Whose overloads look at the values they are given themselves. */
export function defineUnguarded(name: string, ...overloads: readonly Overload[]): FunctionDeclaration { return { name, overloads, unguarded: true }; }
/** One implementation for all overloads. */
export function defineOperator(name: string, apply: Implementation, ...overloads: readonly Overload[]): FunctionDeclaration { return { name, overloads, apply }; }

/** Second arguments are patterns. `otherwise`: what is said of one that is none. */
export function definePattern(name: string, withPattern: (pattern: string) => Implementation, otherwise: (error: RegexError) => string, ...overloads: readonly Overload[]): FunctionDeclaration {
  const apply: Implementation = (args) => {
    try {
      return withPattern(args[1] as string)(args);
    } catch (error) {
      if (error instanceof RegexError) return new EvalError(otherwise(error));
      throw error;
    }
  };
  return { name, overloads: overloads.map((each) => ({ ...each, apply })), withPattern };
}

export class Environment {
  readonly functions: ReadonlyMap<string, FunctionDeclaration>;
  readonly overloads: ReadonlyMap<string, Overload>;
  readonly macros: readonly Macro[];
  readonly variables: ReadonlyMap<string, Type>;
  readonly structs: StructTypes;
  /** By name, what type(x) gives. */
  readonly types: ReadonlyMap<string, Type>;
  readonly #libraries: readonly Library[];

  constructor(libraries: readonly Library[], { variables = new Map(), structs = NO_STRUCTS }: { readonly variables?: ReadonlyMap<string, Type>; readonly structs?: StructTypes } = {}) {
    const functions = new Map<string, FunctionDeclaration>();
    for (const declared of libraries.flatMap((library) => library.functions ?? [])) functions.set(declared.name, merged(functions.get(declared.name), declared));
    this.functions = functions;
    this.overloads = new Map([...functions.values()].flatMap(({ overloads }) => overloads.map((each) => [each.id, each] as const)));
    this.macros = libraries.flatMap((library) => library.macros ?? []);
    this.types = new Map(libraries.flatMap((library) => library.types ?? []).map((type) => [type.name, type]));
    this.variables = variables;
    this.structs = structs;
    this.#libraries = libraries;
  }

  /** With other variables and types, and more libraries. */
  with({ variables, structs, libraries = [] }: { readonly variables?: Readonly<Record<string, Type>>; readonly structs?: StructTypes; readonly libraries?: readonly Library[] }): Environment {
    return new Environment([...this.#libraries, ...libraries], {
      variables: new Map([...this.variables, ...Object.entries(variables ?? {})]),
      structs: structs ?? this.structs,
    });
  }

  /** What a name that is no local variable is. */
  identifier(name: string): { readonly type: Type; readonly names: "variable" | "type" } | undefined {
    const variable = this.variables.get(name);
    if (variable) return { type: variable, names: "variable" };
    const type = this.types.get(name) ?? (this.structs.has(name) ? structNamed(name) : undefined);
    return type && { type: typeOfType(type), names: "type" };
  }
}

const NO_STRUCTS: StructTypes = { has: () => false, field: () => undefined };

function merged(before: FunctionDeclaration | undefined, added: FunctionDeclaration): FunctionDeclaration {
  return before ? { ...before, overloads: [...before.overloads, ...added.overloads], ...(added.apply && { apply: added.apply }), ...(added.withPattern && { withPattern: added.withPattern }) } : added;
}
