/**
 * Expressions of admission, evaluated: what they name stands for, and what they may cost.
 *
 *   const activation = new Activation(bindings, scope.variables);
 *   const { value, error, budget } = activation.evaluate(expression, budget);
 *
 * A variable is evaluated when something asks for it, once for each activation; what it costs is charged to who asked.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/cel/{activation,composition}.go
 */
import { evaluate, type Variables } from "../compile.ts";
import { CALL_COST_LIMIT } from "../kubernetes.ts";
import type { Type } from "../check/type.ts";
import { EvalError, isError, Opaque, type Value } from "../value/value.ts";
import type { Expression } from "./expressions.ts";
import { VARIABLES_TYPE } from "./admission-types.ts";

export type Bindings = Variables;

export interface Outcome {
  /** Undefined if there is an error. */
  readonly value: Value | undefined;
  readonly error: string | undefined;
  /** What is left of it. */
  readonly budget: number;
}

/** What all expressions together may cost is spent. */
export class BudgetSpent extends Error {
  override readonly name = "BudgetSpent";
  constructor() { super("validation failed due to running out of cost budget, no further validation rules will be run"); }
}

export class Activation {
  readonly #bindings: Bindings;
  readonly #variables: LazyVariables;

  constructor(bindings: Bindings, variables: ReadonlyMap<string, Expression>) {
    this.#variables = new LazyVariables(variables, () => this.#bindings);
    this.#bindings = { ...bindings, variables: this.#variables };
  }

  /** Throws BudgetSpent. */
  evaluate({ text, program, error }: Expression, budget: number): Outcome {
    if (!program) return { value: undefined, error: `compilation error: ${error ?? ""}`, budget };
    const { value, cost } = evaluate(program, this.#bindings, { costLimit: CALL_COST_LIMIT });
    const left = budget - this.#variables.charged() - cost;
    if (left < 0) throw new BudgetSpent();
    return isError(value) ? { value: undefined, error: `expression '${text}' resulted in error: ${value.message}`, budget: left } : { value, error: undefined, budget: left };
  }
}

class LazyVariables extends Opaque {
  override readonly type: Type = VARIABLES_TYPE;
  override readonly goType = "*lazy.MapValue";
  readonly #expressions: ReadonlyMap<string, Expression>;
  readonly #bindings: () => Bindings;
  readonly #known = new Map<string, Value>();
  #cost = 0;

  constructor(expressions: ReadonlyMap<string, Expression>, bindings: () => Bindings) { super(); this.#expressions = expressions; this.#bindings = bindings; }

  /** What has been spent since it was last asked. */
  charged(): number {
    const cost = this.#cost;
    this.#cost = 0;
    return cost;
  }

  override equals(other: Value): boolean { return other === this; }
  override has(name: string): boolean { return this.#expressions.has(name); }

  override field(name: string): Value | undefined {
    const expression = this.#expressions.get(name);
    if (!expression) return undefined;
    let value = this.#known.get(name);
    if (value === undefined) this.#known.set(name, (value = this.#evaluated(name, expression)));
    return value;
  }

  #evaluated(name: string, { program, error }: Expression): Value {
    if (!program) return new EvalError(`composited variable ${JSON.stringify(name)} fails to compile: ${error ?? ""}`);
    const { value, cost } = evaluate(program, this.#bindings(), { costLimit: CALL_COST_LIMIT });
    this.#cost += cost;
    return isError(value) ? new EvalError(`composited variable ${JSON.stringify(name)} fails to evaluate: ${value.message}`) : value;
  }
}
