/**
 * What a validating policy says about one request with one parameter. Nothing here waits.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/validating/validator.go
 */
import { Activation, type Bindings, BudgetSpent } from "../../cel/admission/activation.ts";
import { RUNTIME_COST_BUDGET } from "../../cel/kubernetes.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import type { Value } from "../../cel/value/value.ts";
import { bindingsOf, conditionBindingsOf, type Speaking } from "../expressions/bindings.ts";
import { askConditions, type ConditionsOutcome } from "../expressions/conditions.ts";
import type { CompiledValidatingPolicy, CompiledValidation } from "./compiled-policy.ts";

/** Of one validation. */
export type Decision = { readonly denied: false; /** Why it could not be told, which does not matter. */ readonly ignored?: string } | { readonly denied: true; readonly message: string; readonly reason: string };

export type Annotation = { readonly key: string; readonly value: string } | { readonly key: string; readonly error: string };

export interface Verdict {
  /** In the order of the validations; one alone if the policy could not be asked. */
  readonly decisions: readonly Decision[];
  readonly annotations: readonly Annotation[];
  /** Undefined: it has none. */
  readonly conditions: ConditionsOutcome | undefined;
}

/** Source: kubernetes v1.36 apiserver/pkg/apis/cel/config.go MaxEvaluatedMessageExpressionSizeBytes */
const MESSAGE_BYTES_MAX = 5 * 1024;
const ADMITTED: Decision = { denied: false };

export function verdictOf(policy: CompiledValidatingPolicy, speaking: Speaking): Verdict {
  const ignores = policy.failurePolicy === "Ignore";
  const failed = (message: string): Decision => (ignores ? { denied: false, ignored: message } : { denied: true, message, reason: "" });
  const conditions = policy.conditions.length > 0 ? askConditions({ ...policy, expressions: policy.conditions }, conditionBindingsOf(speaking)) : undefined;
  if (conditions?.error !== undefined) return { decisions: [failed(conditions.error)], annotations: [], conditions };
  if (conditions && !conditions.hold) return { decisions: [], annotations: [], conditions };
  try {
    const bindings = bindingsOf(speaking);
    const others = withoutAuthorizer(bindings);
    const { outcomes, budget } = evaluateAll(policy.validations.map(({ expression }) => expression), bindings, policy, RUNTIME_COST_BUDGET);
    const messages = messagesOf(policy, others, budget);
    const decisions = policy.validations.map((validation, i): Decision => {
      const { value, error } = outcomes[i]!;
      if (error !== undefined) return failed(error);
      if ("spent" in messages) return failed(`failed messageExpression: ${messages.spent}`);
      return value === true ? ADMITTED : { denied: true, message: messageOf(validation, messages.values[i]), reason: validation.validation.reason ?? "Invalid" };
    });
    return { decisions, annotations: annotationsOf(policy, others, ignores), conditions };
  } catch (error) {
    if (error instanceof BudgetSpent) return { decisions: [failed(error.message)], annotations: [], conditions };
    throw error;
  }
}

interface Evaluated { readonly value: Value | undefined; readonly error: string | undefined }

/** Throws BudgetSpent. */
function evaluateAll(expressions: readonly (CompiledValidation["message"])[], bindings: Bindings, { variables }: CompiledValidatingPolicy, budget: number): { readonly outcomes: readonly Evaluated[]; readonly budget: number } {
  const activation = new Activation(bindings, variables);
  let left = budget;
  const outcomes = expressions.map((expression): Evaluated => {
    if (!expression) return { value: undefined, error: undefined };
    const outcome = activation.evaluate(expression, left);
    left = outcome.budget;
    return outcome;
  });
  return { outcomes, budget: left };
}

/** What messages and annotations are told: they may not ask the authorizer, nor may the variables they speak of. */
function withoutAuthorizer({ authorizer: _, "authorizer.requestResource": __, ...others }: Bindings): Bindings { return others; }

function messagesOf(policy: CompiledValidatingPolicy, bindings: Bindings, budget: number): { readonly values: readonly (Value | undefined)[] } | { readonly spent: string } {
  try {
    return { values: evaluateAll(policy.validations.map(({ message }) => message), bindings, policy, budget).outcomes.map(({ value }) => value) };
  } catch (error) {
    if (error instanceof BudgetSpent) return { spent: error.message };
    throw error;
  }
}

function messageOf({ validation: { message = "", expression = "" } }: CompiledValidation, computed: Value | undefined): string {
  const text = typeof computed === "string" ? computed.trim() : "";
  if (text !== "" && byteLength(text) <= MESSAGE_BYTES_MAX && !text.includes("\n")) return text;
  return message.trim() || `failed expression: ${expression.trim()}`;
}

function annotationsOf(policy: CompiledValidatingPolicy, bindings: Bindings, ignores: boolean): Annotation[] {
  const { outcomes } = evaluateAll(policy.auditAnnotations.map(({ expression }) => expression), bindings, policy, RUNTIME_COST_BUDGET);
  return policy.auditAnnotations.flatMap(({ key }, i): Annotation[] => {
    const { value, error } = outcomes[i]!;
    if (error !== undefined) return ignores ? [] : [{ key, error }];
    const text = typeof value === "string" ? value.trim() : "";
    return text === "" ? [] : [{ key, value: text }];
  });
}
