/**
 * Makes of a checked expression a function that evaluates it. What does not depend on variables is computed here, once.
 *
 * Throws PlanError if that fails: `int('x')`.
 *
 * Source: cel-go interpreter/{planner,decorators,interpretable}.go
 */
import type { Checked, Reference } from "../check/checker.ts";
import { Type } from "../check/type.ts";
import type { Environment, FunctionDeclaration, Implementation } from "../check/declarations.ts";
import { actualCost, costAhead, costOfLength } from "../cost/actual-cost.ts";
import { LIST_COST, MAP_COST, STRUCT_COST } from "../cost/factors.ts";
import { RegexError } from "../regex.ts";
import { OPERATORS, type Call, type Expr, type Literal } from "../syntax/expr.ts";
import { EvalError, equal, isError, List, listFrom, mapFrom, noSuchOverload, Optional, typeOf, Uint, type Value } from "../value/value.ts";
import { show } from "../value/show.ts";
import { attributeOf, conditional, isKey, keyOf, noKey, variable } from "./attributes.ts";
import { dispatch } from "./dispatch.ts";
import { fold } from "./fold.ts";
import type { Scope } from "./scope.ts";
import { attributed, computed, constant, evaluatorOf, type Step } from "./step.ts";

export class PlanError extends Error { override readonly name = "PlanError"; }

