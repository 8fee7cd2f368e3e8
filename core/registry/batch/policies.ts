/** When a Job has failed, and when it has succeeded. Source: kubernetes v1.36 pkg/apis/batch/validation/validation.go */
import { child, duplicate, type FieldError, index, invalid, notSupported, OMIT_VALUE, required, tooLong, tooMany } from "../../api/meta/field-error.ts";
import type {
  JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule, SuccessPolicyRule,
} from "../../api/gen/batch.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { repeats } from "../../api/meta/linear.ts";
import { isQualifiedName, nonNegative } from "../core/checks/values.ts";
import { countIndexes } from "./indexes.ts";

const RULES_MAX = 20;
const EXIT_CODES_MAX = 255;
const CONDITIONS_MAX = 20;
const INDEXES_BYTES_MAX = 64 * 1024;
const ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS = ["In", "NotIn"];
const STATUSES = ["False", "True", "Unknown"];

export function* validateFailurePolicy(path: string, spec: Readonly<JobSpec>): Iterable<FieldError> {
  const rules = spec.podFailurePolicy?.rules ?? [];
  const at = child(path, "rules");
  if (rules.length > RULES_MAX) yield tooMany(at, rules.length, RULES_MAX);
  const { containers, initContainers } = spec.template.spec ?? {};
  const names = new Set([...(containers ?? []), ...(initContainers ?? [])].map(({ name }) => name));
  for (const [i, rule] of rules.entries()) yield* validateFailureRule(index(at, i), rule, { names, isPerIndex: spec.backoffLimitPerIndex !== undefined });
}

function* validateFailureRule(path: string, rule: Readonly<PodFailurePolicyRule>, { names, isPerIndex }: { readonly names: ReadonlySet<string>; readonly isPerIndex: boolean }): Iterable<FieldError> {
  const at = child(path, "action");
  if (!rule.action) yield required(at, validValues(ACTIONS));
  else if (rule.action === "FailIndex") {
    if (!isPerIndex) yield invalid(at, rule.action, "requires the backoffLimitPerIndex to be set");
  } else if (!ACTIONS.includes(rule.action)) yield notSupported(at, rule.action, ACTIONS);
  const { onExitCodes, onPodConditions = [] } = rule;
  if (onExitCodes) yield* validateExitCodes(child(path, "onExitCodes"), onExitCodes, names);
  if (onPodConditions.length > 0) yield* validateConditions(child(path, "onPodConditions"), onPodConditions);
  if (onExitCodes && onPodConditions.length > 0) yield invalid(path, OMIT_VALUE, "specifying both OnExitCodes and OnPodConditions is not supported");
  if (!onExitCodes && onPodConditions.length === 0) yield invalid(path, OMIT_VALUE, "specifying one of OnExitCodes and OnPodConditions is required");
}

function* validateConditions(path: string, patterns: readonly PodFailurePolicyOnPodConditionsPattern[]): Iterable<FieldError> {
  if (patterns.length > CONDITIONS_MAX) yield tooMany(path, patterns.length, CONDITIONS_MAX);
  for (const [i, { type, status }] of patterns.entries()) {
    yield* isQualifiedName(child(index(path, i), "type"), type);
    const at = child(index(path, i), "status");
    if (!status) yield required(at, validValues(STATUSES));
    else if (!STATUSES.includes(status)) yield notSupported(at, status, STATUSES);
  }
}

function* validateExitCodes(path: string, { operator, containerName, values: given }: PodFailurePolicyOnExitCodesRequirement, names: ReadonlySet<string>): Iterable<FieldError> {
  const values = given ?? [];
  if (!operator) yield required(child(path, "operator"), validValues(OPERATORS));
  else if (!OPERATORS.includes(operator)) yield notSupported(child(path, "operator"), operator, OPERATORS);
  if (containerName !== undefined && !names.has(containerName))
    yield invalid(child(path, "containerName"), containerName, "must be one of the container or initContainer names in the pod template");
  const at = child(path, "values");
  if (values.length === 0) yield invalid(at, given ?? null, "at least one value is required");
  else if (values.length > EXIT_CODES_MAX) yield tooMany(at, values.length, EXIT_CODES_MAX);
  const isRepeated = repeats<number>();
  for (const [i, value] of values.entries()) {
    if (operator === "In" && value === 0) yield invalid(index(at, i), value, "must not be 0 for the In operator");
    if (isRepeated(value)) yield duplicate(index(at, i), value);
  }
  if (values.some((value, i) => i > 0 && values[i - 1]! > value)) yield invalid(at, values, "must be ordered");
}

/** Of an indexed Job. */
export function* validateSuccessPolicy(path: string, { successPolicy, completions = 0 }: Readonly<JobSpec>): Iterable<FieldError> {
  const rules = successPolicy?.rules ?? [];
  const at = child(path, "rules");
  if (rules.length === 0) yield required(at, "at least one rules must be specified when the successPolicy is specified");
  if (rules.length > RULES_MAX) yield tooMany(at, rules.length, RULES_MAX);
  for (const [i, rule] of rules.entries()) yield* validateSuccessRule(index(at, i), rule, completions);
}

function* validateSuccessRule(path: string, { succeededIndexes: indexes, succeededCount: count }: Readonly<SuccessPolicyRule>, completions: number): Iterable<FieldError> {
  if (count === undefined && indexes === undefined) yield required(path, "at least one of succeededCount or succeededIndexes must be specified");
  let total = 0;
  if (indexes !== undefined) {
    const at = child(path, "succeededIndexes");
    if (byteLength(indexes) > INDEXES_BYTES_MAX) yield tooLong(at, INDEXES_BYTES_MAX);
    try {
      total = countIndexes(indexes, completions);
    } catch (error) {
      yield invalid(at, indexes, `error parsing succeededIndexes: ${(error as Error).message}`);
    }
  }
  if (count === undefined) return;
  const at = child(path, "succeededCount");
  yield* nonNegative(at, count);
  if (count > completions) yield invalid(at, count, `must be less than or equal to ${completions} (the number of specified completions)`);
  if (indexes !== undefined && count > total)
    yield invalid(at, count, `must be less than or equal to ${total} (the number of indexes in the specified succeededIndexes field)`);
}

function validValues(values: readonly string[]): string { return `valid values: [${values.map(goQuote).join(" ")}]`; }
