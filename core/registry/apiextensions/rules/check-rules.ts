/**
 * Whether the rules of a definition's schema compile, and what asking them may cost: each by itself, and all of them for one object as large as can be.
 *
 *   const context = rootContext(schema, { isUnchanged: false });
 *   ruleErrors(path, schema, context)                  of the schema itself; context.child(…) for those below it
 *   totalErrors(path, context)                         when all have been looked at
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go
 */
import type { JSONSchemaProps, ValidationRule } from "../../../api/gen/apiextensions.v1.ts";
import { child, type FieldError, forbidden, index, internal, invalid } from "../../../api/meta/field-error.ts";
import { LARGEST } from "../../../cel/cost/size-estimate.ts";
import { kubernetesEnvironment } from "../../../cel/kubernetes.ts";
import type { Environment } from "../../../cel/check/declarations.ts";
import { compileRules, type CompiledRule, maxCardinality, UndeclaredError } from "./compiled-rule.ts";

type Schema = Readonly<JSONSchemaProps>;

const RULE_COST_MAX = 10_000_000n;
const TOTAL_COST_MAX = 100_000_000n;
/** As many of the dearest rules are named. */
const DEAREST = 4;

interface Total { readonly environment: Environment; readonly isUnchanged: boolean; cost: bigint; dearest: { readonly path: string; readonly cost: bigint }[] }

export interface RuleContext {
  readonly schema: Schema;
  readonly isRoot: boolean;
  /** How many values of it one object can have; undefined: not bounded. */
  readonly cardinality: bigint | undefined;
  /** What keeps values of it from being told apart over time. */
  readonly uncorrelated: string | undefined;
  readonly total: Total;
}

/** `isUnchanged`: it has been stored like this, and its rules may cost what they cost. */
export function rootContext(schema: Schema, { isUnchanged }: { readonly isUnchanged: boolean }): RuleContext {
  return { schema, isRoot: true, cardinality: 1n, uncorrelated: undefined, total: { environment: kubernetesEnvironment(), isUnchanged, cost: 0n, dearest: [] } };
}

/** `path`: of the parent, if values below it cannot be told apart over time. */
export function childContext(parent: RuleContext, schema: Schema, uncorrelated?: string): RuleContext {
  const most = maxElements(parent.schema);
  return {
    schema, isRoot: false, total: parent.total, uncorrelated: parent.uncorrelated ?? uncorrelated,
    cardinality: parent.cardinality === undefined || most === undefined ? undefined : times(parent.cardinality, most),
  };
}

function maxElements({ type, additionalProperties, maxProperties, maxItems }: Schema): bigint | undefined {
  const bounded = (max: number | undefined): bigint | undefined => (max === undefined ? undefined : BigInt(max < 0 ? 0 : max));
  if (type === "array") return bounded(maxItems);
  return type === "object" && additionalProperties !== undefined ? bounded(maxProperties) : 1n;
}

function times(a: bigint, b: bigint): bigint { return a * b > LARGEST ? LARGEST : a * b; }

export function* ruleErrors(path: string, { schema, isRoot, cardinality, uncorrelated, total }: RuleContext): Iterable<FieldError> {
  const rules = schema["x-kubernetes-validations"] ?? [];
  if (rules.length === 0) return;
  const all = child(path, "x-kubernetes-validations");
  try {
    const compiled = compileRules(schema, { root: isRoot || schema["x-kubernetes-embedded-resource"] === true, environment: total.environment });
    for (const [i, rule] of compiled.rules.entries()) yield* oneRule(index(all, i), rule, { often: cardinality ?? maxCardinality(compiled.minSize), uncorrelated, total });
  } catch (error) {
    if (!(error instanceof UndeclaredError)) throw error;
    yield internal(all, "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations");
  }
}

function* oneRule(path: string, compiled: CompiledRule, { often, uncorrelated, total }: { readonly often: bigint; readonly uncorrelated: string | undefined; readonly total: Total }): Iterable<FieldError> {
  const { rule, program, error, message, messageError, usesOldSelf } = compiled;
  const cost = program ? times(program.maxCost, often) : 0n;
  if (!total.isUnchanged && cost > RULE_COST_MAX) yield forbidden(child(path, "rule"), tooDear("estimated rule cost", cost, RULE_COST_MAX));
  observe(total, child(path, "rule"), cost);
  if (error !== undefined) yield invalid(child(path, "rule"), inside(rule), error);
  if (messageError !== undefined) yield invalid(child(path, "messageExpression"), inside(rule), messageError);
  else if (message) {
    if (!total.isUnchanged && message.maxCost > RULE_COST_MAX) yield forbidden(child(path, "messageExpression"), tooDear("estimated messageExpression cost", message.maxCost, RULE_COST_MAX));
    observe(total, child(path, "messageExpression"), message.maxCost);
  }
  if (usesOldSelf) {
    if (uncorrelated !== undefined) yield invalid(child(path, "rule"), rule.rule, `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`);
  } else if (rule.optionalOldSelf !== undefined) yield invalid(child(path, "optionalOldSelf"), rule.optionalOldSelf, "may not be set if oldSelf is not used in rule");
}

/** A rule as upstream shows it: under the names it has inside. */
function inside({ rule, message = "", messageExpression = "", reason, fieldPath = "", optionalOldSelf }: ValidationRule): object {
  return { Rule: rule, Message: message, MessageExpression: messageExpression, Reason: reason ?? null, FieldPath: fieldPath, OptionalOldSelf: optionalOldSelf ?? null };
}

function observe(total: Total, path: string, cost: bigint): void {
  total.cost = total.cost + cost > LARGEST ? LARGEST : total.cost + cost;
  if (cost < TOTAL_COST_MAX / 100n) return;
  total.dearest = [...total.dearest, { path, cost }].sort((a, b) => Number(b.cost - a.cost)).slice(0, DEAREST);
}

export function* totalErrors(path: string, { total }: RuleContext): Iterable<FieldError> {
  if (total.cost <= TOTAL_COST_MAX) return;
  for (const rule of total.dearest) yield forbidden(rule.path, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema");
  yield forbidden(path, tooDear("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", total.cost, TOTAL_COST_MAX));
}

function tooDear(what: string, cost: bigint, limit: bigint): string {
  const factor = Number(cost) / Number(limit);
  const shown = factor > 100 ? "more than 100x" : factor < 1.5 ? `${factor.toFixed(6)}x` : `${factor.toFixed(1)}x`;
  return `${what} exceeds budget by factor of ${shown} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`;
}