const CONVERSIONS = new Set(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"]);

export function plan(checked: Checked, environment: Environment): (scope: Scope) => Value { return evaluatorOf(new Planner(checked, environment).plan(checked.expr)); }

class Planner {
  readonly #references: ReadonlyMap<number, Reference>;
  readonly #types: Checked["types"];
  readonly #environment: Environment;

  constructor({ references, types }: Checked, environment: Environment) { this.#references = references; this.#types = types; this.#environment = environment; }

  plan(expr: Expr): Step {
    switch (expr.kind) {
      case "literal": return constant((expr as Literal).value);
      case "ident": return this.#named(expr.id, expr.name);
      case "select": {
        const { field, operand, test } = expr;
        return attributed(attributeOf(this.plan(operand)).with({ optional: false, test, key: () => field }));
      }
      case "call": return this.#call(expr);
      case "list": return this.#list(expr.elements.map((element, i) => ({ step: this.plan(element), optional: expr.optional.has(i) })));
      case "map": return this.#map(expr.entries.map(({ key, value, optional }) => ({ key: this.plan(key), value: this.plan(value), optional })));
      case "struct": return this.#struct(expr.name, expr.fields.map(({ name, value, optional }) => ({ name, step: this.plan(value), optional })));
      case "comprehension": {
        const { iterVar, iterVar2, accuVar } = expr;
        const [range, init, condition, step, result] = [expr.range, expr.init, expr.condition, expr.step, expr.result].map((part) => evaluatorOf(this.plan(part))) as [Eval, Eval, Eval, Eval, Eval];
        return computed((scope) => fold({ range, iterVar, iterVar2, accuVar, init, condition, step, result }, scope));
      }
      case "unspecified": throw new PlanError("unsupported expr");
    }
  }

  #named(id: number, name: string): Step {
    const reference = this.#references.get(id);
    if (reference?.kind === "type") return constant(reference.type);
    if (this.#types.get(id)?.kind === "type") throw new PlanError(`reference to undefined type: ${name}`); // what is a type is named by it
    return attributed(variable(name));
  }

  #call(call: Call): Step {
    const args = [...(call.target ? [call.target] : []), ...call.args].map((arg) => this.plan(arg));
    const [first, second, third] = args as [Step, Step, Step];
    switch (call.name) {
      case OPERATORS.and: return logical(first, second, false);
      case OPERATORS.or: return logical(first, second, true);
      case OPERATORS.conditional: return attributed(conditional(first, attributeOf(second), attributeOf(third)));
      case OPERATORS.equals: return this.#equality(call.name, args, true);
      case OPERATORS.notEquals: return this.#equality(call.name, args, false);
      case OPERATORS.index: case OPERATORS.optIndex: case OPERATORS.optSelect:
        if (second.kind === "constant" && !isKey(second.value)) throw new PlanError(noKey(second.value));
        return attributed(attributeOf(first).with({ optional: call.name !== OPERATORS.index, test: false, key: keyOf(second) }));
      case OPERATORS.notStrictlyFalse: {
        const evaluate = evaluatorOf(first);
        return computed((scope) => {
          const value = evaluate(scope);
          scope.meter.add(1);
          return typeof value === "boolean" ? value : true;
        });
      }
      case "or": case "orValue": return this.#orElse(call, first, second);
      default: return this.#function(call, args);
    }
  }

  #function(call: Call, args: readonly Step[]): Step {
    const reference = this.#references.get(call.id);
    const declared = this.#environment.functions.get(call.name);
    if (!declared) throw new PlanError(`no such overload: ${call.name}`);
    const { apply: dispatched, overload } = dispatch(declared, reference?.kind === "overloads" ? reference.ids : []);
    const known = patternKnown(declared, args[1]);
    const apply = known ?? dispatched;
    const evaluators = args.map(evaluatorOf);
    if (CONVERSIONS.has(call.name) && args[0]?.kind === "constant") return computedOnce(() => apply([(args[0] as { readonly value: Value }).value]));
    if (overload?.id === "in_list" && args[1]?.kind === "constant" && args[1].value instanceof List) {
      const membership = memberOf(args[0]!, args[1].value);
      if (membership) return membership;
    }
    // With more than two arguments, a pattern that was read before, or overloads of which the values choose one, those after one that failed are not looked at, and the call costs nothing.
    const strict = args.length > 2 || known !== undefined || declared.name === "format" || (overload === undefined && declared.apply === undefined && declared.unguarded !== true);
    return computed((scope) => {
      const values: Value[] = [];
      for (const [i, evaluate] of evaluators.entries()) {
        const value = evaluate(scope);
        values.push(value);
        if (strict && isError(value) && i < evaluators.length - 1) return value;
      }
      scope.meter.add(costAhead(call.name, overload, values));
      const result = values.find(isError) ?? apply(values);
      scope.meter.add(actualCost(call.name, overload, { args: values, result }));
      return result;
    });
  }

  #equality(name: string, args: readonly Step[], wanted: boolean): Step {
    const [left, right] = args.map(evaluatorOf) as [Eval, Eval];
    const overload = this.#environment.overloads.get(wanted ? "equals" : "not_equals");
    // What cannot be compared is not equal, but whether it is equal cannot be told.
    const told = (equality: boolean | EvalError): Value => (wanted ? equality : equality !== true);
    return computed((scope) => {
      const values = [left(scope), right(scope)] as const;
      scope.meter.add(costAhead(name, overload, values));
      const result = values.find(isError) ?? told(equal(values[0], values[1]));
      scope.meter.add(actualCost(name, overload, { args: values, result }));
      return result;
    });
  }

  /** The second is not asked for if the first has a value. */
  #orElse(call: Call, first: Step, second: Step): Step {
    const [left, right] = [evaluatorOf(first), evaluatorOf(second)];
    return computed((scope) => {
      const value = left(scope);
      if (!(value instanceof Optional)) return value;
      if (value.value === undefined) return right(scope);
      return call.name === "or" ? value : value.value;
    });
  }

  #list(elements: readonly { readonly step: Step; readonly optional: boolean }[]): Step {
    const build = (values: Iterable<Value>): Value => {
      const kept: Value[] = [];
      let i = 0;
      for (const value of values) {
        if (isError(value)) return value;
        if (!elements[i++]!.optional) kept.push(value);
        else if (!(value instanceof Optional)) return new EvalError(`cannot initialize optional list element from non-optional value ${show(value)}`);
        else if (value.value !== undefined) kept.push(value.value);
      }
      return listFrom(kept);
    };
    return built(elements.map(({ step }) => step), build, LIST_COST);
  }

  #map(entries: readonly { readonly key: Step; readonly value: Step; readonly optional: boolean }[]): Step {
    const build = (values: Iterable<Value>): Value => {
      const kept: [Value, Value][] = [];
      let key: Value | undefined;
      let i = 0;
      for (const value of values) {
        if (isError(value)) return value;
        if (key === undefined) {
          key = value;
          continue;
        }
        const entry = optionalEntry(value, { optional: entries[i++]!.optional, key });
        if (isError(entry)) return entry;
        if (entry.value !== undefined) kept.push([key, entry.value]);
        key = undefined;
      }
      return mapFrom(kept);
    };
    return built(entries.flatMap(({ key, value }) => [key, value]), build, MAP_COST);
  }

  #struct(name: string, fields: readonly { readonly name: string; readonly step: Step; readonly optional: boolean }[]): Step {
    const { structs } = this.#environment;
    const evaluators = fields.map(({ step }) => evaluatorOf(step));
    return computed((scope) => {
      const values = new Map<string, Value>();
      for (const [i, evaluate] of evaluators.entries()) {
        const value = evaluate(scope);
        if (isError(value)) return value;
        const { name: field, optional } = fields[i]!;
        const entry = optionalEntry(value, { optional, key: field });
        if (isError(entry)) return entry;
        if (entry.value !== undefined) values.set(field, entry.value);
      }
      scope.meter.add(STRUCT_COST);
      return structs.make?.(name, values) ?? new EvalError(`unknown type: ${name}`);
    });
  }
}

