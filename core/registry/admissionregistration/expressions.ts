/**
 * The parts of admission policies that hold expressions. They must compile; variables one after the other, so that each may speak of those before it.
 *
 * Source: kubernetes v1.36 pkg/apis/admissionregistration/validation/validation.go
 */
import { child, duplicate, type FieldError, forbidden, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { AuditAnnotation, MatchCondition, MatchResources, Mutation, ParamKind, ParamRef, Validation, Variable } from "../../api/gen/admissionregistration.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { dns1035Label, dns1123Subdomain, pathSegmentName } from "../../api/meta/names.ts";
import { AdmissionScope, APPLY_CONFIGURATION, BOOLEAN, type Expression, JSON_PATCHES, TEXT, TEXT_OR_NULL } from "../../cel/admission/expressions.ts";
import { each, type Pausing } from "../../lifecycle/breather.ts";
import { isQualifiedName, problems } from "../core/checks/values.ts";
import type { WriteContext } from "../generic/resource.ts";
import { compiled, FAILURE_POLICIES, validateMatchConditions, validateMatchResources, validateMutatedOperations } from "./rules.ts";

const REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ANNOTATION_BYTES_MAX = 5 * 1024;
const RESERVED = new Set("true false null in as break const continue else for function if import let loop package namespace return var void while".split(" "));

interface Policy {
  readonly failurePolicy?: string | undefined;
  readonly paramKind?: ParamKind | undefined;
  readonly matchConstraints?: MatchResources | undefined;
  readonly matchConditions?: readonly MatchCondition[] | undefined;
  readonly variables?: readonly Variable[] | undefined;
}

/** What policies of both kinds have. */
export function* validatePolicy(
  path: string, spec: Policy, { scope, mutates, ignoreConditions }: { readonly scope: PolicyScope; readonly mutates: boolean; readonly ignoreConditions: boolean },
): Iterable<FieldError> {
  const { failurePolicy, paramKind, matchConstraints } = spec;
  if (failurePolicy === undefined) yield required(child(path, "failurePolicy"));
  else if (!FAILURE_POLICIES.includes(failurePolicy)) yield notSupported(child(path, "failurePolicy"), failurePolicy, FAILURE_POLICIES);
  if (paramKind) yield* validateParamKind(child(path, "paramKind"), paramKind);
  if (!matchConstraints) yield required(child(path, "matchConstraints"));
  else {
    yield* validateMatchResources(child(path, "matchConstraints"), matchConstraints);
    if (!matchConstraints.resourceRules?.length) yield required(child(path, "matchConstraints", "resourceRules"));
    if (mutates) yield* validateMutatedOperations(child(path, "matchConstraints"), matchConstraints);
  }
  if (!ignoreConditions) yield* validateMatchConditions(child(path, "matchConditions"), spec.matchConditions, scope.conditions);
  for (const [i, variable] of (spec.variables ?? []).entries()) yield* validateVariable(index(child(path, "variables"), i), variable, scope);
}

/** What the expressions of a policy may speak of. Variables are added as they are validated. */
export interface PolicyScope extends Pick<AdmissionScope, "addVariable" | "compile"> {
  /** Of match conditions, which come before variables. */
  readonly conditions: Pick<AdmissionScope, "compile">;
}

/** What becomes of the expressions of a policy, in the order in which they are validated. By who writes it. */
const foreseen = new WeakMap<WriteContext, { readonly spec: Policy; readonly found: readonly Expression[] }>();

/** Compiles one expression after another, of which there may be thousands in a policy: those that `check` asks for. */
export function* foreseePolicy(spec: Policy, context: WriteContext, { mutates, check }: { readonly mutates: boolean; check(scope: PolicyScope): Iterable<FieldError> }): Pausing<void> {
  const scope = scopeOf(spec, mutates);
  const asked: (() => Expression)[] = [];
  const ask = (work: () => Expression): Expression => {
    asked.push(work);
    return { text: "", program: undefined, error: undefined, internal: false };
  };
  for (const _ of check({ addVariable: (...variable) => ask(() => scope.addVariable(...variable)), compile: (...expression) => ask(() => scope.compile(...expression)), conditions: { compile: (...expression) => ask(() => scope.conditions.compile(...expression)) } })); // what is wrong otherwise is found once more
  const found = yield* each(asked, (work): Expression => ({ ...work(), program: undefined })); // nobody evaluates them
  foreseen.set(context, { spec, found });
}

/** Of one that was foreseen nothing is compiled again. */
export function policyScope(spec: Policy, context: WriteContext | undefined, { mutates }: { readonly mutates: boolean }): PolicyScope {
  const known = context && foreseen.get(context);
  if (!known || !Bun.deepEquals(known.spec, spec)) return scopeOf(spec, mutates);
  const found = known.found.values();
  const next = (): Expression => found.next().value!;
  return { addVariable: next, compile: next, conditions: { compile: next } };
}

function scopeOf({ paramKind, variables = [] }: Policy, mutates: boolean): PolicyScope {
  const params = paramKind !== undefined, scope = new AdmissionScope({ params, variables: mutates || variables.length > 0 });
  return { addVariable: (name, text) => scope.addVariable(name, text), compile: (text, returns, options) => scope.compile(text, returns, options), conditions: new AdmissionScope({ params }) };
}

function* validateParamKind(path: string, { apiVersion = "", kind = "" }: ParamKind): Iterable<FieldError> {
  const at = child(path, "apiVersion");
  const parts = apiVersion === "/" ? ["", ""] : apiVersion.split("/");
  const [group, version] = parts.length === 1 ? ["", parts[0]!] : [parts[0]!, parts[1]!];
  if (apiVersion === "") yield required(at);
  else if (parts.length > 2) yield invalid(at, apiVersion, `unexpected GroupVersion string: ${apiVersion}`);
  else {
    const [groupProblems, versionProblems] = [dns1123Subdomain(group), dns1035Label(version)];
    if (group !== "" && groupProblems.length > 0) yield invalid(at, group, groupProblems.join(","));
    if (version === "") yield invalid(at, apiVersion, "version must be specified");
    else if (versionProblems.length > 0) yield invalid(at, version, versionProblems.join(","));
  }
  const kindProblems = dns1035Label(kind.toLowerCase());
  if (kind === "") yield required(child(path, "kind"));
  else if (kindProblems.length > 0) yield invalid(child(path, "kind"), kind, `may have mixed case, but should otherwise match: ${kindProblems.join(",")}`);
}

function* validateVariable(path: string, { name = "", expression = "" }: Variable, scope: PolicyScope): Iterable<FieldError> {
  if (name.trim() === "") yield required(child(path, "name"), "name is not specified");
  else if (!/^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) || RESERVED.has(name)) yield invalid(child(path, "name"), name, "must be a valid CEL identifier");
  if (expression.trim() === "") yield required(child(path, "expression"), "expression is not specified");
  else yield* compiled(child(path, "expression"), scope.addVariable(name, expression));
}

