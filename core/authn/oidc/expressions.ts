/** Expressions over a token's claims, and over the user made of them. Source: kubernetes v1.36 apiserver/pkg/authentication/cel */
import { admissionStructs } from "../../cel/admission/admission-types.ts";
import { compile, evaluate } from "../../cel/compile.ts";
import { DYN, mapOf, STRING, struct, type Type } from "../../cel/check/type.ts";
import { CALL_COST_LIMIT, kubernetesEnvironment } from "../../cel/kubernetes.ts";
import { fromJson, toJson } from "../../cel/value/json.ts";
import { EvalError } from "../../cel/value/value.ts";

export interface ClaimExpression {
  readonly text: string;
  /** Why it cannot be used; undefined: it can. */
  readonly problem: string | undefined;
  usesClaim(name: string): boolean;
  /** What it says of this value, as JSON. Throws. */
  evaluate(value: Readonly<Record<string, unknown>>): unknown;
}

/** `claims` is a map of anything. */
export function claimExpression(text: string): ClaimExpression { return expressionOver("claims", mapOf(STRING, DYN), text); }

/** `user` has username, uid, groups and extra; a rule is a condition. */
export function userExpression(text: string): ClaimExpression { return expressionOver("user", struct("kubernetes.UserInfo"), text, { condition: true }); }

function expressionOver(variable: string, type: Type, text: string, { condition = false }: { readonly condition?: boolean } = {}): ClaimExpression {
  const compiled = compile(text, kubernetesEnvironment().with({ variables: { [variable]: type }, structs: admissionStructs(undefined) }));
  const problem = compiled.problem !== undefined ? `compilation failed: ${compiled.problem}` : condition && compiled.type.kind !== "bool" && compiled.type.kind !== "dyn" ? "compilation failed: must evaluate to bool" : undefined;
  return {
    text, problem,
    usesClaim: (name) => new RegExp(`\\b${variable}\\s*(\\.\\??\\s*${name}\\b|\\[\\??\\s*["']${name}["'])`).test(text),
    evaluate(value) {
      if (compiled.problem !== undefined) throw new Error(compiled.problem);
      const result = evaluate(compiled, { [variable]: fromJson(value) }, { costLimit: CALL_COST_LIMIT }).value;
      if (result instanceof EvalError) throw new Error(`expression '${text}' resulted in error: ${result.message}`);
      return toJson(result);
    },
  };
}
