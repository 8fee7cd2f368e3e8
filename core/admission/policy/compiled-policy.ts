/** The expressions of policies, compiled in the order in which they may speak of one another. */
import type { MutatingAdmissionPolicy, ValidatingAdmissionPolicy, Validation } from "../../api/gen/admissionregistration.v1.ts";
import { AdmissionScope, APPLY_CONFIGURATION, BOOLEAN, type Expression, JSON_PATCHES, TEXT, TEXT_OR_NULL } from "../../cel/admission/expressions.ts";
import { each, type Pausing } from "../../lifecycle/breather.ts";

export interface CompiledPolicy {
  readonly variables: ReadonlyMap<string, Expression>;
  readonly conditions: readonly Expression[];
  readonly failurePolicy: string | undefined;
}

export interface CompiledValidation {
  readonly validation: Validation;
  readonly expression: Expression;
  /** Of its messageExpression. */
  readonly message: Expression | undefined;
}

export interface CompiledValidatingPolicy extends CompiledPolicy {
  readonly validations: readonly CompiledValidation[];
  readonly auditAnnotations: readonly { readonly key: string; readonly expression: Expression }[];
}

export interface CompiledMutation {
  readonly patchType: string;
  readonly expression: Expression;
}

export interface CompiledMutatingPolicy extends CompiledPolicy { readonly mutations: readonly CompiledMutation[] }

type Spec = ValidatingAdmissionPolicy["spec"] | MutatingAdmissionPolicy["spec"];

function* begun(spec: Spec): Pausing<{ readonly scope: AdmissionScope; readonly common: CompiledPolicy }> {
  const { paramKind, variables = [], matchConditions = [], failurePolicy } = spec;
  const scope = new AdmissionScope({ params: paramKind !== undefined, variables: true });
  yield* each(variables, ({ name = "", expression = "" }) => scope.addVariable(name, expression));
  return { scope, common: { variables: scope.variables, conditions: yield* each(matchConditions, ({ expression = "" }) => scope.compile(expression, BOOLEAN)), failurePolicy } };
}

export function* compileValidating({ spec }: Readonly<ValidatingAdmissionPolicy>): Pausing<CompiledValidatingPolicy> {
  const { scope, common } = yield* begun(spec);
  return {
    ...common,
    validations: yield* each(spec.validations ?? [], (validation) => ({
      validation, expression: scope.compile(validation.expression ?? "", BOOLEAN),
      message: validation.messageExpression ? scope.compile(validation.messageExpression, TEXT, { authorizer: false }) : undefined,
    })),
    auditAnnotations: yield* each(spec.auditAnnotations ?? [], ({ key = "", valueExpression = "" }) => ({ key, expression: scope.compile(valueExpression, TEXT_OR_NULL) })),
  };
}

export function* compileMutating({ spec }: Readonly<MutatingAdmissionPolicy>): Pausing<CompiledMutatingPolicy> {
  const { scope, common } = yield* begun(spec);
  return {
    ...common,
    mutations: yield* each(spec.mutations ?? [], ({ patchType = "", jsonPatch, applyConfiguration }) => ({
      patchType, expression: patchType === "JSONPatch" ? scope.compile(jsonPatch?.expression ?? "", JSON_PATCHES, { patches: true }) : scope.compile(applyConfiguration?.expression ?? "", APPLY_CONFIGURATION, { patches: true }),
    })),
  };
}
