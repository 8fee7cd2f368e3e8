/**
 * FlowSchema (flowcontrol.apiserver.k8s.io/v1): which requests belong to which level of priority.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/flow-schema-v1/
 * Source: kubernetes v1.36 pkg/registry/flowcontrol/flowschema/strategy.go, pkg/apis/flowcontrol/{v1/defaults,validation/validation}.go
 */
import { internalForm } from "../../api/schema/internal-form.ts";
import { child, duplicate, type FieldError, forbidden, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { FlowSchema, FlowSchemaSpec, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject } from "../../api/gen/flowcontrol.v1.ts";
import { dns1123Label } from "../../api/meta/names.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { isDns1123Label, isDns1123Subdomain } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { mandatoryFlowSchema } from "./mandatory.ts";

const PRECEDENCE = 1000;
const PRECEDENCE_MAX = 10_000;
const DISTINGUISHERS = ["ByNamespace", "ByUser"];
const KINDS = { Group: "group", ServiceAccount: "serviceAccount", User: "user" } as const;
const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

export const flowSchemas = defineResource<FlowSchema>({
  group: "flowcontrol.apiserver.k8s.io", version: "v1", kind: "FlowSchema", plural: "flowschemas",
  defaults({ spec }) { spec.matchingPrecedence ||= PRECEDENCE; },
  *validate({ metadata: { name }, spec, status }) {
    yield* validateSpec("spec", spec, name);
    const fixed = mandatoryFlowSchema(name);
    if (fixed && !semanticEqual(spec, fixed)) yield invalid("spec", internalForm("io.k8s.api.flowcontrol.v1.FlowSchemaSpec", spec), `spec of '${name}' must equal the fixed value`);
    yield* conditionTypes("status.conditions", status?.conditions);
  },
  subresources: { status: statusPart<FlowSchema>({ keepsMetadata: "all", validate: ({ status }) => conditionTypes("status.conditions", status?.conditions) }) },
});

/** Each condition has a type, and only one has it. */
export function* conditionTypes(path: string, conditions: readonly { readonly type?: string | undefined }[] = []): Iterable<FieldError> {
  for (const [i, { type = "" }] of conditions.entries()) {
    if (conditions.findIndex((condition) => (condition.type ?? "") === type) < i) yield duplicate(child(index(path, i), "type"), type);
    if (type === "") yield required(child(index(path, i), "type"));
  }
}

function* validateSpec(path: string, { matchingPrecedence = 0, distinguisherMethod, priorityLevelConfiguration, rules }: Readonly<FlowSchemaSpec>, name: string): Iterable<FieldError> {
  const at = child(path, "matchingPrecedence");
  if (matchingPrecedence <= 0) yield invalid(at, matchingPrecedence, "must be a positive value");
  if (matchingPrecedence > PRECEDENCE_MAX) yield invalid(at, matchingPrecedence, `must not be greater than ${PRECEDENCE_MAX}`);
  if (matchingPrecedence === 1 && name !== "exempt") yield invalid(at, matchingPrecedence, "only the schema named 'exempt' may have matchingPrecedence 1");
  if (distinguisherMethod && !DISTINGUISHERS.includes(distinguisherMethod.type)) yield notSupported(child(path, "distinguisherMethod", "type"), { Type: distinguisherMethod.type }, DISTINGUISHERS);
  const levelAt = child(path, "priorityLevelConfiguration", "name");
  if (priorityLevelConfiguration.name) yield* isDns1123Subdomain(levelAt, priorityLevelConfiguration.name);
  else yield required(levelAt, "must reference a priority level");
  for (const [i, rule] of (rules ?? []).entries()) yield* validateRule(index(child(path, "rules"), i), rule);
}

function* validateRule(path: string, { subjects: given, resourceRules = [], nonResourceRules = [] }: PolicyRulesWithSubjects): Iterable<FieldError> {
  const subjects = given ?? [];
  if (subjects.length === 0) yield required(child(path, "subjects"), "subjects must contain at least one value");
  for (const [i, subject] of subjects.entries()) yield* validateSubject(index(child(path, "subjects"), i), subject);
  if (resourceRules.length + nonResourceRules.length === 0) yield required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
  for (const [i, rule] of resourceRules.entries()) yield* validateResourceRule(index(child(path, "resourceRules"), i), rule);
  for (const [i, rule] of nonResourceRules.entries()) yield* validateNonResourceRule(index(child(path, "nonResourceRules"), i), rule);
}

function* validateSubject(path: string, subject: Subject): Iterable<FieldError> {
  const field = KINDS[subject.kind as keyof typeof KINDS];
  if (!field) { yield notSupported(child(path, "kind"), subject.kind ?? "", Object.keys(KINDS)); return; }
  const own = subject[field];
  if (!own) yield required(child(path, field), `${field} is required when subject kind is '${subject.kind}'`);
  else {
    const at = child(path, field, "name");
    if (!own.name) yield required(at);
    else if (field === "serviceAccount" && own.name !== "*") yield* isDns1123Subdomain(at, own.name);
    if (field === "serviceAccount") yield* validateNamespace(child(path, field, "namespace"), subject.serviceAccount!.namespace);
  }
  for (const [kind, other] of [["ServiceAccount", "serviceAccount"], ["User", "user"], ["Group", "group"]] as const)
    if (other !== field && subject[other]) yield forbidden(child(path, other), `${other} is forbidden when subject kind is not '${kind}'`);
}

function* validateNamespace(path: string, namespace: string | undefined): Iterable<FieldError> {
  if (namespace) yield* isDns1123Label(path, namespace);
  else yield required(path, "must specify namespace for service account");
}

function* validateVerbs(path: string, given: readonly string[] | null): Iterable<FieldError> {
  const verbs = given ?? [];
  if (verbs.length === 0) yield required(path, "verbs must contain at least one value");
  else if (verbs.includes("*")) {
    if (verbs.length > 1) yield invalid(path, verbs, "if '*' is present, must not specify other verbs");
  } else if (!verbs.every((verb) => VERBS.includes(verb))) yield notSupported(path, verbs, VERBS);
}

function* validateResourceRule(path: string, { verbs, apiGroups, resources, clusterScope, namespaces: given }: ResourcePolicyRule): Iterable<FieldError> {
  const namespaces = given ?? []; // null is what Go writes for none
  yield* validateVerbs(child(path, "verbs"), verbs);
  for (const [name, list, one, others] of [["apiGroups", apiGroups ?? [], "api group", "api groups"], ["resources", resources ?? [], "resource", "resources"]] as const) {
    if (list.length === 0) yield required(child(path, name), `resource rules must supply at least one ${one}`);
    else if (list.length > 1 && list.includes("*")) yield invalid(child(path, name), list, `if '*' is present, must not specify other ${others}`);
  }
  const at = child(path, "namespaces");
  if (namespaces.length === 0 && !clusterScope) yield required(at, "resource rules that are not cluster scoped must supply at least one namespace");
  else if (namespaces.includes("*")) {
    if (namespaces.length > 1) yield invalid(at, namespaces, "if '*' is present, must not specify other namespaces");
  } else
    for (const [i, name] of namespaces.entries())
      for (const problem of dns1123Label(name)) yield invalid(index(at, i), name, `each member of this list must be '*' or a DNS-1123 label; ${problem}`);
}

function* validateNonResourceRule(path: string, { verbs, nonResourceURLs }: NonResourcePolicyRule): Iterable<FieldError> {
  yield* validateVerbs(child(path, "verbs"), verbs);
  const urls = nonResourceURLs ?? [];
  const at = child(path, "nonResourceURLs");
  if (urls.length === 0) yield required(at, "nonResourceURLs must contain at least one value");
  else if (urls.includes("*")) {
    if (urls.length > 1) yield invalid(at, urls, "if '*' is present, must not specify other non-resource URLs");
  } else
    for (const [i, url] of urls.entries()) {
      const problem = urlProblem(url);
      if (problem !== undefined) yield invalid(index(at, i), url, problem);
    }
}

function urlProblem(url: string): string | undefined {
  if (url === "") return "must not be empty";
  if (url === "/") return undefined;
  if (!url.startsWith("/")) return "must start with slash";
  if (url.includes(" ")) return "must not contain white-space";
  if (url.includes("//")) return "must not contain double slash";
  const stars = url.split("*").length - 1;
  return stars > 1 || (stars === 1 && !url.endsWith("/*")) ? "wildcard can only do suffix matching" : undefined;
}
