/**
 * Rules of one schema (x-kubernetes-validations), ready to be asked about values of it.
 *
 *   compileRules(schema, { root: true })[0].program          undefined, and error says why
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go
 */
import type { ValidationRule } from "../../../api/gen/apiextensions.v1.ts";
import { optionalOf, type Kind, type Type } from "../../../cel/check/type.ts";
import { compile, estimate, type Compiled } from "../../../cel/compile.ts";
import type { Environment } from "../../../cel/check/declarations.ts";
import { REQUEST_BYTES_MAX } from "../../../cel/kubernetes.ts";
import { declaredType, sizesOf, structsOf, type JsonSchema } from "../../../cel/schema/declared-type.ts";
import { fieldPath, FieldPathError } from "./field-path.ts";

export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Undefined if there is an error, or nothing is asked. */
  readonly program: Program | undefined;
  readonly error: string | undefined;
  readonly message: Program | undefined;
  readonly messageError: string | undefined;
  /** It compares with what was before: without that there is nothing to ask. */
  readonly usesOldSelf: boolean;
  /** Where failures are told of, below the value; "" for the value itself. */
  readonly fieldPath: string;
}

export interface Program {
  readonly compiled: Compiled;
  /** Of one evaluation. */
  readonly maxCost: bigint;
}

/** Nothing that has this type can be written down. */
export class UndeclaredError extends Error {
  override readonly name = "UndeclaredError";
  constructor() { super("failed to convert to declType for CEL validation rules"); }
}

/** How many values of the schema one request can hold. */
export function maxCardinality(minSize: number): bigint { return BigInt(Math.floor(REQUEST_BYTES_MAX / (minSize + 1))); }

/** Throws UndeclaredError. */
export function compileRules(schema: JsonSchema, { root, environment }: { readonly root: boolean; readonly environment: Environment }): { readonly rules: readonly CompiledRule[]; readonly minSize: number } {
  const declared = declaredType(schema, { root });
  if (!declared) throw new UndeclaredError();
  const structs = structsOf(declared);
  const scoped = (oldSelf: Type): Environment => environment.with({ variables: { self: declared.type, oldSelf }, structs });
  const [plain, optional] = [scoped(declared.type), scoped(optionalOf(declared.type))];
  const sizeOf = sizesOf(declared);

  function compileOne(rule: ValidationRule): CompiledRule {
    const nothing = { rule, program: undefined, error: undefined, message: undefined, messageError: undefined, usesOldSelf: false, fieldPath: "" };
    if (rule.rule.trim() === "") return nothing;
    const scope = rule.optionalOldSelf ? optional : plain;
    const made = program(rule.rule, scope, { kind: "bool", not: "cel expression must evaluate to a bool", what: { compile: "compilation failed", plan: "program instantiation failed" } });
    if (typeof made === "string") return { ...nothing, error: made };
    const checked = { ...nothing, program: made, usesOldSelf: usesOldSelf(made.compiled), fieldPath: pathOf(rule, schema) };
    if (!rule.messageExpression) return checked;
    const message = program(rule.messageExpression, scope,
      { kind: "string", not: "messageExpression must evaluate to a string", what: { compile: "messageExpression compilation failed", plan: "messageExpression instantiation failed" } });
    return typeof message === "string" ? { ...checked, messageError: message } : { ...checked, message };
  }

  function program(expression: string, scope: Environment, { kind, not, what }: { readonly kind: Kind; readonly not: string; readonly what: { readonly compile: string; readonly plan: string } }): Program | string {
    const compiled = compile(expression, scope);
    if (compiled.type && compiled.type.kind !== kind && (compiled.problem === undefined || compiled.planning)) return not;
    if (compiled.problem !== undefined) return `${compiled.planning ? what.plan : what.compile}: ${compiled.problem}`;
    return { compiled, maxCost: estimate(compiled, sizeOf).max };
  }

  return { rules: (schema["x-kubernetes-validations"] ?? []).map(compileOne), minSize: declared.minSize };
}

function usesOldSelf({ checked }: Compiled): boolean {
  for (const reference of checked.references.values()) if (reference.kind === "variable" && reference.name === "oldSelf") return true;
  return false;
}

function pathOf({ fieldPath: written = "" }: ValidationRule, schema: JsonSchema): string {
  if (written === "") return "";
  try {
    return fieldPath(written, schema).path;
  } catch (error) {
    if (error instanceof FieldPathError) return "";
    throw error;
  }
}
