/**
 * matchConditions: expressions that must all hold before a webhook or a policy is asked.
 *
 * One that is false settles it, whatever has become of the others; an error counts by the failurePolicy.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go
 */
import { Activation, type Bindings, BudgetSpent } from "../../cel/admission/activation.ts";
import type { Expression } from "../../cel/admission/expressions.ts";
import { MATCH_CONDITIONS_COST_BUDGET } from "../../cel/kubernetes.ts";
import { joinErrors } from "../refuse.ts";

/** Whether they hold is not known, and that is held against the request. */
export class ConditionError extends Error { override readonly name = "ConditionError"; }

export interface Conditions {
  readonly expressions: readonly Expression[];
  /** Those they may speak of. */
  readonly variables: ReadonlyMap<string, Expression>;
  readonly failurePolicy: string | undefined;
}

/** Throws ConditionError. */
export function conditionsHold({ expressions, variables, failurePolicy }: Conditions, bindings: Bindings): boolean {
  const activation = new Activation(bindings, variables);
  let budget = MATCH_CONDITIONS_COST_BUDGET;
  const errors: string[] = [];
  let isFalse = false;
  try {
    for (const expression of expressions) {
      const outcome = activation.evaluate(expression, budget);
      budget = outcome.budget;
      if (outcome.error !== undefined) errors.push(outcome.error);
      isFalse ||= outcome.value === false;
    }
  } catch (error) {
    if (!(error instanceof BudgetSpent)) throw error;
    if (failurePolicy === "Ignore") return false;
    throw new ConditionError(error.message, { cause: error });
  }
  if (isFalse) return false;
  if (errors.length === 0) return true;
  if (failurePolicy === "Ignore") return false;
  throw new ConditionError(joinErrors(errors));
}
