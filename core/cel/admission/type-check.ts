/**
 * What can be said of a policy's expressions when it is known what the objects are like. They are compiled once more, with those types in the place of dyn.
 *
 *   const problemOf = yield* typeChecker({ object: declaredType(schema, { root: true, name: "Deployment" }), params, variables });
 *   problemOf("object.spec.replica > 1")                     cel-go's text, or undefined
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/validating/typechecking.go
 */
import type { Variable } from "../../api/gen/admissionregistration.v1.ts";
import { DYN, type Type } from "../check/type.ts";
import { compile } from "../compile.ts";
import { kubernetesEnvironment } from "../kubernetes.ts";
import { AUTHORIZER_TYPE } from "../library/authz.ts";
import { type DeclaredType, structsOf } from "../schema/declared-type.ts";
import { admissionStructs, NAMESPACE_TYPE, REQUEST_TYPE, structsIn, VARIABLES_TYPE, variableType } from "./admission-types.ts";

export interface Typed {
  readonly object: DeclaredType;
  /** Null: of a kind nothing is known of. Undefined: there are none. */
  readonly params: DeclaredType | null | undefined;
  readonly variables: readonly Variable[];
}

/** Others may have their turn after each variable. */
export function* typeChecker({ object, params, variables }: Typed): Generator<undefined, (expression: string) => string | undefined> {
  const types = new Map<string, Type>();
  const environment = kubernetesEnvironment().with({
    variables: {
      object: object.type, oldObject: object.type, namespaceObject: NAMESPACE_TYPE, request: REQUEST_TYPE, ...(params !== undefined && { params: params?.type ?? DYN }), authorizer: AUTHORIZER_TYPE, variables: VARIABLES_TYPE,
    },
    structs: structsIn(admissionStructs(types), structsOf(object, ...(params ? [params] : []))),
  });
  for (const { name = "", expression = "" } of variables) {
    const compiled = compile(expression, environment);
    types.set(name, variableType(compiled.problem === undefined ? compiled.type : undefined));
    yield;
  }
  return (expression) => {
    const compiled = compile(expression, environment);
    return compiled.problem !== undefined && !compiled.planning ? compiled.problem : undefined;
  };
}
