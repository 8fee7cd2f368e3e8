/**
 * Which kinds a policy is about, and what its expressions get wrong of them.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/validating/typechecking.go
 */
import type { ExpressionWarning, ValidatingAdmissionPolicy } from "../../api/gen/admissionregistration.v1.ts";
import { compareText } from "../../api/meta/compare-text.ts";
import { child, index } from "../../api/meta/field-error.ts";
import { formatGvk, type GroupVersionKind, gvkOf } from "../../api/meta/gvk.ts";
import { typeChecker } from "../../cel/admission/type-check.ts";
import { type DeclaredType, declaredType, type JsonSchema } from "../../cel/schema/declared-type.ts";
import { each, type Pausing } from "../../lifecycle/breather.ts";

export interface Kinds {
  /** Kinds under that name. */
  of(group: string, version: string, resource: string): readonly GroupVersionKind[];
  /** Undefined: nothing is known of it. */
  schemaOf(kind: GroupVersionKind): JsonSchema | undefined;
}

const KINDS_MAX = 10;
/** Resources that are looked up for one policy: three lists of thousands of names each make billions of them. Those beyond are not checked. */
const NAMES_MAX = 1_000;

type Spec = Readonly<ValidatingAdmissionPolicy["spec"]>;

/** Thousands of expressions are compiled for each of the kinds: others may have their turn between. */
export function* expressionWarnings({ validations = [], variables = [], paramKind, matchConstraints }: Spec, kinds: Kinds): Pausing<ExpressionWarning[]> {
  const params = paramKind && (declaredOf(gvkOf({ apiVersion: paramKind.apiVersion ?? "", kind: paramKind.kind ?? "" }), kinds) ?? null);
  const checkers: Checker[] = [];
  for (const kind of kindsOf(matchConstraints, kinds)) {
    const object = declaredOf(kind, kinds);
    if (object) checkers.push({ kind, problemOf: yield* typeChecker({ object, params, variables }) });
  }
  const warnings: ExpressionWarning[] = [];
  for (const [i, { expression, messageExpression }] of validations.entries()) {
    const at = index("spec.validations", i);
    warnings.push(...(yield* warningsOf(child(at, "expression"), expression, checkers)), ...(yield* warningsOf(child(at, "messageExpression"), messageExpression, checkers)));
  }
  return warnings;
}

interface Checker { readonly kind: GroupVersionKind; readonly problemOf: (expression: string) => string | undefined }

function* warningsOf(fieldRef: string, expression: string | undefined, checkers: readonly Checker[]): Pausing<ExpressionWarning[]> {
  if (!expression) return [];
  const problems = yield* each(checkers, ({ kind, problemOf }) => {
    const problem = problemOf(expression);
    return problem === undefined ? [] : [`${formatGvk(kind)}: ${problem}\n`];
  });
  const found = problems.flat();
  return found.length > 0 ? [{ fieldRef, warning: found.join("\n") }] : [];
}

function declaredOf(kind: GroupVersionKind, { schemaOf }: Kinds): DeclaredType | undefined {
  const schema = schemaOf(kind);
  return schema && declaredType(schema, { root: true, name: kind.kind });
}

/** What rules name without wildcards, in order. */
function kindsOf(constraints: Spec["matchConstraints"], { of }: Kinds): readonly GroupVersionKind[] {
  const found = new Map<string, GroupVersionKind>();
  let asked = 0;
  for (const { apiGroups = [], apiVersions = [], resources = [] } of constraints?.resourceRules ?? []) {
    if ([...apiGroups, ...apiVersions].some((name) => name.includes("*"))) continue;
    let count = 0;
    const groups = apiGroups.toSorted(), versions = apiVersions.toSorted(), plain = resources.filter((name) => !/[*/]/.test(name)).sort();
    if (plain.length === 0) continue;
    for (const group of groups) for (const version of versions) for (const resource of plain) {
      if (asked++ === NAMES_MAX) return sorted(found.values());
      for (const kind of of(group, version, resource)) {
        found.set(formatGvk(kind), kind);
        if (++count === KINDS_MAX) return sorted(found.values());
      }
    }
  }
  return sorted(found.values());
}

function sorted(kinds: Iterable<GroupVersionKind>): readonly GroupVersionKind[] {
  return [...kinds].sort((a, b) => compareText(a.group, b.group) || compareText(a.version, b.version) || compareText(a.kind, b.kind));
}
