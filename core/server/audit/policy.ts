/**
 * An audit policy: of which requests how much is recorded. The first rule that fits decides; what none fits is not recorded.
 *
 * API:    https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/
 * Source: kubernetes v1.36 apiserver/pkg/audit/policy/{checker,reader}.go, apiserver/pkg/apis/audit/validation/validation.go
 */
import type { Attributes, ResourceAttributes } from "../../api/request/attributes.ts";
import { type Fields, fieldsOf } from "../../api/codec/strict-fields.ts";
import { readYaml } from "../../api/codec/yaml.ts";
import { type FieldError, formatFieldErrors, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import { dns1123Subdomain } from "../../api/meta/names.ts";

const LEVELS = ["None", "Metadata", "Request", "RequestResponse"] as const;
export type AuditLevel = (typeof LEVELS)[number];
const STAGES = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"] as const;
export type AuditStage = (typeof STAGES)[number];

export interface GroupResources { readonly group?: string; readonly resources?: readonly string[]; readonly resourceNames?: readonly string[] }
export interface PolicyRule {
  readonly level: AuditLevel;
  readonly users?: readonly string[]; readonly userGroups?: readonly string[]; readonly verbs?: readonly string[];
  readonly resources?: readonly GroupResources[]; readonly namespaces?: readonly string[]; readonly nonResourceURLs?: readonly string[];
  readonly omitStages?: readonly AuditStage[]; readonly omitManagedFields?: boolean;
}
export interface AuditPolicy { readonly rules: readonly PolicyRule[]; readonly omitStages?: readonly AuditStage[]; readonly omitManagedFields?: boolean }

/** What is recorded of one request. */
export interface AuditConfig { readonly level: AuditLevel; readonly omitStages: readonly AuditStage[]; readonly omitManagedFields: boolean }

/** Reads a policy file. What it does not know in one, or finds twice, is passed by and told of, as upstream does it. Throws an Error that says what is wrong with it. */
export function readPolicy(text: string, tell: (problem: string) => void = () => undefined): AuditPolicy {
  const { value, duplicates } = readYaml(text);
  for (const problem of duplicates) tell(problem);
  const fields = fieldsOf(value, { kind: "Policy", apiVersions: ["audit.k8s.io/v1"] });
  const omitStages = fields.strings("omitStages") as readonly AuditStage[];
  const rules = fields.objects("rules").map((rule) => readRule(rule, tell));
  const problems = [...stageErrors("omitStages", omitStages), ...rules.flatMap((rule, i) => [...ruleErrors(index("rules", i), rule)])];
  if (problems.length > 0) throw new Error(formatFieldErrors(problems));
  if (rules.length === 0) throw new Error("loaded illegal policy with 0 rules");
  const omitManagedFields = fields.boolean("omitManagedFields") ?? false;
  fields.any("metadata");
  tellUnknown(fields, tell);
  return { rules: rules.map((rule) => ({ ...rule, omitStages: [...new Set([...omitStages, ...rule.omitStages])] })), omitStages, omitManagedFields };
}

type ReadRule = PolicyRule & Required<Pick<PolicyRule, "resources" | "namespaces" | "nonResourceURLs" | "omitStages">>;

function readRule(fields: Fields, tell: (problem: string) => void): ReadRule {
  const omitManagedFields = fields.boolean("omitManagedFields");
  const rule = {
    level: fields.text("level") as AuditLevel, users: fields.strings("users"), userGroups: fields.strings("userGroups"), verbs: fields.strings("verbs"),
    resources: fields.objects("resources").map((one) => readResources(one, tell)),
    namespaces: fields.strings("namespaces"), nonResourceURLs: fields.strings("nonResourceURLs"), omitStages: fields.strings("omitStages") as readonly AuditStage[],
    ...(omitManagedFields !== undefined && { omitManagedFields }),
  };
  tellUnknown(fields, tell);
  return rule;
}

function readResources(fields: Fields, tell: (problem: string) => void): GroupResources {
  const resources = { group: fields.text("group"), resources: fields.strings("resources"), resourceNames: fields.strings("resourceNames") };
  tellUnknown(fields, tell);
  return resources;
}

function tellUnknown(fields: Fields, tell: (problem: string) => void): void {
  try {
    fields.end();
  } catch (error) {
    tell((error as Error).message);
  }
}

function* ruleErrors(path: string, { level, nonResourceURLs, resources, namespaces, omitStages }: ReadRule): Iterable<FieldError> {
  if ((level as string) === "") yield required(`${path}.level`);
  else if (!LEVELS.includes(level)) yield notSupported(`${path}.level`, level, LEVELS);
  for (const [i, url] of nonResourceURLs.entries()) {
    if (url !== "*" && !url.startsWith("/")) yield invalid(index(`${path}.nonResourceURLs`, i), url, "non-resource URL rules must begin with a '/' character");
    if (url.slice(0, -1).includes("*")) yield invalid(index(`${path}.nonResourceURLs`, i), url, "non-resource URL wildcards '*' must be the final character of the rule");
  }
  for (const { group = "", resources: named = [], resourceNames = [] } of resources) { // upstream does not say which
    const problems = group === "" || group === "*" ? [] : dns1123Subdomain(group);
    if (problems.length > 0) yield invalid(`${path}.resources.group`, group, problems.join(","));
    if (resourceNames.length > 0 && named.length === 0) yield invalid(`${path}.resources.resourceNames`, resourceNames, "using resourceNames requires at least one resource");
  }
  yield* stageErrors(`${path}.omitStages`, omitStages);
  if (nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0)) yield invalid(`${path}.nonResourceURLs`, nonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs");
}

function* stageErrors(path: string, stages: readonly AuditStage[]): Iterable<FieldError> {
  for (const [i, stage] of stages.entries()) if (!STAGES.includes(stage)) yield invalid(index(path, i), stage, `allowed stages are ${STAGES.join(",")}`);
}

export function configFor(policy: AuditPolicy, attributes: Attributes): AuditConfig {
  const rule = policy.rules.find((one) => fits(one, attributes));
  if (!rule) return { level: "None", omitStages: policy.omitStages ?? [], omitManagedFields: policy.omitManagedFields ?? false };
  return { level: rule.level, omitStages: rule.omitStages ?? [], omitManagedFields: rule.omitManagedFields ?? policy.omitManagedFields ?? false };
}

function fits({ users = [], userGroups = [], verbs = [], namespaces = [], resources = [], nonResourceURLs = [] }: PolicyRule, attributes: Attributes): boolean {
  const { user, verb } = attributes;
  if (users.length > 0 && !users.includes(user.name)) return false;
  if (userGroups.length > 0 && !user.groups.some((group) => userGroups.includes(group))) return false;
  if (verbs.length > 0 && !verbs.includes(verb)) return false;
  if (namespaces.length > 0 || resources.length > 0) return attributes.isResource && fitsResource(attributes, namespaces, resources);
  if (nonResourceURLs.length > 0) return !attributes.isResource && nonResourceURLs.some((url) => fitsPath(attributes.path, url));
  return true;
}

function fitsResource({ namespace, group, resource, subresource, name }: ResourceAttributes, namespaces: readonly string[], wanted: readonly GroupResources[]): boolean {
  if (namespaces.length > 0 && !namespaces.includes(namespace)) return false;
  if (wanted.length === 0) return true;
  const combined = subresource === "" ? resource : `${resource}/${subresource}`;
  return wanted.some((one) => {
    if ((one.group ?? "") !== group && one.group !== "*") return false;
    if (!one.resources?.length) return true;
    if (one.resourceNames?.length && !one.resourceNames.includes(name)) return false;
    return one.resources.some((text) => text === combined || text === "*" || (subresource !== "" && text === `*/${subresource}`) || text === `${resource}/*`);
  });
}

function fitsPath(path: string, url: string): boolean {
  return url === "*" || url === path || (url.endsWith("*") && path.startsWith(url.replace(/\*+$/, "")));
}
