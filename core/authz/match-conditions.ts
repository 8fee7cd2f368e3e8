/** Expressions over a SubjectAccessReview's spec: whether a webhook is asked at all. Source: kubernetes v1.36 apiserver/pkg/authorization/cel */
import type { SubjectAccessReviewSpec } from "../api/gen/authorization.v1.ts";
import type { StructTypes } from "../cel/check/declarations.ts";
import { listOf, mapOf, STRING, struct, type Type } from "../cel/check/type.ts";
import { compile, evaluate } from "../cel/compile.ts";
import { CALL_COST_LIMIT, kubernetesEnvironment } from "../cel/kubernetes.ts";
import { fromJson } from "../cel/value/json.ts";
import { EvalError } from "../cel/value/value.ts";

export interface MatchCondition {
  readonly text: string;
  /** Why it cannot be used; undefined: it can. */
  readonly problem: string | undefined;
  /** Throws. */
  matches(spec: Readonly<SubjectAccessReviewSpec>): boolean;
}

const STRINGS = listOf(STRING);
const REQUEST = struct("kubernetes.SubjectAccessReviewSpec");
const [RESOURCE, PATH] = [struct("kubernetes.ResourceAttributes"), struct("kubernetes.NonResourceAttributes")];
const [FIELD_SELECTOR, LABEL_SELECTOR] = [struct("kubernetes.FieldSelectorAttributes"), struct("kubernetes.LabelSelectorAttributes")];
const [FIELD_REQUIREMENT, LABEL_REQUIREMENT] = [struct("kubernetes.FieldSelectorRequirement"), struct("kubernetes.LabelSelectorRequirement")];
const REQUIREMENT = { key: STRING, operator: STRING, values: STRINGS };

const FIELDS: Readonly<Record<string, Readonly<Record<string, Type>>>> = {
  [REQUEST.name]: { resourceAttributes: RESOURCE, nonResourceAttributes: PATH, user: STRING, groups: STRINGS, extra: mapOf(STRING, STRINGS), uid: STRING },
  [RESOURCE.name]: { namespace: STRING, verb: STRING, group: STRING, version: STRING, resource: STRING, subresource: STRING, name: STRING, fieldSelector: FIELD_SELECTOR, labelSelector: LABEL_SELECTOR },
  [PATH.name]: { path: STRING, verb: STRING },
  [FIELD_SELECTOR.name]: { rawSelector: STRING, requirements: listOf(FIELD_REQUIREMENT) }, [LABEL_SELECTOR.name]: { rawSelector: STRING, requirements: listOf(LABEL_REQUIREMENT) },
  [FIELD_REQUIREMENT.name]: REQUIREMENT, [LABEL_REQUIREMENT.name]: REQUIREMENT,
};

const STRUCTS: StructTypes = {
  has: (name) => Object.hasOwn(FIELDS, name),
  field: (name, field) => (Object.hasOwn(FIELDS, name) && Object.hasOwn(FIELDS[name]!, field) ? FIELDS[name]![field] : undefined),
};

export function matchCondition(text: string): MatchCondition {
  const compiled = compile(text, kubernetesEnvironment().with({ variables: { request: REQUEST }, structs: STRUCTS }));
  return {
    text,
    problem: compiled.problem !== undefined ? `compilation failed: ${compiled.problem}` : compiled.type.kind === "bool" ? undefined : `must evaluate to bool but got ${compiled.type.text}`,
    matches(spec) {
      if (compiled.problem !== undefined) throw new Error(compiled.problem);
      const { value } = evaluate(compiled, { request: fromJson(complete(spec)) }, { costLimit: CALL_COST_LIMIT });
      if (value instanceof EvalError) throw new Error(`cel evaluation error: expression '${text}' resulted in error: ${value.message}`);
      return value === true;
    },
  };
}

/** Fields that are not set are empty, not absent. */
function complete({ user = "", uid = "", groups = [], extra = {}, resourceAttributes, nonResourceAttributes }: Readonly<SubjectAccessReviewSpec>): object {
  return {
    user, uid, groups, extra,
    ...(resourceAttributes ? { resourceAttributes: completeResource(resourceAttributes) } : {}),
    ...(nonResourceAttributes ? { nonResourceAttributes: { path: "", verb: "", ...nonResourceAttributes } } : {}),
  };
}

function completeResource({ fieldSelector, labelSelector, ...named }: Readonly<NonNullable<SubjectAccessReviewSpec["resourceAttributes"]>>): object {
  const [fields, labels] = [completeSelector(fieldSelector), completeSelector(labelSelector)];
  return { namespace: "", verb: "", group: "", version: "", resource: "", subresource: "", name: "", ...named, ...(fields && { fieldSelector: fields }), ...(labels && { labelSelector: labels }) };
}

/** One that selects nothing is absent; what was not read stands for itself. */
function completeSelector(selector: { readonly rawSelector?: string | undefined; readonly requirements?: readonly { readonly values?: readonly string[] | undefined }[] | undefined } | undefined): object | undefined {
  if (selector?.rawSelector) return { rawSelector: selector.rawSelector };
  return selector?.requirements?.length ? { requirements: selector.requirements.map((one) => ({ ...one, values: one.values ?? [] })) } : undefined;
}

/** All must match: one that says no ends it. `matches` is undefined if none says no, and one fails. */
export function allMatch(conditions: readonly MatchCondition[], spec: Readonly<SubjectAccessReviewSpec>): { readonly matches: boolean | undefined; readonly errors: readonly string[] } {
  const errors: string[] = [];
  for (const condition of conditions) {
    try {
      if (!condition.matches(spec)) return { matches: false, errors };
    } catch (error) {
      errors.push((error as Error).message);
    }
  }
  return { matches: errors.length > 0 ? undefined : true, errors };
}
