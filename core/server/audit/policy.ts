/**
 * An audit policy: of which requests how much is recorded. The first rule that fits decides; what none fits is not recorded.
 *
 * API:    https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/
 * Source: kubernetes v1.36 apiserver/pkg/audit/policy/{checker,reader}.go, apiserver/pkg/apis/audit/validation/validation.go
 */
import type { Attributes, ResourceAttributes } from "../../api/request/attributes.ts";
import { parseYaml } from "../../api/codec/yaml.ts";

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

/** Reads a policy file. Throws an Error that says what is wrong with it. */
export function readPolicy(text: string): AuditPolicy {
  const document = parseYaml(text) as (Partial<AuditPolicy> & { readonly apiVersion?: string; readonly kind?: string }) | null;
  if (document?.apiVersion !== "audit.k8s.io/v1" || document.kind !== "Policy") throw new Error(`no kind "Policy" of version "audit.k8s.io/v1", but ${JSON.stringify(document?.kind ?? "")} of ${JSON.stringify(document?.apiVersion ?? "")}`);
  const { rules, omitStages = [], omitManagedFields = false } = document;
  if (!Array.isArray(rules) || rules.length === 0) throw new Error("loaded illegal policy with 0 rules");
  const errors = [...stageErrors("omitStages", omitStages), ...(rules as readonly PolicyRule[]).flatMap((rule, i) => [...ruleErrors(`rules[${i}]`, rule)])];
  if (errors.length > 0) throw new Error(errors.join("; "));
  return { rules: (rules as readonly PolicyRule[]).map((rule) => ({ ...rule, omitStages: [...new Set([...omitStages, ...(rule.omitStages ?? [])])] })), omitStages, omitManagedFields };
}

function* ruleErrors(path: string, { level, nonResourceURLs = [], resources = [], namespaces = [], omitStages = [] }: PolicyRule): Iterable<string> {
  if (!LEVELS.includes(level)) yield `${path}.level: Unsupported value: ${JSON.stringify(level ?? "")}: supported values: ${LEVELS.map((one) => JSON.stringify(one)).join(", ")}`;
  if (nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0)) yield `${path}.nonResourceURLs: Invalid value: rules cannot apply to both regular resources and non-resource URLs`;
  for (const [i, url] of nonResourceURLs.entries()) {
    if (url === "*") continue;
    if (!url.startsWith("/")) yield `${path}.nonResourceURLs[${i}]: Invalid value: ${JSON.stringify(url)}: non-resource URL rules must begin with a '/' character`;
    else if (url.slice(0, -1).includes("*")) yield `${path}.nonResourceURLs[${i}]: Invalid value: ${JSON.stringify(url)}: non-resource URL wildcards '*' must be the final character of the rule`;
  }
  for (const [i, { resources: named = [], resourceNames = [] }] of resources.entries())
    if (resourceNames.length > 0 && named.length === 0) yield `${path}.resources[${i}].resourceNames: Invalid value: using resourceNames requires at least one resource`;
  yield* stageErrors(`${path}.omitStages`, omitStages);
}

function* stageErrors(path: string, stages: readonly AuditStage[]): Iterable<string> {
  for (const [i, stage] of stages.entries()) if (!STAGES.includes(stage)) yield `${path}[${i}]: Invalid value: ${JSON.stringify(stage)}: allowed stages are ${STAGES.join(",")}`;
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
