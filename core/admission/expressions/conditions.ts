/**
 * matchConditions: expressions that must all hold before a webhook or a policy is asked.
 *
 * One that is false settles it, whatever has become of the others; an error counts by the failurePolicy.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go
 */
import { aggregate } from "../../api/meta/aggregate.ts";
import { Activation, type Bindings, BudgetSpent } from "../../cel/admission/activation.ts";
import type { Expression } from "../../cel/admission/expressions.ts";
import { MATCH_CONDITIONS_COST_BUDGET } from "../../cel/kubernetes.ts";

export interface Conditions {
  readonly expressions: readonly Expression[];
  /** Those they may speak of. */
  readonly variables: ReadonlyMap<string, Expression>;
  readonly failurePolicy: string | undefined;
}

export interface ConditionsOutcome {
  readonly hold: boolean;
  /** Whether they hold is not known, and that is held against the request. */
  readonly error?: string;
  /** Conditions that could not be told, up to the first that is false. */
  readonly failures: number;
}

export function askConditions({ expressions, variables, failurePolicy }: Conditions, bindings: Bindings): ConditionsOutcome {
  const activation = new Activation(bindings, variables);
  let budget = MATCH_CONDITIONS_COST_BUDGET;
  const errors: string[] = [];
  let failures: number | undefined; // known with the first that is false
  const unknown = (error: string): ConditionsOutcome => ({ hold: false, failures: errors.length, ...(failurePolicy === "Ignore" ? {} : { error }) });
  try {
    for (const expression of expressions) {
      const outcome = activation.evaluate(expression, budget);
      budget = outcome.budget;
      if (outcome.error !== undefined) errors.push(outcome.error);
      if (outcome.value === false) failures ??= errors.length;
    }
  } catch (error) {
    if (!(error instanceof BudgetSpent)) throw error;
    return { ...unknown(error.message), failures: 0 };
  }
  if (failures !== undefined) return { hold: false, failures };
  return errors.length === 0 ? { hold: true, failures: 0 } : unknown(aggregate(errors));
}
