/**
 * Expressions of admission, compiled: match conditions of webhooks, and all parts of admission policies.
 *
 *   const scope = new AdmissionScope({ params: true });
 *   scope.addVariable("limit", "params.data.limit");                        later expressions may say variables.limit
 *   scope.compile("object.spec.replicas < int(variables.limit)", BOOLEAN)   { program } or { error }
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/cel/{compile,composition}.go
 */
import type { Environment, StructTypes } from "../check/declarations.ts";
import { BOOL, DYN, listOf, NULL, sameType, STRING, type Type } from "../check/type.ts";
import { compile, type Compiled } from "../compile.ts";
import { kubernetesEnvironment } from "../kubernetes.ts";
import { AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE } from "../library/authz.ts";
import { jsonPatchLibrary } from "../library/json-patch.ts";
import { JSON_PATCH_TYPE, OBJECT_TYPE, patchStructs } from "./patch-types.ts";
import { admissionStructs, goTypeText, NAMESPACE_TYPE, REQUEST_TYPE, structsIn, VARIABLES_TYPE, variableType } from "./admission-types.ts";

/** What an expression may evaluate to; undefined: anything. */
export type Returns = readonly Type[] | undefined;

export const BOOLEAN: Returns = [BOOL];
export const TEXT: Returns = [STRING];
export const TEXT_OR_NULL: Returns = [STRING, NULL];
export const APPLY_CONFIGURATION: Returns = [OBJECT_TYPE];
export const JSON_PATCHES: Returns = [listOf(JSON_PATCH_TYPE)];

export interface Expression {
  readonly text: string;
  /** Undefined: it cannot be evaluated, see `error`. */
  readonly program: Compiled | undefined;
  readonly error: string | undefined;
  /** It is right, but cannot be made ready. */
  readonly internal: boolean;
}

export interface ScopeOptions {
  readonly params?: boolean;
  readonly variables?: boolean;
}

export interface CompileOptions {
  readonly authorizer?: boolean;
  readonly patches?: boolean;
}

export class AdmissionScope {
  readonly #options: ScopeOptions;
  readonly #types = new Map<string, Type>();
  readonly #variables = new Map<string, Expression>();
  readonly #environments = new Map<string, Environment>();

  constructor(options: ScopeOptions = {}) { this.#options = options; }

  get variables(): ReadonlyMap<string, Expression> { return this.#variables; }

  addVariable(name: string, text: string): Expression {
    const compiled = this.compile(text, undefined);
    this.#types.set(name, variableType(compiled.program?.type));
    this.#variables.set(name, compiled);
    return compiled;
  }

  compile(text: string, returns: Returns, options: CompileOptions = {}): Expression {
    const compiled = compile(text, this.#environment(options));
    const failed = (error: string, internal = false): Expression => ({ text, program: undefined, error, internal });
    if (compiled.problem !== undefined && !compiled.planning) return failed(`compilation failed: ${compiled.problem}`);
    const type = compiled.type!;
    if (returns && !returns.some((one) => sameType(one, type))) return failed(mustEvaluateTo(returns, type));
    if (compiled.problem !== undefined) return failed(`program instantiation failed: ${compiled.problem}`, true);
    return { text, program: compiled, error: undefined, internal: false };
  }

  #environment({ authorizer = true, patches = false }: CompileOptions): Environment {
    const key = `${authorizer} ${patches}`;
    let environment = this.#environments.get(key);
    if (!environment) this.#environments.set(key, (environment = this.#make(authorizer, patches)));
    return environment;
  }

  #make(authorizer: boolean, patches: boolean): Environment {
    const { params, variables } = this.#options;
    const own: StructTypes = admissionStructs(variables ? this.#types : undefined);
    return kubernetesEnvironment().with({
      variables: {
        object: DYN, oldObject: DYN, request: REQUEST_TYPE, namespaceObject: NAMESPACE_TYPE,
        ...(params && { params: DYN }), ...(variables && { variables: VARIABLES_TYPE }), ...(authorizer && { authorizer: AUTHORIZER_TYPE, "authorizer.requestResource": RESOURCE_CHECK_TYPE }),
      },
      structs: patches ? structsIn(own, patchStructs) : own,
      ...(patches && { libraries: [jsonPatchLibrary] }),
    });
  }
}

function mustEvaluateTo(returns: readonly Type[], got: Type): string {
  const wanted = returns.map(goTypeText);
  return `must evaluate to ${wanted.length === 1 ? wanted[0]! : `one of [${wanted.join(" ")}]`} but got ${goTypeText(got)}`;
}
