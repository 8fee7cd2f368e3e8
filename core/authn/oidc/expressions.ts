/** Expressions over a token's claims, and over the user made of them. Source: kubernetes v1.36 apiserver/pkg/authentication/cel */
import { admissionStructs } from "../../cel/admission/admission-types.ts";
import { compile, evaluate } from "../../cel/compile.ts";
import { DYN, mapOf, STRING, struct, type Type } from "../../cel/check/type.ts";
import { CALL_COST_LIMIT, kubernetesEnvironment } from "../../cel/kubernetes.ts";
import { childrenOf, type Expr, OPERATORS } from "../../cel/syntax/expr.ts";
import { EvalError, List, type Value } from "../../cel/value/value.ts";
import { claimsValue } from "./claims-value.ts";

export interface ClaimExpression {
  readonly text: string;
  /** Why it cannot be used; undefined: it can. */
  readonly problem: string | undefined;
  usesClaim(name: string): boolean;
  /** What it says of this value: text, truth, null or a list of such; what is something else is an object. Throws. */
  evaluate(value: Readonly<Record<string, unknown>>): unknown;
}

/** `claims` is a map of anything. A condition must be one for certain: `claims.a == true`, not `claims.a`. */
export function claimExpression(text: string, how: { readonly condition?: boolean } = {}): ClaimExpression { return expressionOver("claims", mapOf(STRING, DYN), text, how); }

/** `user` has username, uid, groups and extra; a rule is a condition. */
export function userExpression(text: string): ClaimExpression { return expressionOver("user", struct("kubernetes.UserInfo"), text, { condition: true }); }

function expressionOver(variable: string, type: Type, text: string, { condition = false }: { readonly condition?: boolean } = {}): ClaimExpression {
  const compiled = compile(text, kubernetesEnvironment().with({ variables: { [variable]: type }, structs: admissionStructs(undefined) }));
  const problem = compiled.problem !== undefined ? `compilation failed: ${compiled.problem}` : condition && compiled.type.kind !== "bool" ? "must evaluate to bool" : undefined;
  return {
    text, problem,
    usesClaim: (name) => problem === undefined && compiled.problem === undefined && selects(compiled.checked.expr, variable, name),
    evaluate(value) {
      if (compiled.problem !== undefined) throw new Error(compiled.problem);
      const result = evaluate(compiled, { [variable]: claimsValue(value) }, { costLimit: CALL_COST_LIMIT }).value;
      if (result instanceof EvalError) throw new Error(`expression '${text}' resulted in error: ${result.message}`);
      return plain(result);
    },
  };
}

/** Whether `variable.field` or `variable.?field` stands in it. */
function selects(expr: Expr, variable: string, field: string): boolean {
  const isVariable = (one: Expr | undefined): boolean => one?.kind === "ident" && one.name === variable;
  if (expr.kind === "select" && expr.field === field && isVariable(expr.operand)) return true;
  if (expr.kind === "call" && expr.name === OPERATORS.optSelect && isVariable(expr.args[0]) && expr.args[1]?.kind === "literal" && expr.args[1].value === field) return true;
  return childrenOf(expr).some((child) => selects(child, variable, field));
}

/** An optional stays one, unlike in JSON: nobody is called by what may not be there. */
function plain(value: Value): unknown { return value instanceof List ? [...value].map(plain) : value; }