export function* validateValidation(path: string, { expression = "", message = "", messageExpression = "", reason }: Validation, scope: PolicyScope): Iterable<FieldError> {
  if (expression.trim() === "") yield required(child(path, "expression"), "expression is not specified");
  else yield* compiled(child(path, "expression"), scope.compile(expression, BOOLEAN));
  if (messageExpression !== "" && messageExpression.trim() === "") yield invalid(child(path, "messageExpression"), messageExpression, "must be non-empty if specified");
  else if (messageExpression !== "") yield* compiled(child(path, "messageExpression"), scope.compile(messageExpression, TEXT, { authorizer: false }));
  if (message !== "" && message.trim() === "") yield invalid(child(path, "message"), message, "must be non-empty if specified");
  else if (/[\n\r]/.test(message.trim())) yield invalid(child(path, "message"), message, "must not contain line breaks");
  if (reason !== undefined && !REASONS.includes(reason)) yield notSupported(child(path, "reason"), reason, REASONS);
}

export function* validateAuditAnnotations(path: string, annotations: readonly AuditAnnotation[], { policyName, scope }: { readonly policyName: string | undefined; readonly scope: PolicyScope }): Iterable<FieldError> {
  for (const [i, { key, valueExpression = "" }] of annotations.entries()) {
    const at = index(path, i);
    if (policyName) yield* isQualifiedName(child(at, "key"), `${policyName}/${key}`);
    else yield invalid(child(at, "key"), key, "requires metadata.name be non-empty");
    const trimmed = valueExpression.trim();
    if (trimmed === "") yield required(child(at, "valueExpression"), "valueExpression is not specified");
    else if (byteLength(trimmed) > ANNOTATION_BYTES_MAX) yield required(child(at, "valueExpression"), `must not exceed ${ANNOTATION_BYTES_MAX} bytes in length`);
    else yield* compiled(child(at, "valueExpression"), scope.compile(trimmed, TEXT_OR_NULL), valueExpression);
    if (annotations.findIndex((annotation) => annotation.key === key) < i) yield duplicate(child(at, "key"), key);
  }
}

export function* validateMutation(path: string, { patchType, jsonPatch, applyConfiguration }: Mutation, scope: PolicyScope): Iterable<FieldError> {
  if (!patchType) { yield required(child(path, "patchType")); return; }
  if (patchType !== "JSONPatch" && patchType !== "ApplyConfiguration") { yield notSupported(child(path, "patchType"), patchType, ["ApplyConfiguration", "JSONPatch"]); return; }
  const [own, other, part, stranger] = patchType === "JSONPatch" ? ["jsonPatch", "applyConfiguration", jsonPatch, applyConfiguration] as const : ["applyConfiguration", "jsonPatch", applyConfiguration, jsonPatch] as const;
  if (!part) yield required(child(path, own), `must be specified when patchType is ${patchType}`);
  else if (!part.expression?.trim()) yield required(child(path, own, "expression"));
  else yield* compiled(child(path, own, "expression"), scope.compile(part.expression.trim(), patchType === "JSONPatch" ? JSON_PATCHES : APPLY_CONFIGURATION, { patches: true }));
  if (stranger) yield invalid(child(path, other), `{${other}}`, `must not be specified when patchType is ${patchType}`);
}

export function* validateParamRef(path: string, ref: ParamRef | undefined): Iterable<FieldError> {
  if (!ref) return;
  const { name = "", selector, parameterNotFoundAction: action } = ref;
  const exclusive = "name and selector are mutually exclusive";
  if (name !== "") yield* problems(child(path, "name"), name, pathSegmentName(name));
  if (name !== "" && selector) yield forbidden(child(path, "name"), exclusive);
  yield* validateLabelSelector(selector, child(path, "selector"));
  if (name !== "" && selector) yield forbidden(child(path, "selector"), exclusive);
  if (name === "" && !selector) yield required(path, "one of name or selector must be specified");
  if (!action) yield required(child(path, "parameterNotFoundAction"));
  else if (action !== "Deny" && action !== "Allow") yield notSupported(child(path, "parameterNotFoundAction"), action, ["Deny", "Allow"]);
}
