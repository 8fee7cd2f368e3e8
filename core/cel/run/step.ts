/** A part of an expression that is ready to be evaluated. */
import type { Value } from "../value/value.ts";
import type { Scope } from "./scope.ts";

export type Step = Constant | Attributed | Computed;

/** Costs nothing. */
export interface Constant {
  readonly kind: "constant";
  readonly value: Value;
}

/** A name and what is selected from it. */
export interface Attributed {
  readonly kind: "attribute";
  readonly attribute: Attribute;
}

export interface Computed {
  readonly kind: "computed";
  readonly evaluate: (scope: Scope) => Value;
}

/** What can be selected from further. Resolving it charges what is selected, not the root. */
export interface Attribute {
  /** Whether its root costs nothing at all. */
  readonly free: boolean;
  resolve(scope: Scope): Value;
  with(qualifier: Qualifier): Attribute;
}

export interface Qualifier {
  readonly optional: boolean;
  /** has(): asks whether it is there. */
  readonly test: boolean;
  readonly key: (scope: Scope) => Value;
}

export function constant(value: Value): Constant { return { kind: "constant", value }; }
export function computed(evaluate: (scope: Scope) => Value): Computed { return { kind: "computed", evaluate }; }
export function attributed(attribute: Attribute): Attributed { return { kind: "attribute", attribute }; }

/** As a function, with its cost. */
export function evaluatorOf(step: Step): (scope: Scope) => Value {
  if (step.kind === "computed") return step.evaluate;
  if (step.kind === "constant") return () => step.value;
  const { attribute } = step;
  return (scope) => {
    const value = attribute.resolve(scope);
    if (!attribute.free) scope.meter.add(1);
    return value;
  };
}