type Eval = (scope: Scope) => Value;
/** Undefined `value`: there is no such entry. */
function optionalEntry(value: Value, { optional, key }: { readonly optional: boolean; readonly key: Value }): { readonly value: Value | undefined } | EvalError {
  if (!optional) return { value };
  return value instanceof Optional ? value : new EvalError(`cannot initialize optional entry '${show(key)}' from non-optional value ${show(value)}`);
}

/** A list or a map; of constants alone it is one. */
function built(parts: readonly Step[], build: (values: Iterable<Value>) => Value, cost: number): Step {
  if (parts.every(({ kind }) => kind === "constant")) return computedOnce(() => build(parts.map((part) => (part as { readonly value: Value }).value)));
  const evaluators = parts.map(evaluatorOf);
  return computed((scope) => {
    const value = build(evaluators.values().map((evaluate) => {
      const part = evaluate(scope);
      scope.meter.add(costOfLength(part));
      return part;
    }));
    scope.meter.add(cost);
    return value;
  });
}

function computedOnce(compute: () => Value): Step {
  const value = compute();
  if (isError(value)) throw new PlanError(value.message);
  return constant(value);
}

function patternKnown({ withPattern }: FunctionDeclaration, pattern: Step | undefined): Implementation | undefined {
  if (!withPattern || pattern?.kind !== "constant" || typeof pattern.value !== "string") return undefined;
  try {
    const apply = withPattern(pattern.value);
    return ([text, ...more]) => (typeof text === "string" ? apply([text, ...more]) : text instanceof Type ? apply([text.name, ...more]) : noSuchOverload(text));
  } catch (error) {
    if (error instanceof RegexError) throw new PlanError(error.message, { cause: error });
    throw error;
  }
}

/** && and ||: an error counts only if the other side does not decide. */
function logical(first: Step, second: Step, deciding: boolean): Step {
  const terms = [evaluatorOf(first), evaluatorOf(second)];
  return computed((scope) => {
    let error: EvalError | undefined;
    for (const term of terms) {
      const value = term(scope);
      if (value === deciding) return deciding;
      if (typeof value !== "boolean") error ??= noSuchOverload(value);
    }
    return error ?? !deciding;
  });
}

/** `x in [1, 2]` costs nothing but x. Undefined for a list that holds what cannot be looked up. */
function memberOf(step: Step, list: List): Step | undefined {
  if (list.size === 0) return constant(false);
  for (const element of list) if (!["bool", "double", "int", "string", "uint"].includes(typeOf(element).kind)) return undefined;
  const evaluate = evaluatorOf(step);
  const lookup = mapFrom([...list].map((element) => [element, true] as const));
  return computed((scope) => {
    const value = evaluate(scope);
    if (isError(value)) return value;
    scope.meter.add(costOfLength(value));
    return lookup.find(value) !== undefined || ((typeof value === "bigint" || value instanceof Uint) && lookup.find(Number(value instanceof Uint ? value.value : value)) !== undefined);
  });
}
