/**
 * Label selectors, both forms: the string of a query (`app in (web,db),tier!=cache,!canary`) and the LabelSelector of an object.
 *
 *   parseLabelSelector(query).matches(labels)           throws an Error with upstream's text; the verb makes a 400 of it
 *   labelSelector(spec.selector).matches(labels)        undefined selects nothing, {} selects everything
 *   validateLabelSelector(spec.selector, "spec.selector")   field errors
 *
 * Source: kubernetes v1.36 apimachinery/pkg/labels/selector.go, pkg/apis/meta/v1/helpers.go, pkg/apis/meta/v1/validation/validation.go
 */
import type { LabelSelector as ApiLabelSelector, LabelSelectorRequirement } from "../gen/meta.v1.ts";
import { compareText } from "./compare-text.ts";
import { child, type FieldError, forbidden, index, invalid, required } from "./field-error.ts";
import { goQuote } from "./go-quote.ts";
import { LabelParser } from "./label-parser.ts";
import { checkRequirement, formatRequirement, type LabelOperator, type LabelRequirement, type Labels, meets } from "./label-requirement.ts";
import { type LabelRules, labelRules, rulesHold } from "./label-rules.ts";
import { labelValue, qualifiedName } from "./names.ts";

/** Of more requirements and values than these it is found out once what they want of each label. */
const ASKED_MAX = 32;

export interface ExactLabel { readonly key: string; readonly value: string }

/** All requirements must hold. Immutable. */
export class LabelSelector {
  /** Sorted by key. */
  readonly requirements: readonly LabelRequirement[];
  readonly #nothing: boolean;
  readonly #isLarge: boolean;
  #rules: LabelRules | undefined;

  constructor(requirements: readonly LabelRequirement[], { nothing = false }: { readonly nothing?: boolean } = {}) {
    this.requirements = requirements.length < 2 ? requirements : requirements.toSorted((a, b) => compareText(a.key, b.key));
    this.#nothing = nothing;
    this.#isLarge = requirements.length > ASKED_MAX || requirements.reduce((sum, { values }) => sum + values.length, 0) > ASKED_MAX;
  }

  /** Selects everything. */
  get empty(): boolean { return this.requirements.length === 0 && !this.#nothing; }

  /** Selects nothing, whatever the labels. */
  get nothing(): boolean { return this.#nothing; }

  matches(labels: Labels | undefined): boolean {
    if (this.#nothing) return false;
    const given = labels ?? {};
    if (this.#isLarge) return rulesHold(this.#rules ??= labelRules(this.requirements), given);
    for (const requirement of this.requirements) if (!meets(requirement, given)) return false;
    return true;
  }

  /** A label that must have one value, if there is such a requirement: lets an index answer. */
  exactLabel(): ExactLabel | undefined {
    for (const exact of this.exactLabels()) return exact;
    return undefined;
  }

  /** All labels of that kind. */
  *exactLabels(): Iterable<ExactLabel> {
    for (const { key, operator, values } of this.requirements) if (values.length === 1 && (operator === "=" || operator === "==" || operator === "in")) yield { key, value: values[0]! };
  }

  toString(): string { return this.requirements.map(formatRequirement).join(","); }
}

/** Matches nothing. */
export function nothing(): LabelSelector { return new LabelSelector([], { nothing: true }); }

/** Equality on each; none selects everything. Services and ReplicationControllers select this way. */
export function selectorFromSet(labels: Labels | undefined): LabelSelector {
  return new LabelSelector(Object.entries(labels ?? {}).map(([key, value]) => ({ key, operator: "=", values: [value] })));
}

/** Throws an Error in upstream's words: `unable to parse requirement: …`, `found '…', expected: …`. */
export function parseLabelSelector(text: string): LabelSelector {
  return new LabelSelector(new LabelParser(text).parse());
}

const OPERATORS: Readonly<Record<string, LabelOperator>> = { In: "in", NotIn: "notin", Exists: "exists", DoesNotExist: "!" };

/** Of selectors that stay as they are, as those of stored objects: each change of a pod is held against all there are in its namespace. */
const known = new WeakMap<Readonly<ApiLabelSelector>, LabelSelector>();

/** The matcher of an object's selector. Throws for one that validation would have refused. */
export function labelSelector(selector: Readonly<ApiLabelSelector> | undefined): LabelSelector {
  if (selector === undefined || selector === null) return nothing();
  const before = known.get(selector);
  if (before) return before;
  const made = readSelector(selector);
  if (Object.isFrozen(selector)) known.set(selector, made);
  return made;
}

function readSelector(selector: Readonly<ApiLabelSelector>): LabelSelector {
  const requirements: LabelRequirement[] = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => ({ key, operator: "=", values: [value] }));
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    const wanted = OPERATORS[operator];
    if (!wanted) throw new Error(`${goQuote(operator)} is not a valid label selector operator`);
    requirements.push({ key, operator: wanted, values: values ?? [] });
  }
  for (const requirement of requirements) checkRequirement(requirement);
  return new LabelSelector(requirements);
}

/** `allowInvalidValues`: the stored object already holds some, from before they were checked. */
export function validateLabelSelector(
  selector: Readonly<ApiLabelSelector> | undefined, path: string, { allowInvalidValues = false }: { readonly allowInvalidValues?: boolean } = {},
): FieldError[] {
  if (selector === undefined || selector === null) return [];
  const expressions = selector.matchExpressions ?? [];
  return [
    ...validateLabels(selector.matchLabels, child(path, "matchLabels")),
    ...expressions.flatMap((expression, at) => validateRequirement(expression, index(child(path, "matchExpressions"), at), { allowInvalidValues })),
  ];
}

/** `allowOtherOperators`: a newer client may know some. */
export function validateRequirement({ key, operator, values = [] }: Readonly<LabelSelectorRequirement>, path: string, { allowInvalidValues = false, allowOtherOperators = false }): FieldError[] {
  const errors: FieldError[] = [];
  if (operator === "In" || operator === "NotIn") {
    if (values.length === 0) errors.push(required(child(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    if (values.length > 0) errors.push(forbidden(child(path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  } else if (!allowOtherOperators) errors.push(invalid(child(path, "operator"), operator, "not a valid selector operator"));
  errors.push(...validateLabelName(key, child(path, "key")));
  if (!allowInvalidValues) errors.push(...values.flatMap((value, at) => labelValue(value).map((problem) => invalid(index(child(path, "values"), at), value, problem))));
  return errors;
}

export function validateLabelName(name: string, path: string): FieldError[] {
  return qualifiedName(name).map((problem) => invalid(path, name, problem));
}

/** metadata.labels and matchLabels: keys and values. */
export function validateLabels(labels: Labels | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [name, value] of Object.entries(labels ?? {})) {
    for (const problem of qualifiedName(name)) errors.push(invalid(path, name, problem));
    for (const problem of labelValue(value)) errors.push(invalid(path, value, problem));
  }
  return errors;
}

/** `<none>` for nothing, as describe and printed columns write a selector. */
export function formatLabelSelector(selector: Readonly<ApiLabelSelector> | undefined): string {
  const text = labelSelector(selector).toString();
  return text === "" ? "<none>" : text;
}
