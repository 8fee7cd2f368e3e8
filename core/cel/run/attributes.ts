/**
 * Names, fields and elements: `self.items[0].name`, `self.?status`, `has(self.x)`, and what is selected from `c ? a : b`.
 *
 * Each selection costs 1. A selection with a question mark that finds nothing costs nothing, and what follows it is not asked for.
 *
 * Source: cel-go interpreter/{attributes,interpretable}.go
 */
import { EvalError, isError, isNumber, List, Mapping, noSuchOverload, Opaque, Optional, typeOf, Uint, type Value } from "../value/value.ts";
import { goTypeOf } from "../value/go-type.ts";
import { fromJson } from "../value/json.ts";
import { show } from "../value/show.ts";
import { costOfLength } from "../cost/actual-cost.ts";
import type { Scope } from "./scope.ts";
import { evaluatorOf, type Attribute, type Qualifier, type Step } from "./step.ts";

export function variable(name: string): Attribute {
  return qualified((scope) => {
    const value = scope.resolve(name);
    return value === undefined ? new EvalError(`no such attribute(s): ${name}`) : value;
  }, []);
}

/** What is selected from is computed. */
function relative(step: Step): Attribute { return qualified(evaluatorOf(step), []); }

export function conditional(condition: Step, whenTrue: Attribute, whenFalse: Attribute): Attribute {
  const evaluate = evaluatorOf(condition);
  return {
    free: true,
    resolve(scope) {
      const value = evaluate(scope);
      if (value === true) return whenTrue.resolve(scope);
      return value === false ? whenFalse.resolve(scope) : noSuchOverload(value);
    },
    with: (qualifier) => conditional(condition, whenTrue.with(qualifier), whenFalse.with(qualifier)),
  };
}

/** As a branch of a conditional: of a name only what is selected is charged. */
export function attributeOf(step: Step): Attribute { return step.kind === "attribute" ? step.attribute : relative(step); }

/** The key of an index: that of a name is charged without its root. */
export function keyOf(step: Step): (scope: Scope) => Value {
  return step.kind === "attribute" ? (scope) => step.attribute.resolve(scope) : evaluatorOf(step);
}

function qualified(root: (scope: Scope) => Value, qualifiers: readonly Qualifier[]): Attribute {
  return {
    free: qualifiers.at(-1)?.test === true,
    resolve: (scope) => selected(scope, root(scope), qualifiers),
    with: (qualifier) => qualified(root, [...qualifiers, qualifier]),
  };
}

function selected(scope: Scope, root: Value, qualifiers: readonly Qualifier[]): Value {
  let value = root;
  let optional = false;
  if (value instanceof Optional) {
    if (value.value === undefined) return qualifiers.at(-1)?.test === true ? false : value;
    value = plain(value.value);
    if (qualifiers.length === 0) return new Optional(value);
    optional = true;
  }
  for (const { key, optional: asked, test } of qualifiers) {
    if (isError(value)) return value;
    optional ||= asked;
    const found: Value = key(scope);
    scope.meter.add(costOfLength(found));
    const selection = isError(found) ? found : !isKey(found) ? new EvalError(noKey(found)) : select(value, found, { test: test || optional });
    if (optional && isError(selection)) return selection;
    if (optional && (selection as Selection).absent) return test ? false : Optional.none;
    scope.meter.add(1);
    if (isError(selection)) return selection;
    if (test) return !selection.absent;
    value = selection.value;
  }
  return optional && !isError(value) ? new Optional(value) : value;
}

/** What stands in an optional that has a name is seen as JSON alone: what its schema said of it is forgotten. */
function plain(value: Value): Value { return typeof value === "object" && value !== null && "json" in value ? fromJson(value.json) : value; }

/** Whether anything can be found under it: numbers, texts and bools are keys of maps and lists. */
export function isKey(value: Value): boolean { return isNumber(value) || typeof value === "string" || typeof value === "boolean"; }
export function noKey(value: Value): string { return `invalid qualifier type: ${goTypeOf(value)}`; }

type Selection = { readonly absent: false; readonly value: Value } | { readonly absent: true; readonly value: null };
const ABSENT: Selection = { absent: true, value: null };

/** `test`: what is not there is no error. */
function select(from: Value, key: Value, { test }: { readonly test: boolean }): Selection | EvalError {
  if (from instanceof Mapping) return present(from.find(key), test, () => `no such key: ${show(key)}`);
  if (from instanceof List) {
    const index = indexOf(key);
    if (isError(index)) return index;
    return present(index >= 0n && index < BigInt(from.size) ? from.at(Number(index)) : undefined, test, () => `index out of bounds: ${show(key)}`);
  }
  if (from instanceof Opaque && typeof key === "string") {
    if (test && !from.has(key)) return ABSENT;
    return present(from.field(key), test, () => `no such key: ${key}`);
  }
  return present(undefined, test, () => `no such key: ${show(key)}`);
}

function present(value: Value | undefined, test: boolean, otherwise: () => string): Selection | EvalError {
  if (value !== undefined) return isError(value) ? value : { absent: false, value };
  return test ? ABSENT : new EvalError(otherwise());
}

/** A whole number, whatever its type. */
function indexOf(key: Value): bigint | EvalError {
  if (typeof key === "bigint") return key;
  if (typeof key !== "number" && !(key instanceof Uint)) return new EvalError(`unsupported index type '${typeOf(key).text}' in list`);
  const whole = key instanceof Uint ? key.value : Number.isInteger(key) ? BigInt(key) : undefined;
  return whole === undefined || whole !== BigInt.asIntN(64, whole) ? new EvalError(`unsupported index value ${show(key)} in list`) : whole;
}
