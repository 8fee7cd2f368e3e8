/**
 * The types of what admission speaks of: the request, the namespace of its object, and a policy's variables.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/cel/{compile,composition}.go
 */
import type { StructTypes } from "../check/declarations.ts";
import { BOOL, DYN, INT, listOf, mapOf, STRING, struct, TIMESTAMP, type Type } from "../check/type.ts";

export type Fields = Readonly<Record<string, Type>>;

export const REQUEST_TYPE = struct("kubernetes.AdmissionRequest");
export const NAMESPACE_TYPE = struct("kubernetes.Namespace");
export const VARIABLES_TYPE = struct("kubernetes.variables");

const [KIND, RESOURCE, USER] = [struct("kubernetes.GroupVersionKind"), struct("kubernetes.GroupVersionResource"), struct("kubernetes.UserInfo")];
const [METADATA, SPEC, STATUS, CONDITION] = [struct("kubernetes.NamespaceMetadata"), struct("kubernetes.NamespaceSpec"), struct("kubernetes.NamespaceStatus"), struct("kubernetes.NamespaceCondition")];
const STRINGS = listOf(STRING);
const STRING_MAP = mapOf(STRING, STRING);

const REQUEST_STRUCTS: Readonly<Record<string, Fields>> = {
  [REQUEST_TYPE.name]: {
    kind: KIND, resource: RESOURCE, subResource: STRING, requestKind: KIND, requestResource: RESOURCE, requestSubResource: STRING, name: STRING, namespace: STRING, operation: STRING, userInfo: USER, dryRun: BOOL, options: DYN,
  },
  [KIND.name]: { group: STRING, version: STRING, kind: STRING },
  [RESOURCE.name]: { group: STRING, version: STRING, resource: STRING },
  [USER.name]: { username: STRING, uid: STRING, groups: STRINGS, extra: mapOf(STRING, STRINGS) },
  [NAMESPACE_TYPE.name]: { metadata: METADATA, spec: SPEC, status: STATUS },
  [SPEC.name]: { finalizers: STRINGS },
  [STATUS.name]: { conditions: listOf(CONDITION), phase: STRING },
  [CONDITION.name]: { status: STRING, type: STRING, lastTransitionTime: TIMESTAMP, message: STRING, reason: STRING },
  [METADATA.name]: {
    name: STRING, generateName: STRING, namespace: STRING, labels: STRING_MAP, annotations: STRING_MAP, UID: STRING, creationTimestamp: TIMESTAMP, deletionGracePeriodSeconds: INT, deletionTimestamp: TIMESTAMP,
    generation: INT, resourceVersion: STRING, finalizers: STRINGS,
  },
};

/** Of admission. `variables`: may grow while they are compiled one after the other. Undefined: there are none. */
export function admissionStructs(variables: ReadonlyMap<string, Type> | undefined): StructTypes {
  return {
    has: (name) => Object.hasOwn(REQUEST_STRUCTS, name) || (variables !== undefined && name === VARIABLES_TYPE.name),
    field(name, field) {
      if (variables && name === VARIABLES_TYPE.name) return variables.get(field);
      const fields = Object.hasOwn(REQUEST_STRUCTS, name) ? REQUEST_STRUCTS[name] : undefined;
      return fields && Object.hasOwn(fields, field) ? fields[field] : undefined;
    },
  };
}

/** All of several. */
export function structsIn(...all: readonly StructTypes[]): StructTypes {
  const owner = (name: string): StructTypes | undefined => all.find((structs) => structs.has(name));
  return { has: (name) => owner(name) !== undefined, field: (name, field) => owner(name)?.field(name, field), make: (name, fields) => owner(name)!.make!(name, fields) };
}

const AS_THEY_ARE: ReadonlySet<string> = new Set(["any", "bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint"]);

/** What a variable of a policy counts as: only simple types, lists and maps keep theirs. */
export function variableType(type: Type | undefined): Type {
  if (!type) return DYN;
  if (AS_THEY_ARE.has(type.kind)) return type;
  if (type.kind === "list") return listOf(variableType(type.parameters[0]));
  if (type.kind === "map") return mapOf(variableType(type.parameters[0]), variableType(type.parameters[1]));
  return DYN;
}

/** As Go prints a type: by its name at run time. */
export function goTypeText({ name, parameters }: Type): string { return parameters.length === 0 ? name : `${name}(${parameters.map(goTypeText).join(", ")})`; }
