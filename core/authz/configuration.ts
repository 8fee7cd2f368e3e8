/**
 * AuthorizationConfiguration: who is asked, and in which order. The first that allows or denies decides.
 *
 *   apiVersion: apiserver.config.k8s.io/v1
 *   kind: AuthorizationConfiguration
 *   authorizers:
 *   - {type: Node, name: node}
 *   - {type: RBAC, name: rbac}
 *   - type: Webhook
 *     name: policy
 *     webhook:
 *       timeout: 3s
 *       subjectAccessReviewVersion: v1
 *       matchConditionSubjectAccessReviewVersion: v1
 *       failurePolicy: Deny
 *       connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/webhook.yaml}
 *       matchConditions: [{expression: "has(request.resourceAttributes)"}]
 *
 * Source: kubernetes v1.36 apiserver/pkg/apis/apiserver/{types.go,v1/defaults.go,validation/validation.go}, pkg/kubeapiserver/authorizer/modes
 */
import { type Fields, fieldsOf } from "../api/codec/strict-fields.ts";
import { parseStrictYaml } from "../api/codec/yaml.ts";
import { aggregate } from "../api/meta/aggregate.ts";
import { formatDurationNs, parseDurationNs } from "../api/meta/duration.ts";
import { duplicate, type FieldError, formatFieldErrors, invalid, notSupported, required } from "../api/meta/field-error.ts";
import { dns1123Subdomain } from "../api/meta/names.ts";
import { type MatchCondition, matchCondition } from "./match-conditions.ts";

export const AUTHORIZER_TYPES = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"] as const;
export type AuthorizerType = (typeof AUTHORIZER_TYPES)[number];

export interface WebhookSettings {
  readonly authorizedMs: number;
  readonly unauthorizedMs: number;
  readonly cacheAuthorized: boolean;
  readonly cacheUnauthorized: boolean;
  readonly timeoutMs: number;
  readonly version: "v1" | "v1beta1";
  readonly failurePolicy: "NoOpinion" | "Deny";
  /** Undefined: the cluster's own API server. */
  readonly kubeconfigFile: string | undefined;
  readonly matchConditions: readonly MatchCondition[];
}

export interface AuthorizerSettings {
  readonly type: AuthorizerType;
  readonly name: string;
  readonly webhook?: WebhookSettings | undefined;
}

const VERSIONS = ["v1", "v1beta1", "v1alpha1"].map((version) => `apiserver.config.k8s.io/${version}`);
const CONDITIONS_MAX = 64;
const TIMEOUT_MS_MAX = 30_000;

interface FileOptions {
  /** Types that the file named when the server was started: they stay. */
  readonly required?: Iterable<AuthorizerType> | undefined;
  /** Why a file cannot be read; undefined: it can. */
  fileProblem?(path: string): string | undefined;
}

/** Throws for a file that cannot be. */
export function authorizationConfiguration(text: string, { required: wanted = [], fileProblem = () => undefined }: FileOptions = {}): readonly AuthorizerSettings[] {
  const fields = fieldsOf(parseStrictYaml(text), { kind: "AuthorizationConfiguration", apiVersions: VERSIONS });
  const problems: FieldError[] = [];
  const list = fields.objects("authorizers");
  if (list.length === 0) problems.push(required("authorizers", "at least one authorization mode must be defined"));
  const before: AuthorizerSettings[] = [];
  for (const one of list) {
    const [type, name] = [one.text("type"), one.text("name")];
    const inWebhook: FieldError[] = [];
    const webhook = one.has("webhook") ? readWebhook(one.object("webhook"), one.path, { problems: inWebhook, fileProblem }) : undefined;
    one.any("webhook"); // it was looked at
    one.end();
    const typeProblem = problemOfType(type, one.path, before);
    if (typeProblem) problems.push(typeProblem);
    else {
      if (name === "") problems.push(required(`${one.path}.name`));
      else if (before.some((earlier) => earlier.name === name)) problems.push(duplicate(`${one.path}.name`, name));
      else if (dns1123Subdomain(name).length > 0) problems.push(invalid(`${one.path}.name`, name, `authorizer name is invalid: ${dns1123Subdomain(name).join(", ")}`));
      if (type === "Webhook") problems.push(...(webhook ? inWebhook : [required(`${one.path}.webhook`, "required when type=Webhook")]));
      else if (webhook) problems.push(invalid(`${one.path}.webhook`, "non-null", "may only be specified when type=Webhook"));
    }
    if (!typeProblem) before.push({ type: type as AuthorizerType, name, ...(webhook ? { webhook } : {}) });
  }
  fields.end();
  if (problems.length > 0) throw new Error(formatFieldErrors(problems));
  const others = before.filter(({ type }) => type !== "Webhook");
  const missing = [...new Set(wanted)].filter((type) => type !== "Webhook" && !others.some((one) => one.type === type)).sort();
  const errors = others.filter(({ type, name }) => name !== type.toLowerCase()).map(({ type, name }) => `expected name ${type.toLowerCase()} for authorizer ${type} instead of ${name}`);
  if (missing.length > 0) errors.push(`missing required types: [${missing.join(" ")}]`);
  if (errors.length > 0) throw new Error(aggregate(errors));
  return before;
}

