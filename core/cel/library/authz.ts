/**
 * What the one who asks may do: authorizer.group("apps").resource("deployments").namespace("default").check("create").allowed()
 *
 *   { authorizer: authorizerValue(user, decide), "authorizer.requestResource": requestResourceValue(user, decide, attributes) }
 *
 * Evaluation does not wait. A `decide` that has to wait throws what it waits for; the caller waits and evaluates again with the answer at hand.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/library/authz.go
 */
import type { Attributes, ResourceAttributes } from "../../api/request/attributes.ts";
import { nameProblems } from "../../api/meta/names.ts";
import { GROUP_SERVICE_ACCOUNTS, type UserInfo } from "../../api/request/user.ts";
import { defineFunction, method, type FunctionDeclaration, type Library } from "../check/declarations.ts";
import { BOOL, STRING, struct, type Type } from "../check/type.ts";
import { EvalError, noSuchOverload, Opaque, type Value } from "../value/value.ts";

export const AUTHORIZER_TYPE = struct("kubernetes.authorization.Authorizer");
const PATH_CHECK = struct("kubernetes.authorization.PathCheck");
const GROUP_CHECK = struct("kubernetes.authorization.GroupCheck");
export const RESOURCE_CHECK_TYPE = struct("kubernetes.authorization.ResourceCheck");
const DECISION = struct("kubernetes.authorization.Decision");

export interface Decided {
  readonly allowed: boolean;
  readonly reason: string;
  readonly error?: string;
}

export type Decide = (attributes: Attributes) => Decided;

abstract class Check extends Opaque {
  readonly user: UserInfo;
  readonly decide: Decide;
  constructor(user: UserInfo, decide: Decide) { super(); this.user = user; this.decide = decide; }
  /** Nothing is equal to it, not even itself. */
  override equals(other: Value): EvalError { return noSuchOverload(other); }
}

class Authorizer extends Check {
  override readonly type: Type = AUTHORIZER_TYPE;
  override readonly goType = "library.authorizerVal";
}

class PathCheck extends Check {
  override readonly type: Type = PATH_CHECK;
  override readonly goType = "library.pathCheckVal";
  readonly path: string;
  constructor({ user, decide }: Check, path: string) { super(user, decide); this.path = path; }
}

class GroupCheck extends Check {
  override readonly type: Type = GROUP_CHECK;
  override readonly goType = "library.groupCheckVal";
  readonly group: string;
  constructor({ user, decide }: Check, group: string) { super(user, decide); this.group = group; }
}

type Asked = Pick<ResourceAttributes, "group" | "resource" | "subresource" | "namespace" | "name"> & { readonly fieldSelector?: string; readonly labelSelector?: string };

class ResourceCheck extends Check {
  override readonly type: Type = RESOURCE_CHECK_TYPE;
  override readonly goType = "library.resourceCheckVal";
  readonly asked: Asked;
  constructor({ user, decide }: { readonly user: UserInfo; readonly decide: Decide }, asked: Asked) { super(user, decide); this.asked = asked; }
}

class Decision extends Opaque {
  override readonly type = DECISION;
  override readonly goType = "library.decisionVal";
  readonly decided: Decided;
  constructor(decided: Decided) { super(); this.decided = decided; }
  /** Nothing is equal to it, not even itself. */
  override equals(other: Value): EvalError { return noSuchOverload(other); }
}

export function authorizerValue(user: UserInfo, decide: Decide): Value { return new Authorizer(user, decide); }
/** A check of what the request itself asks for. */
export function requestResourceValue(user: UserInfo, decide: Decide, { group, resource, subresource, namespace, name }: ResourceAttributes): Value {
  return new ResourceCheck({ user, decide }, { group, resource, subresource, namespace, name });
}

export const authzLibrary: Library = {
  functions: [
    defineFunction("path", method("authorizer_path", [AUTHORIZER_TYPE, STRING], PATH_CHECK, ([from, path]) => ((path as string).trim() === "" ? new EvalError("path must not be empty") : new PathCheck(from as Check, path as string)))),
    defineFunction("group", method("authorizer_group", [AUTHORIZER_TYPE, STRING], GROUP_CHECK, ([from, group]) => new GroupCheck(from as Check, group as string))),
    defineFunction("serviceAccount", method("authorizer_serviceaccount", [AUTHORIZER_TYPE, STRING, STRING], AUTHORIZER_TYPE, ([from, namespace, name]) => serviceAccount(from as Check, namespace as string, name as string))),
    defineFunction("resource", method("groupcheck_resource", [GROUP_CHECK, STRING], RESOURCE_CHECK_TYPE, ([from, resource]) => resourceCheck(from as GroupCheck, resource as string))),
    narrowing("subresource", "resourcecheck_subresource", "subresource"), narrowing("namespace", "resourcecheck_namespace", "namespace"), narrowing("name", "resourcecheck_name", "name"),
    narrowing("fieldSelector", "authorizer_fieldselector", "fieldSelector"), narrowing("labelSelector", "authorizer_labelselector", "labelSelector"),
    defineFunction("check",
      method("pathcheck_check", [PATH_CHECK, STRING], DECISION, ([check, verb]) => checkPath(check as PathCheck, verb as string)),
      method("resourcecheck_check", [RESOURCE_CHECK_TYPE, STRING], DECISION, ([check, verb]) => checkResource(check as ResourceCheck, verb as string))),
    defineFunction("errored", method("decision_errored", [DECISION], BOOL, ([decision]) => (decision as Decision).decided.error !== undefined)),
    defineFunction("error", method("decision_error", [DECISION], STRING, ([decision]) => (decision as Decision).decided.error ?? "")),
    defineFunction("allowed", method("decision_allowed", [DECISION], BOOL, ([decision]) => (decision as Decision).decided.allowed)),
    defineFunction("reason", method("decision_reason", [DECISION], STRING, ([decision]) => (decision as Decision).decided.reason)),
  ],
};

function narrowing(name: string, id: string, part: keyof Asked): FunctionDeclaration {
  return defineFunction(name, method(id, [RESOURCE_CHECK_TYPE, STRING], RESOURCE_CHECK_TYPE, ([check, value]) => new ResourceCheck(check as ResourceCheck, { ...(check as ResourceCheck).asked, [part]: value as string })));
}

function serviceAccount({ decide }: Check, namespace: string, name: string): Value {
  if (nameProblems("dns1123Subdomain", name).length > 0) return new EvalError("Invalid service account name");
  if (nameProblems("dns1123Label", namespace).length > 0) return new EvalError("Invalid service account namespace");
  return new Authorizer({ name: `system:serviceaccount:${namespace}:${name}`, groups: [GROUP_SERVICE_ACCOUNTS, `${GROUP_SERVICE_ACCOUNTS}:${namespace}`] }, decide);
}

function resourceCheck(from: GroupCheck, resource: string): Value {
  if (resource.trim() === "") return new EvalError("resource must not be empty");
  return new ResourceCheck(from, { group: from.group, resource, subresource: "", namespace: "", name: "" });
}

function checkPath({ user, decide, path }: PathCheck, verb: string): Value { return new Decision(decide({ isResource: false, verb, path, user })); }

function checkResource({ user, decide, asked: { fieldSelector, labelSelector, ...asked } }: ResourceCheck, verb: string): Value {
  const selectors = { ...(fieldSelector && { fieldSelector }), ...(labelSelector && { labelSelector }) };
  return new Decision(decide({ isResource: true, verb, version: "*", path: "", user, ...asked, ...selectors }));
}
