/** Which requests something is asked about. Source: kubernetes v1.36 pkg/apis/admissionregistration/{v1/defaults,validation/validation}.go */
import { child, duplicate, type FieldError, index, internal, invalid, notSupported, required, tooMany } from "../../api/meta/field-error.ts";
import type { MatchCondition, MatchResources, NamedRuleWithOperations, RuleWithOperations } from "../../api/gen/admissionregistration.v1.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { pathSegmentName } from "../../api/meta/names.ts";
import { AdmissionScope, BOOLEAN, type Expression } from "../../cel/admission/expressions.ts";
import { isQualifiedName, problems } from "../core/checks/values.ts";
import { repeats } from "../../api/meta/linear.ts";

export const FAILURE_POLICIES = ["Fail", "Ignore"];
export const MATCH_POLICIES = ["Equivalent", "Exact"];
export const REINVOCATION_POLICIES = ["IfNeeded", "Never"];
const OPERATIONS = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const MUTATED_OPERATIONS = OPERATIONS.filter((operation) => operation !== "DELETE");
const SCOPES = ["*", "Cluster", "Namespaced"];
const CONDITIONS_MAX = 64;

export function defaultRule(rule: RuleWithOperations): void { rule.scope ??= "*"; }

export function defaultMatchResources(match: MatchResources | undefined): void {
  if (!match) return;
  match.matchPolicy ??= "Equivalent";
  match.namespaceSelector ??= {};
  match.objectSelector ??= {};
  for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])]) defaultRule(rule);
}

export function* validateMatchResources(path: string, match: MatchResources | undefined): Iterable<FieldError> {
  if (!match) return;
  if (match.matchPolicy === undefined) yield required(child(path, "matchPolicy"));
  else if (!MATCH_POLICIES.includes(match.matchPolicy)) yield notSupported(child(path, "matchPolicy"), match.matchPolicy, MATCH_POLICIES);
  for (const name of ["namespaceSelector", "objectSelector"] as const) {
    if (match[name] === undefined) yield required(child(path, name));
    else yield* validateLabelSelector(match[name], child(path, name));
  }
  for (const name of ["resourceRules", "excludeResourceRules"] as const)
    for (const [i, rule] of (match[name] ?? []).entries()) yield* validateNamedRule(index(child(path, name), i), rule);
}

/** Only what is created, updated or connected to can be changed. */
export function* validateMutatedOperations(path: string, match: MatchResources | undefined): Iterable<FieldError> {
  for (const { operations } of match?.resourceRules ?? [])
    for (const operation of operations ?? []) if (!MUTATED_OPERATIONS.includes(operation)) yield notSupported(child(path, "resourceRules", "operations"), operation, MUTATED_OPERATIONS);
}

function* validateNamedRule(path: string, rule: NamedRuleWithOperations): Iterable<FieldError> {
  const cameBefore = repeats<string>();
  for (const [i, name] of (rule.resourceNames ?? []).entries()) {
    const at = index(child(path, "resourceNames"), i);
    yield* problems(at, name, pathSegmentName(name));
    if (cameBefore(name)) yield duplicate(at, name);
  }
  yield* validateRule(path, rule);
}

export function* validateRule(path: string, { operations: given, apiGroups = [], apiVersions = [], resources = [], scope }: RuleWithOperations): Iterable<FieldError> {
  const operations: readonly string[] = given ?? [];
  const at = child(path, "operations");
  if (operations.length === 0) yield required(at);
  if (operations.length > 1 && operations.includes("*")) yield invalid(at, operations, "if '*' is present, must not specify other operations");
  for (const [i, operation] of operations.entries()) if (!OPERATIONS.includes(operation)) yield notSupported(index(at, i), operation, OPERATIONS);
  for (const [name, list, what] of [["apiGroups", apiGroups, "API groups"], ["apiVersions", apiVersions, "API versions"]] as const) {
    if (list.length === 0) yield required(child(path, name));
    if (list.length > 1 && list.includes("*")) yield invalid(child(path, name), list, `if '*' is present, must not specify other ${what}`);
  }
  for (const [i, version] of apiVersions.entries()) if (version === "") yield required(index(child(path, "apiVersions"), i));
  yield* validateResources(child(path, "resources"), resources);
  if (scope !== undefined && !SCOPES.includes(scope)) yield notSupported(child(path, "scope"), scope, SCOPES);
}

function* validateResources(path: string, resources: readonly string[]): Iterable<FieldError> {
  if (resources.length === 0) yield required(path);
  const [allOf, everywhere] = [new Set<string>(), new Set<string>()];
  let lastIsPlain = false;
  for (const [i, given] of resources.entries()) {
    if (given === "") { yield required(index(path, i)); continue; }
    const slash = given.indexOf("/");
    if (slash < 0) { lastIsPlain = given !== "*"; continue; }
    const [resource, sub] = [given.slice(0, slash), given.slice(slash + 1)];
    if (allOf.has(resource)) yield invalid(index(path, i), given, `if '${resource}/*' is present, must not specify ${given}`);
    if (everywhere.has(sub)) yield invalid(index(path, i), given, `if '*/${sub}' is present, must not specify ${given}`);
    if (sub === "*") allOf.add(resource);
    if (resource === "*") everywhere.add(sub);
  }
  if (resources.length > 1 && resources.includes("*/*")) yield invalid(path, resources, "if '*/*' is present, must not specify other resources");
  if (resources.includes("*") && lastIsPlain) yield invalid(path, resources, "if '*' is present, must not specify other resources without subresources");
}

/** `params`: whether they may speak of a parameter. */
export function* validateMatchConditions(path: string, conditions: readonly MatchCondition[] = [], scope: Pick<AdmissionScope, "compile"> = new AdmissionScope()): Iterable<FieldError> {
  if (conditions.length > CONDITIONS_MAX) yield tooMany(path, conditions.length, CONDITIONS_MAX);
  for (const [i, { name, expression }] of conditions.entries()) {
    const at = index(path, i);
    const trimmed = expression?.trim() ?? "";
    if (trimmed === "") yield required(child(at, "expression"));
    else yield* compiled(child(at, "expression"), scope.compile(trimmed, BOOLEAN));
    if (!name) { yield required(child(at, "name")); continue; }
    yield* isQualifiedName(child(at, "name"), name);
    if (conditions.findIndex((condition) => condition.name === name) < i) yield duplicate(child(at, "name"), name);
  }
}

/** What is wrong with an expression. `written`: as it stands in the object. */
export function* compiled(path: string, { text, error, internal: isInternal }: Expression, written = text): Iterable<FieldError> {
  if (error !== undefined) yield isInternal ? internal(path, error) : invalid(path, written, error);
}