function problemOfType(type: string, path: string, before: readonly AuthorizerSettings[]): FieldError | undefined {
  if (type === "") return required(`${path}.type`);
  if (!AUTHORIZER_TYPES.includes(type as AuthorizerType)) return notSupported(`${path}.type`, type, [...AUTHORIZER_TYPES]);
  return type !== "Webhook" && before.some((one) => one.type === type) ? duplicate(`${path}.type`, type) : undefined;
}

interface Reading { readonly problems: FieldError[]; fileProblem(path: string): string | undefined }

/** `path`: of the authorizer, by which upstream tells of what is in its webhook, too. */
function readWebhook(fields: Fields, path: string, { problems, fileProblem }: Reading): WebhookSettings {
  const duration = (name: string, standardMs: number | undefined): number => {
    const ns = parseDurationNs(fields.text(name) || "0s");
    const ms = Number(ns / 1_000_000n);
    if (ns === 0n && standardMs === undefined) problems.push(required(`${path}.${name}`));
    else if (ns < 0n || (name === "timeout" && ms > TIMEOUT_MS_MAX)) problems.push(invalid(`${path}.${name}`, formatDurationNs(ns), name === "timeout" ? "must be > 0s and <= 30s" : "must be > 0s"));
    return ns === 0n ? standardMs ?? 0 : ms;
  };
  const choice = <T extends string>(name: string, choices: readonly T[]): T => {
    const text = fields.text(name);
    if (text === "") problems.push(required(`${path}.${name}`));
    else if (!choices.includes(text as T)) problems.push(notSupported(`${path}.${name}`, text, [...choices]));
    return text as T;
  };
  const [timeoutMs, authorizedMs, unauthorizedMs] = [duration("timeout", undefined), duration("authorizedTTL", 300_000), duration("unauthorizedTTL", 30_000)];
  const version = choice("subjectAccessReviewVersion", ["v1", "v1beta1"]);
  const inConditions: FieldError[] = [];
  const matchConditions = readConditions(fields, path, { problems, inConditions });
  const failurePolicy = choice("failurePolicy", ["NoOpinion", "Deny"]);
  const kubeconfigFile = readConnection(fields.object("connectionInfo"), `${path}.connectionInfo`, { problems, fileProblem });
  problems.push(...inConditions);
  const settings = {
    timeoutMs, authorizedMs, unauthorizedMs, version, failurePolicy, kubeconfigFile, matchConditions,
    cacheAuthorized: fields.boolean("cacheAuthorizedRequests") ?? true, cacheUnauthorized: fields.boolean("cacheUnauthorizedRequests") ?? true,
  };
  fields.end();
  return settings;
}

function readConnection(fields: Fields, path: string, { problems, fileProblem }: Reading): string | undefined {
  const [type, file, isSaid] = [fields.text("type"), fields.text("kubeConfigFile"), fields.has("kubeConfigFile")];
  fields.end();
  if (type === "") problems.push(required(`${path}.type`));
  else if (type === "InClusterConfig") {
    if (isSaid) problems.push(invalid(`${path}.kubeConfigFile`, file, "can only be set when type=KubeConfigFile"));
    return undefined;
  } else if (type !== "KubeConfigFile") problems.push(notSupported(`${path}.type`, { Type: type, KubeConfigFile: isSaid ? file : null }, ["InClusterConfig", "KubeConfigFile"]));
  else if (file === "") problems.push(required(`${path}.kubeConfigFile`));
  else if (!/^(\/|[A-Za-z]:[\\/])/.test(file)) problems.push(invalid(`${path}.kubeConfigFile`, file, "must be an absolute path"));
  else {
    const problem = fileProblem(file);
    if (problem !== undefined) problems.push(invalid(`${path}.kubeConfigFile`, file, problem));
  }
  return file;
}

function readConditions(fields: Fields, path: string, { problems, inConditions }: { readonly problems: FieldError[]; readonly inConditions: FieldError[] }): readonly MatchCondition[] {
  const list = fields.objects("matchConditions").map((one) => {
    const expression = one.text("expression");
    one.end();
    return expression;
  });
  const version = fields.text("matchConditionSubjectAccessReviewVersion");
  if (version === "" && list.length > 0) problems.push(required(`${path}.matchConditionSubjectAccessReviewVersion`, "required if match conditions are specified"));
  if (version !== "" && version !== "v1") problems.push(notSupported(`${path}.matchConditionSubjectAccessReviewVersion`, version, ["v1"]));
  if (list.length > CONDITIONS_MAX) inConditions.push({ type: "FieldValueTooMany", field: `${path}.matchConditions`, badValue: list.length, detail: `must have at most ${CONDITIONS_MAX} items` });
  if (list.length > CONDITIONS_MAX) return [];
  return list.flatMap((expression, i) => {
    const at = `${path}.matchConditions[${i}].expression`;
    if (expression.trim() === "") inConditions.push(required(at));
    else if (list.indexOf(expression) < i) inConditions.push(duplicate(at, expression));
    else {
      const condition = matchCondition(expression);
      if (condition.problem !== undefined) inConditions.push(invalid(at, expression, condition.problem));
      return [condition];
    }
    return [];
  });
}
