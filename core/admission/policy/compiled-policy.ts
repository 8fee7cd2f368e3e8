/** The expressions of policies, compiled in the order in which they may speak of one another. */
import type { MutatingAdmissionPolicy, ValidatingAdmissionPolicy, Validation } from "../../api/gen/admissionregistration.v1.ts";
import { AdmissionScope, APPLY_CONFIGURATION, BOOLEAN, type Expression, JSON_PATCHES, TEXT, TEXT_OR_NULL } from "../../cel/admission/expressions.ts";

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

function begun(spec: Spec): { readonly scope: AdmissionScope; readonly common: CompiledPolicy } {
  const { paramKind, variables = [], matchConditions = [], failurePolicy } = spec;
  const scope = new AdmissionScope({ params: paramKind !== undefined, variables: true });
  for (const { name = "", expression = "" } of variables) scope.addVariable(name, expression);
  return { scope, common: { variables: scope.variables, conditions: matchConditions.map(({ expression = "" }) => scope.compile(expression, BOOLEAN)), failurePolicy } };
}

export function compileValidating({ spec }: Readonly<ValidatingAdmissionPolicy>): CompiledValidatingPolicy {
  const { scope, common } = begun(spec);
  return {
    ...common,
    validations: (spec.validations ?? []).map((validation) => ({
      validation, expression: scope.compile(validation.expression ?? "", BOOLEAN),
      message: validation.messageExpression ? scope.compile(validation.messageExpression, TEXT, { authorizer: false }) : undefined,
    })),
    auditAnnotations: (spec.auditAnnotations ?? []).map(({ key = "", valueExpression = "" }) => ({ key, expression: scope.compile(valueExpression, TEXT_OR_NULL) })),
  };
}

export function compileMutating({ spec }: Readonly<MutatingAdmissionPolicy>): CompiledMutatingPolicy {
  const { scope, common } = begun(spec);
  return {
    ...common,
    mutations: (spec.mutations ?? []).map(({ patchType = "", jsonPatch, applyConfiguration }) => ({
      patchType, expression: patchType === "JSONPatch" ? scope.compile(jsonPatch?.expression ?? "", JSON_PATCHES, { patches: true }) : scope.compile(applyConfiguration?.expression ?? "", APPLY_CONFIGURATION, { patches: true }),
    })),
  };
}
