/**
 * CEL: expressions that compute, always end, and say beforehand what they may cost.
 *
 *   const environment = kubernetesEnvironment().with({ variables: { self: struct("Widget") }, structs });
 *   const compiled = compile("self.size() > 2", environment);
 *   if (compiled.problem) …                                   cel-go's text
 *   compiled.type                                             bool
 *   estimate(compiled, sizeOf)                                { min, max }
 *   evaluate(compiled, { self: value }, { costLimit })        { value, cost }; a value may be an EvalError
 *
 * Compile once, evaluate often. Nothing here waits and nothing has a side effect.
 */
import { check, type Checked } from "./check/checker.ts";
import type { Environment } from "./check/declarations.ts";
import { literalIssues } from "./check/literals.ts";
import { ERROR, type Type } from "./check/type.ts";
import type { SizeOf } from "./cost/call-estimate.ts";
import { estimateCost } from "./cost/estimator.ts";
import type { Estimate } from "./cost/size-estimate.ts";
import { plan, PlanError } from "./run/plan.ts";
import { Meter, type Scope } from "./run/scope.ts";
import { parse } from "./syntax/parser.ts";
import { describeIssues, type Issue } from "./syntax/source.ts";
import { CostExceeded, EvalError, type Value } from "./value/value.ts";

export interface Compiled {
  readonly environment: Environment;
  readonly checked: Checked;
  readonly type: Type;
  readonly run: (scope: Scope) => Value;
  readonly problem?: undefined;
}

/** Why there is no program. */
export interface NotCompiled {
  readonly problem: string;
  /** Undefined if it was not even checked. */
  readonly type: Type | undefined;
  /** Whether it is right but cannot be made ready: `int("x")`. */
  readonly planning: boolean;
}

export interface Evaluated {
  readonly value: Value | EvalError;
  readonly cost: number;
  /** Whether it was stopped for what it cost. */
  readonly exceeded: boolean;
}

export type Variables = Readonly<Record<string, Value | undefined>>;

export function compile(expression: string, environment: Environment): Compiled | NotCompiled {
  const parsed = parse(expression, environment.macros);
  if (!parsed.expr || parsed.issues.length > 0) return failed(expression, parsed.issues);
  const checked = check(parsed.expr, parsed.places, environment);
  if (checked.issues.length > 0) return failed(expression, checked.issues);
  const type = checked.types.get(checked.expr.id) ?? ERROR;
  const issues = literalIssues(checked, parsed.places);
  if (issues.length > 0) return failed(expression, issues, type);
  try {
    return { environment, checked, type, run: plan(checked, environment) };
  } catch (error) {
    if (error instanceof PlanError) return { problem: error.message, type, planning: true };
    throw error;
  }
}

function failed(expression: string, issues: readonly Issue[], type?: Type): NotCompiled { return { problem: describeIssues(expression, issues), type, planning: false }; }

export function estimate({ checked, environment }: Compiled, sizeOf: SizeOf): Estimate { return estimateCost(checked, environment, sizeOf); }

export function evaluate({ run }: Compiled, variables: Variables, { costLimit = Number.POSITIVE_INFINITY }: { readonly costLimit?: number } = {}): Evaluated {
  const meter = new Meter(costLimit);
  try {
    return { value: run({ resolve: (name) => variables[name], meter }), cost: meter.spent, exceeded: false };
  } catch (error) {
    if (error instanceof CostExceeded) return { value: new EvalError(error.message), cost: meter.spent, exceeded: true };
    throw error;
  }
}
