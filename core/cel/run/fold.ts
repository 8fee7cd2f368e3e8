/**
 * Comprehensions: what macros such as all() and map() become.
 *
 * Source: cel-go interpreter/interpretable.go (evalFold)
 */
import { goTypeOf } from "../value/go-type.ts";
import { MutableList, MutableMap } from "../value/mutable.ts";
import { EvalError, isError, List, Mapping, type Value } from "../value/value.ts";
import type { Meter, Scope } from "./scope.ts";

export interface Fold {
  readonly range: (scope: Scope) => Value;
  readonly iterVar: string;
  readonly iterVar2: string | undefined;
  readonly accuVar: string;
  readonly init: (scope: Scope) => Value;
  readonly condition: (scope: Scope) => Value;
  readonly step: (scope: Scope) => Value;
  readonly result: (scope: Scope) => Value;
}

export function fold(plan: Fold, outer: Scope): Value {
  const range = plan.range(outer);
  if (isError(range)) return range;
  if (!(range instanceof List) && !(range instanceof Mapping)) return new EvalError(plan.iterVar2 === undefined ? `got '${goTypeOf(range)}', expected iterable type` : `unsupported comprehension range type: ${goTypeOf(range)}`);
  const scope = new FoldScope(plan, outer);
  for (const [first, second] of entriesOf(range, plan.iterVar2 !== undefined)) {
    scope.bind(first, second);
    const condition = plan.condition(scope);
    if (typeof condition === "boolean" && !condition) break;
    scope.accumulated = plan.step(scope);
  }
  return scope.result();
}

function* entriesOf(range: List | Mapping, two: boolean): Iterable<readonly [first: Value, second: Value]> {
  if (range instanceof Mapping) {
    for (const key of range.keys()) yield [key, two ? range.find(key)! : null];
    return;
  }
  let index = 0n;
  for (const element of range) yield two ? [index++, element] : [element, null];
}

class FoldScope implements Scope {
  readonly meter: Meter;
  readonly #plan: Fold;
  readonly #outer: Scope;
  #first: Value = null;
  #second: Value = null;
  #accumulated: Value | undefined;
  #bound = false;

  constructor(plan: Fold, outer: Scope) { this.#plan = plan; this.#outer = outer; this.meter = outer.meter; }

  bind(first: Value, second: Value): void { this.#first = first; this.#second = second; this.#bound = true; }
  set accumulated(value: Value) { this.#accumulated = value; }

  resolve(name: string): Value | undefined {
    // Not made before someone asks for it: it may never be.
    if (name === this.#plan.accuVar) return this.#accumulated === undefined ? (this.#accumulated = growing(this.#plan.init(this.#outer))) : this.#accumulated;
    if (this.#bound && name === this.#plan.iterVar) return this.#first;
    if (this.#bound && name === this.#plan.iterVar2) return this.#second;
    return this.#outer.resolve(name);
  }

  result(): Value {
    this.#bound = false;
    const value = this.#plan.result(this);
    return value instanceof MutableList || value instanceof MutableMap ? value.frozen() : value;
  }
}

/** What is added to once for each element is not copied each time. */
function growing(init: Value): Value {
  if (init instanceof List && init.size === 0) return new MutableList();
  return init instanceof Mapping && init.size === 0 ? new MutableMap() : init;
}
